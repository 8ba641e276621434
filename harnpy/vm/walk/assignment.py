"""`let`, `var` and assignment: values never change, variables do. Spec: 02 §8, §13."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.run.calls import immutable
from harnpy.vm.values import operators
from harnpy.vm.walk.operators import OPERATORS
from harnpy.vm.walk.patterns import bind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.resolve.scopes import Variable
    from harnpy.vm.walk.activation import Activation

    Value = Any
    #: Where an assignment goes below a variable: ``("prop", name)`` or ``("index", key)``, outermost first.
    Path = list[tuple[str, Value]]


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
