"""Operators on types that they can't take, and assignments. Spec: 03 §5, §6, §8.1, §8.2."""

from __future__ import annotations

from harnpy.check.findings import declared_here
from harnpy.check.inference import arithmetic, bare, known
from harnpy.check.types.type_nodes import NIL, is_named, shown, union
from harnpy.check.walk import undeclared_names
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.scopes import Binding, Scope
    from harnpy.check.types.type_nodes import Type
    from harnpy.check.walk import Walk
    from harnpy.syntax.diagnostic import Fix

# The fix for text joined with something else by `+`: interpolation. Spec: 03 §8.1.


def interpolation(node: ast.Binary, source: str) -> Fix | None:
    """``"a" + n`` as ``"a${n}"``; None unless one side is a plain literal and the other fits into it."""
    left, right = source[node.left.start : node.left.end], source[node.right.start : node.right.end]
    if _is_quoted(node.left, left) and _fits(right):
        text = f'{left[:-1]}${{{right}}}"'
    elif _is_quoted(node.right, right) and _fits(left):
        text = f'"${{{left}}}{right[1:]}'
    else:
        return None
    from harnpy.syntax.diagnostic import Edit, Fix

    return Fix([Edit(node.start, node.end, text)])


def _is_quoted(node: ast.Node, text: str) -> bool:
    from harnpy.syntax import ast

    quoted = isinstance(node, ast.Str) and not node.raw and text.startswith('"') and text.endswith('"')
    return quoted and not text.startswith('"""')


def _fits(text: str) -> bool:
    return bool(text) and "}" not in text and '"' not in text


_NUMBERS = frozenset(["int", "float"])
_ORDERED = frozenset(["int", "float", "string"])
_JOINED = frozenset(["string", "list", "dict"])


def binary(walk: Walk, node: ast.Binary, left: Type | None) -> None:
    walk.visit(node.right)
    if node.op in _JUDGED:
        judge(walk, node, node.op, left, walk.type(node.right))


#: Instead of what C and Python write as `"%s" % x`.
_INSERTED = 'values are inserted with `"${value}"`, or with `format("{}", value)`'


def judge(walk: Walk, node: ast.Node, op: str, left: Type | None, right: Type | None) -> None:
    """Report that two *named* types don't go together under ``op``."""
    a, b = bare(left), bare(right)
    if a is not None and b is not None and op in _JUDGED:
        _JUDGED[op](walk, node, op, a, b)


def _added(walk: Walk, node: ast.Node, op: str, a: str, b: str) -> None:
    if not ({a, b} <= _NUMBERS or (a == b and a in _JOINED)):
        fix = None
        if isinstance(node, ast.Binary) and "string" in (a, b):
            fix = interpolation(node, walk.environment.source)
        walk.findings.error("operand-type", node, f"can't add {a} and {b}", fix=fix)


def _calculated(walk: Walk, node: ast.Node, op: str, a: str, b: str) -> None:
    if not {a, b} <= _NUMBERS:
        text = f"can't use '{op}' on {a} and {b} (needs numeric operands)"
        help = _INSERTED if (op, a) == ("%", "string") else None
        walk.findings.error("operand-type", node, text, help=help)


def _multiplied(walk: Walk, node: ast.Node, op: str, a: str, b: str) -> None:
    if not ({a, b} <= _NUMBERS or {a, b} == {"string", "int"}):
        walk.findings.error("operand-type", node, f"can't multiply {a} and {b} (try string * int)")


def _compared(walk: Walk, node: ast.Node, op: str, a: str, b: str) -> None:
    if a == b == "duration":
        return
    if not {a, b} <= _ORDERED:
        text = f"Comparison '{op}' may not be meaningful for types {a} and {b}"
        walk.findings.warn("comparison-type", node, text)
    elif a != b and "string" in (a, b):
        text = f"Comparing {a} with {b} using '{op}' may give unexpected results"
        walk.findings.warn("comparison-type", node, text)


_JUDGED = {
    "+": _added,
    "*": _multiplied,
    **dict.fromkeys(["-", "/", "%", "**"], _calculated),
    **dict.fromkeys(["<", ">", "<=", ">="], _compared),
}


def pipe(walk: Walk, node: ast.Pipe, left: Type | None) -> None:
    walk.visit(node.right)


# Assignments, and what is known of a variable after one. Spec: 03 §5, §6, §8.1, §8.2.


#: What goes for each other in a variable without annotation.
_KINDS = {"int": "number", "float": "number"}


