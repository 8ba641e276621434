"""Reading names, properties, elements and slices. Spec: 02 §7.4, §14."""

from __future__ import annotations

from copy import deepcopy

from harnpy.syntax import ast
from harnpy.vm.resolve.tree import enum_variant
from harnpy.vm.values import operators
from harnpy.vm.values.objects import EnumValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.resolve.scopes import Reference
    from harnpy.vm.walk.activation import Activation

    Value = Any


def name(a: Activation, node: ast.Name) -> Value:
    a.at = node.start
    return meaning(a, a.walker.resolution.refs[id(node)])


def meaning(a: Activation, ref: Reference) -> Value:
    """The value that a name stands for."""
    vm = a.walker.vm
    if ref.kind == "local" and ref.variable:
        value = a.read(ref.variable)
        return vm.calls.read_late(value, ref.name) if ref.variable.in_box else value
    if ref.kind == "builtin":
        return vm.builtins.bound(ref.name)
    if ref.kind == "global":
        return vm.global_value(ref.name)
    if ref.kind == "schema":
        return deepcopy(ref.schema)
    if ref.kind == "dynamic":
        return vm.calls.read_dynamic(a.walker.table, ref.name)
    return vm.calls.undefined_variable(ref.name, ref.visible)


def member(a: Activation, node: ast.Member) -> Value:
    """``o.name``, ``o?.name`` and ``Enum.Variant``."""
    if variant := enum_named(a, node):
        return EnumValue(*variant)
    target = a.value(node.object)
    a.at = node.start
    read = operators.get_prop_optional if node.optional else operators.get_prop
    return read(target, node.name)


def enum_named(a: Activation, node: ast.Member | ast.MethodCall) -> tuple[str, str] | None:
    """The enum and variant of ``Enum.Variant``, unless a variable shadows the enum's name."""
    variant = enum_variant(node, a.walker.resolution.enums)
    ref = a.walker.resolution.refs.get(id(node.object)) if variant else None
    return None if ref is not None and ref.kind == "local" else variant


def index(a: Activation, node: ast.Index) -> Value:
    target, key = a.values([node.object, node.index])
    if node.optional and target is None:
        return None
    a.at = node.start
    return operators.index(target, key)


def slice_(a: Activation, node: ast.Slice) -> Value:
    """``o[first:last]``; an omitted bound is nil."""
    target = a.value(node.object)
    first = a.value(node.first) if node.first else None
    last = a.value(node.last) if node.last else None
    a.at = node.start
    return operators.slice_(target, first, last)
