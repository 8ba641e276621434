"""`let`, `var` and assignments. Spec: 03 §5 (bindings), §8.1, §8.2."""

from __future__ import annotations

from harnpy.check.findings import declared_here
from harnpy.check.inference.certain import annotated, certain
from harnpy.check.inference.dynamic import known
from harnpy.check.inference.operators import arithmetic
from harnpy.check.scopes import Binding, Scope
from harnpy.check.types.names import NIL, is_named, shown
from harnpy.check.walk import names, operators
from harnpy.check.walk.closures import function
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.types.names import Type
    from harnpy.check.walk.visitor import Walk


def let(walk: Walk, node: ast.Let) -> None:
    if isinstance(node.value, ast.Closure | ast.FnExpr):
        function(walk, node.value)
    else:
        walk.visit(node.value)
    if isinstance(node.target, ast.NamePattern):
        _let_name(walk, node, node.target)
        return
    _let_pattern(walk, node)


def _let_name(walk: Walk, node: ast.Let, target: ast.NamePattern) -> None:
    actual = walk.type(node.value)
    if node.type is not None and actual is not None and not walk.accepts(node.type, node.value, actual):
        detail = walk.types.detail(actual, node.type)
        text = f"'{target.name}' declared as {shown(node.type)}, but assigned {shown(actual)}{detail}"
        walk.findings.error("assignment-type", node.value, text, places=[declared_here(node.type)])
    if walk.at_file_level:
        return
    sure = certain(walk.inference, node.value, walk.scope) if not node.mutable else None
    walk.scope.declare(
        Binding(
            target.name,
            target,
            node.type or actual,
            mutable=node.mutable,
            value=None if node.mutable else node.value,
            certain=sure if node.type is None else annotated(walk.inference, node.type),
            widens=node.mutable and node.type is None and is_named(actual, "nil"),
        )
    )


def _let_pattern(walk: Walk, node: ast.Let) -> None:
    """A pattern's names have no type; a default sees the names before it (02 §13)."""
    for entry in node.target.entries:  # type: ignore[attr-defined]
        walk.optional(entry.default)
        _untyped(walk, node, entry.name)
    rest = node.target.rest  # type: ignore[attr-defined]
    if rest:
        _untyped(walk, node, rest)


def _untyped(walk: Walk, node: ast.Let, name: str) -> None:
    walk.scope.declare(Binding(name, node.target, mutable=node.mutable))


def assign(walk: Walk, node: ast.Assign) -> None:
    walk.visit(node.value)
    target = node.target
    if not isinstance(target, ast.Name):
        walk.names_only(lambda: _target(walk, target))
        return
    names.assigned(walk, target)
    found = walk.scope.find(target.name)
    if found is None:
        return
    if not found.mutable and not walk.quiet:
        text = f"Cannot assign to '{target.name}': variable is immutable (declared with 'let')"
        places = [declared_here(found.node)] if found.node is not None else []
        walk.findings.warn("immutable-assignment", target, text, places=places)
    actual = _assigned_type(walk, node, found)
    if found.widens:
        _widen(walk, found, actual)
        return
    if found.declared is not None and actual is not None and known(actual) is not None:
        _check(walk, node, found, found.declared, actual)
    _restore(walk, found)


def _target(walk: Walk, target: ast.Node) -> None:
    """The names in a target such as `a.b[i]`, whose root must be a variable."""
    while isinstance(target, ast.Member | ast.Index):
        if isinstance(target, ast.Index):
            walk.visit(target.index)
        target = target.object
    if isinstance(target, ast.Name):
        names.assigned(walk, target)


def _assigned_type(walk: Walk, node: ast.Assign, found: Binding) -> Type | None:
    """The type of the assigned value, or of a compound operator's result."""
    actual = walk.type(node.value)
    if node.op == "=":
        return actual
    operators.judge(walk, node, node.op[:-1], found.type, actual)
    return arithmetic(node.op[:-1], found.type, actual)


def _check(walk: Walk, node: ast.Assign, found: Binding, expected: Type, actual: Type) -> None:
    fits = walk.accepts(expected, node.value, actual) if node.op == "=" else walk.fits(actual, expected)
    if not fits:
        text = f"can't assign {shown(actual)} to '{found.name}' (declared as {shown(expected)})"
        places = [declared_here(found.node)] if found.node is not None else []
        walk.findings.error("assignment-type", node.value, text, places=places)


def _widen(walk: Walk, found: Binding, actual: Type | None) -> None:
    """`var x = nil` takes the type of what it is first assigned, in the block that assigns it."""
    if is_named(actual, "nil"):
        return
    for scope in _holders(walk, found.name):
        held = scope.views.get(found.name) or scope.names[found.name]
        # Around this block it may be either.
        scope.views[found.name] = held.view(None)
    wide = found.view(None)
    if actual is not None and known(actual) is not None:
        wide.type = wide.declared = walk.types.union([actual, NIL])
        wide.widens = False
    walk.scope.views[found.name] = wide


def _restore(walk: Walk, found: Binding) -> None:
    """After an assignment nothing but the declaration is known; around this block not even that for sure."""
    for scope in _holders(walk, found.name):
        view = scope.views.get(found.name)
        if view is not None and view.type is not view.declared:
            scope.views[found.name] = view.view(None)
    if found.type is not found.declared or found.excluded or found.value is not None:
        walk.scope.views[found.name] = found.restored()


def _holders(walk: Walk, name: str) -> list[Scope]:
    """The blocks around this one that know something of a variable, out to its declaration."""
    found = []
    scope: Scope | None = walk.scope
    while scope is not None:
        if scope is not walk.scope and (name in scope.views or name in scope.names):
            found.append(scope)
        if name in scope.names:
            break
        scope = scope.parent
    return found
