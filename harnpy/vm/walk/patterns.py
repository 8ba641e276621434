"""`let`, `var`, assignment, and taking values apart: the patterns of `let`, `for` and `match`.

Spec: 02 §8, §12, §13.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.names import enum_variant, is_computed
from harnpy.vm.run.calls import field, immutable
from harnpy.vm.values import EnumValue, operators
from harnpy.vm.values.operators import destructure_dict, destructure_list, eq, get_prop
from harnpy.vm.walk.expressions import OPERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.vm.resolve import Variable
    from harnpy.vm.values import Value
    from harnpy.vm.walk.activation import Activation

    #: Where an assignment goes below a variable: ``("prop", name)`` or ``("index", key)``, outermost first.
    Path = list[tuple[str, Value]]

# `let` and `for`: the value has to have the shape.


def bind(a: Activation, pattern: ast.Node, value: Value) -> None:
    """Bind the names of a pattern to parts of ``value``, left to right (02 §13)."""
    match pattern:
        case ast.NamePattern():
            bind_name(a, pattern, pattern.name, value)
        case ast.DictPattern():
            fields = destructure_dict(value)
            for entry in pattern.entries:
                bind_entry(a, pattern, entry, fields.get(entry.key or entry.name))
            taken = [entry.key for entry in pattern.entries]
            bind_rest(a, pattern, {key: fields[key] for key in fields if key not in taken})
        case ast.ListPattern():
            items = destructure_list(value)
            for i, entry in enumerate(pattern.entries):
                bind_entry(a, pattern, entry, items[i] if i < len(items) else None)
            bind_rest(a, pattern, items[len(pattern.entries) :])
        case ast.PairPattern():
            for side, name in (("first", pattern.first), ("second", pattern.second)):
                bind_name(a, pattern, name, get_prop(value, side))


def bind_entry(a: Activation, pattern: ast.Node, entry: ast.PatternEntry, value: Value) -> None:
    """One entry; the default is for nil too, and sees the names before it."""
    if entry.default and value is None:
        at = a.at
        value = a.value(entry.default)
        a.at = at
    bind_name(a, pattern, entry.name, value)


def bind_rest(a: Activation, pattern: ast.DictPattern | ast.ListPattern, value: Value) -> None:
    if pattern.rest:
        bind_name(a, pattern, pattern.rest, value)


def bind_name(a: Activation, pattern: ast.Node, name: str, value: Value) -> None:
    a.refuse_redeclared(pattern, name)
    if name != "_":
        a.declare(a.declared_by(pattern, name), value)


# `match`: the value may have the shape.


def fits(a: Activation, patterns: Sequence[ast.Node], value: Value) -> bool:
    """Return True if a pattern of an arm matches; a single one binds its names on the way (02 §12)."""
    if len(patterns) == 1:
        return _fits_one(a, patterns[0], value)
    return any(_is_wildcard(pattern) or eq(value, a.value(pattern)) for pattern in patterns)


def _fits_one(a: Activation, pattern: ast.Node, value: Value) -> bool:
    if isinstance(pattern, ast.Name):
        return _fits_part(a, pattern, value)
    if is_computed(pattern):
        return eq(value, a.value(pattern))
    parts: list[tuple[ast.Node, Value]]
    if isinstance(pattern, ast.Dict):
        if type(value) is not dict:
            return False
        entries = [entry for entry in pattern.entries if isinstance(entry, ast.DictEntry)]
        parts = [(entry.value, value.get(_key(entry))) for entry in entries]
    elif isinstance(pattern, ast.List):
        if type(value) is not list or len(value) < len(pattern.items):
            return False
        parts = list(zip(pattern.items, value, strict=False))
    elif variant := enum_variant(pattern, a.walker.resolution.enums):
        if type(value) is not EnumValue or (value.enum, value.variant) != variant:
            return False
        args = pattern.args if isinstance(pattern, ast.MethodCall) else ()
        parts = [(arg, field(value, i)) for i, arg in enumerate(args)]
    else:
        return eq(value, a.value(pattern))
    return all(_fits_part(a, part, found) for part, found in parts)


def _fits_part(a: Activation, part: ast.Node, value: Value) -> bool:
    """A name is bound and always fits; anything else is an expression to compare with."""
    if not isinstance(part, ast.Name):
        return eq(value, a.value(part))
    if not _is_wildcard(part):
        a.declare(a.declared_by(part, part.name), value)
    return True


def _is_wildcard(pattern: ast.Node) -> bool:
    return isinstance(pattern, ast.Name) and pattern.name == "_"


def _key(entry: ast.DictEntry) -> str:
    assert isinstance(entry.key, ast.Str)
    return entry.key.value


# `let`, `var` and assignment: values never change, variables do. Spec: 02 §8, §13.


def let(a: Activation, node: ast.Let) -> None:
    value = a.value(node.value)
    a.at = node.start
    bind(a, node.target, value)


def assign(a: Activation, node: ast.Assign) -> None:
    root = node.target
    while isinstance(root, ast.Member | ast.Index):
        root = root.object
    if not isinstance(root, ast.Name):
        # There is no variable to update: both sides are evaluated, and that is all.
        a.values([node.value, node.target])
        return
    variable = _assignable(a, node, root)
    if root is not node.target:
        _assign_part(a, node, variable)
    elif node.op == "=":
        a.assign(variable, a.value(node.value))
    else:
        a.assign(variable, a.value(_binary(node, node.target, node.value)))


def _assignable(a: Activation, node: ast.Assign, root: ast.Name) -> Variable:
    """The variable to assign to; if there is none, the value is evaluated before the error is raised."""
    ref = a.walker.resolution.refs[id(root)]
    variable = ref.variable if ref.kind == "local" else None
    if variable is None or variable.in_box:
        a.value(node.value)
        a.at = node.start
        a.walker.vm.calls.undefined_target(root.name, ref.visible)
    if not variable.mutable:
        a.value(node.value)
        a.at = node.start
        immutable(root.name)
    return variable


def _binary(node: ast.Assign, left: ast.Node, right: ast.Node) -> ast.Binary:
    """``x += y`` as ``x + y``."""
    return ast.Binary(node.start, node.end, node.op[:-1], left, right)


def _assign_part(a: Activation, node: ast.Assign, variable: Variable) -> None:
    """``x.a[i].b = v``: the value, then the indexes; then the variable gets an updated copy (02 §8)."""
    value = a.value(node.value)
    path = _path(a, node.target)
    root = a.read(variable)
    a.at = node.start
    if node.op != "=":
        old = root
        for kind, key in path:
            old = _part(old, kind, key)
        value = OPERATORS[node.op[:-1]](old, value)
    updated = _updated(root, path, value)
    growth = a.walker.vm.growth
    if growth is not None:
        growth.check(updated)
    a.assign(variable, updated)


def _path(a: Activation, target: ast.Node) -> Path:
    if isinstance(target, ast.Member):
        return [*_path(a, target.object), ("prop", target.name)]
    if isinstance(target, ast.Index):
        path = _path(a, target.object)
        return [*path, ("index", a.value(target.index))]
    return []


def _part(holder: Value, kind: str, key: Value) -> Value:
    return operators.get_prop(holder, key) if kind == "prop" else operators.index(holder, key)


def _updated(holder: Value, path: Path, value: Value) -> Value:
    """A copy of ``holder`` in which the place that ``path`` leads to is ``value``."""
    (kind, key), *rest = path
    if rest:
        part = _part(holder, kind, key)
        value = _updated(part, rest, value)
        if value is part:
            # Subscript assignment to what has no elements means nothing.
            return holder
    return (
        operators.set_prop(holder, key, value) if kind == "prop" else operators.set_index(holder, key, value)
    )
