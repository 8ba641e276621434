"""Calls of functions, builtins and methods, and pipes. Spec: 02 §4.3, §7.4, §9, §14.4."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.resolve.expressions import TASK_CALLS
from harnpy.vm.run.calls import construct
from harnpy.vm.run.methods.dispatch import call_method
from harnpy.vm.run.tasks.cancel import cancel_gracefully, cancel_task, is_cancelled
from harnpy.vm.run.tasks.spawn import await_task
from harnpy.vm.values.objects import EnumValue
from harnpy.vm.walk.access import enum_named
from harnpy.vm.walk.literals import sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from harnpy.vm.resolve.scopes import Reference
    from harnpy.vm.walk.activation import Activation

    Value = Any

#: What the names of 05 §2 do, and how many arguments each takes at most.
_TASK_CALLS: dict[str, tuple[Callable[..., Value], int]] = {
    "await": (await_task, 1),
    "cancel": (cancel_task, 1),
    "cancel_graceful": (cancel_gracefully, 2),
    "is_cancelled": (is_cancelled, 0),
}


def call(a: Activation, node: ast.Call) -> Value:
    """``f(x, y)``: the arguments from left to right, then what ``f`` means (02 §7.4)."""
    args = sequence(a, node.args)
    a.at = node.start
    if node.name in TASK_CALLS:
        function, most = _TASK_CALLS[node.name]
        return function(a.walker.vm.tasks, *args[:most])
    return call_named(a, a.walker.resolution.refs[id(node)], args)


def call_named(a: Activation, ref: Reference, args: Sequence[Value]) -> Value:
    """Call what a name stands for."""
    vm, depth = a.walker.vm, a.depth + 1
    variable = ref.variable
    if ref.kind == "builtin":
        return vm.calls.call_builtin(vm.builtins.bound(ref.name), args)
    if ref.kind == "global":
        return vm.calls.call(vm.global_value(ref.name), depth, args)
    if ref.kind == "dynamic":
        return vm.calls.call_dynamic(a.walker.table, ref.name, depth, args)
    if ref.kind != "local" or variable is None:
        return vm.calls.call_from_frames(ref.name, depth, args)
    if variable.struct is not None:
        names = tuple(field.name for field in variable.struct.fields)
        return construct(variable.struct.name, names, args[0] if args else None)
    return vm.calls.call_named(a.read(variable), ref.name, depth, args, fallback(a, ref))


def fallback(a: Activation, ref: Reference) -> list[Value]:
    """What else a name means, from the inside out, when the nearest variable holds no callable (02 §7.4)."""
    others: list[Value] = []
    outer = ref.outer
    while outer is not None:
        if outer.kind == "builtin":
            others.append(a.walker.vm.builtins.bound(outer.name))
        elif outer.variable:
            others.append(a.read(outer.variable))
        outer = outer.outer
    return others


def method_call(a: Activation, node: ast.MethodCall) -> Value:
    """``o.m(x)``, ``o?.m(x)``, ``Enum.Variant(x)`` and ``namespace.builtin(x)``."""
    if variant := enum_named(a, node):
        return EnumValue(*variant, tuple(sequence(a, node.args)))
    if qualified := _namespaced(a, node):
        args = sequence(a, node.args)
        a.at = node.start
        builtins = a.walker.vm.builtins
        return a.walker.vm.calls.call_builtin(builtins.bound(qualified), args)
    target = a.value(node.object)
    args = sequence(a, node.args)
    if node.optional and target is None:
        return None
    a.at = node.start
    return call_method(a.walker.vm, a.walker.impls, a.depth + 1, target, node.name, args)


def _namespaced(a: Activation, node: ast.MethodCall) -> str | None:
    """``stream.map`` and its like, when no variable shadows the namespace."""
    if not isinstance(node.object, ast.Name):
        return None
    qualified = f"{node.object.name}.{node.name}"
    ref = a.walker.resolution.refs[id(node.object)]
    known = ref.kind == "global" and a.walker.vm.builtins.is_builtin(qualified)
    return qualified if known else None


def pipe(a: Activation, node: ast.Pipe) -> Value:
    """``x |> f``: a call of ``f``; with a ``_`` on the right, that expression with ``x`` in its place."""
    hole = a.walker.resolution.variables.get((id(node), "_"))
    value = a.value(node.left)
    if hole is not None:
        a.declare(hole, value)
        return a.value(node.right)
    target = a.value(node.right)
    a.at = node.start
    return a.walker.vm.calls.pipe(value, target, a.depth + 1)