def assign(walk: Walk, node: ast.Assign) -> None:
    walk.visit(node.value)
    target = node.target
    if not isinstance(target, ast.Name):
        walk.names_only(lambda: _part(walk, target))
        return
    undeclared_names.assigned(walk, target)
    found = walk.scope.find(target.name)
    if found is None:
        return
    if not found.mutable and not walk.quiet:
        text = f"Cannot assign to '{target.name}': variable is immutable (declared with 'let')"
        places = [declared_here(found.node)] if found.node is not None else []
        help = f"what changes is declared with `var`: `var {target.name} = …`" if found.fn is None else None
        walk.findings.error("immutable-assignment", target, text, help=help, places=places)
    actual = _assigned_type(walk, node, found)
    if found.widens:
        _widen(walk, found, actual)
    elif actual is not None and known(actual) is not None and not _fits_binding(walk, node, found, actual):
        _refuse(walk, node, found, actual)
        _restore(walk, found)
    elif found.inferred and not _is_same(found.declared, actual):
        forget(walk, found.name)
    else:
        _restore(walk, found)


def _refuse(walk: Walk, node: ast.Assign, found: Binding, actual: Type) -> None:
    assert found.declared is not None
    text = f"can't assign {shown(actual)} to '{found.name}' (declared as {shown(found.declared)})"
    places = [declared_here(found.node)] if found.node is not None else []
    walk.findings.error("assignment-type", node.value, text, places=places)


def _part(walk: Walk, target: ast.Node) -> None:
    """A target such as `a.b[i]`, whose root must be a variable: what its parts are is open from here on."""
    while isinstance(target, ast.Member | ast.Index):
        if isinstance(target, ast.Index):
            walk.visit(target.index)
        target = target.object
    if isinstance(target, ast.Name):
        undeclared_names.assigned(walk, target)
        found = walk.scope.find(target.name)
        if found is not None and found.inferred:
            forget(walk, target.name)


def _assigned_type(walk: Walk, node: ast.Assign, found: Binding) -> Type | None:
    """The type of the assigned value, or of a compound operator's result."""
    actual = walk.type(node.value)
    if node.op == "=":
        return actual
    judge(walk, node, node.op[:-1], found.type, actual)
    return arithmetic(node.op[:-1], found.type, actual)


def _fits_binding(walk: Walk, node: ast.Assign, found: Binding, actual: Type) -> bool:
    expected = found.declared
    if expected is None or (found.inferred and _is_alike(walk, expected, actual)):
        return True
    if node.op == "=":
        return walk.accepts(expected, node.value, actual)
    return walk.fits(actual, expected)


def _is_same(declared: Type | None, actual: Type | None) -> bool:
    """Return True if a variable without annotation is after an assignment what it was before."""
    return actual == declared or (is_named(declared, "float") and is_named(actual, "int"))


def _is_alike(walk: Walk, one: Type, other: Type) -> bool:
    """Return True if a variable that has begun with ``one`` may go on with ``other``."""
    kinds = _kinds(walk, one)
    return None not in kinds and _kinds(walk, other) <= kinds


def _kinds(walk: Walk, type: Type) -> set[str | None]:
    """The kinds of values of an inferred type; `nil` isn't counted."""
    members = [member for member in walk.types.members(type) if not is_named(member, "nil")]
    return {_kind(walk, member) for member in members}


def _kind(walk: Walk, type: Type) -> str | None:
    """The kind of values of an inferred type: `number`, `list`, `dict`, `struct` …"""
    if isinstance(type, ast.TypeShape):
        return "dict"
    if isinstance(type, ast.TypeFn):
        return "closure"
    if not isinstance(type, ast.TypeName):
        return None
    if type.name in walk.types.declared.structs or type.name in walk.types.declared.enums:
        return "struct"
    return _KINDS.get(type.name, type.name)


def _widen(walk: Walk, found: Binding, actual: Type | None) -> None:
    """`var x = nil` takes the type of what it is first assigned, in the block that assigns it."""
    if is_named(actual, "nil"):
        return
    # Around this block it may be either.
    forget(walk, found.name)
    if actual is not None and known(actual) is not None:
        wide = found.view(union([actual, NIL]))
        wide.declared, wide.widens = wide.type, False
        walk.scope.views[found.name] = wide


def forget(walk: Walk, name: str) -> None:
    """Leave open what a variable holds, in this block and those around it."""
    found = walk.scope.find(name)
    for scope in _holders(walk, name):
        scope.views[name] = (scope.views.get(name) or scope.names[name]).view(None)
    if found is not None:
        walk.scope.views[name] = found.view(None)


def _restore(walk: Walk, found: Binding) -> None:
    """After an assignment nothing but the declaration is known; around this block not even that for sure."""
    for scope in _holders(walk, found.name):
        view = scope.views.get(found.name)
        if view is not None and view.type is not view.declared:
            scope.views[found.name] = view.view(None)
    is_open = found.inferred and found.type is None
    if not is_open and (found.type is not found.declared or found.excluded or found.value is not None):
        walk.scope.views[found.name] = found.restored()


def _holders(walk: Walk, name: str) -> list[Scope]:
    """The blocks around this one that know something of a variable, out to its declaration."""
    found = []
    scope = walk.scope
    while scope is not None:
        if scope is not walk.scope and (name in scope.views or name in scope.names):
            found.append(scope)
        if name in scope.names:
            break
        scope = scope.parent  # type: ignore[assignment]
    return found
