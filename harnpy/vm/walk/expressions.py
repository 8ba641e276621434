"""Literals, names, properties, operators and choices between values. Spec: 02 §2-5, §7.4, §14, §15.1."""

from __future__ import annotations

from copy import deepcopy

from harnpy.syntax import ast
from harnpy.syntax.names import enum_variant
from harnpy.vm.run.calls import make_struct
from harnpy.vm.values import Duration, EnumValue, Struct, display, operators
from harnpy.vm.values.operators import spread_dict, spread_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.vm.resolve import Reference
    from harnpy.vm.values import Range, Value
    from harnpy.vm.walk.activation import Activation

# Literals, interpolation and the displays of lists, dicts and structs. Spec: 02 §4.4, §4.5, §5.2, §15.1.


def literal(a: Activation, node: ast.Int | ast.Float | ast.Str | ast.Bool) -> Value:
    return node.value


def nil(a: Activation, node: ast.Nil) -> None:
    return None


def duration(a: Activation, node: ast.Duration) -> Duration:
    return Duration(node.ms)


def interpolation(a: Activation, node: ast.Interp) -> str:
    """``"a${x}b"``: the texts and the display forms of the values, joined (02 §5.2)."""
    return "".join(map(display, a.values(node.parts)))


def list_(a: Activation, node: ast.List) -> list[Value]:
    return sequence(a, node.items)


def sequence(a: Activation, items: Sequence[ast.Node]) -> list[Value]:
    """The items of a list or the arguments of a call; what is spread must be a list (02 §4.4)."""
    found: list[Value] = []
    for item in items:
        if isinstance(item, ast.Spread):
            value = a.value(item.value)
            a.at = item.start
            found.extend(spread_list(value))
        else:
            found.append(a.value(item))
    return found


def dict_(a: Activation, node: ast.Dict) -> dict[str, Value]:
    return mapping(a, node.entries)


def mapping(a: Activation, entries: Sequence[ast.Node]) -> dict[str, Value]:
    """Entries in source order: a later one of the same key wins (02 §4.5)."""
    found: dict[str, Value] = {}
    for entry in entries:
        if isinstance(entry, ast.DictEntry):
            key = display(a.value(entry.key))
            found[key] = a.value(entry.value)
        elif isinstance(entry, ast.Spread):
            value = a.value(entry.value)
            a.at = entry.start
            found.update(spread_dict(value))
    return found


def struct(a: Activation, node: ast.StructLit) -> Struct:
    """``Name {…}``: only declared fields are stored (02 §15.1)."""
    fields = mapping(a, node.entries)
    declared = a.walker.resolution.structs.get(node.name)
    if declared is None:
        return Struct(node.name, fields)
    return make_struct(node.name, tuple(field.name for field in declared.fields), fields)


# Reading names, properties, elements and slices. Spec: 02 §7.4, §14.


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


# Operators and choices between values. Spec: 02 §2-4.


def _not_in(x: Value, container: Value) -> bool:
    return not operators.in_(x, container)


#: Operators that take two values.
OPERATORS: dict[str, Callable[[Value, Value], Value]] = {
    "+": operators.add,
    "-": operators.sub,
    "*": operators.mul,
    "/": operators.div,
    "%": operators.mod,
    "**": operators.power,
    "==": operators.eq,
    "!=": operators.ne,
    "<": operators.lt,
    ">": operators.gt,
    "<=": operators.le,
    ">=": operators.ge,
    "in": operators.in_,
    "not in": _not_in,
}


def binary(a: Activation, node: ast.Binary) -> Value:
    """Left, then right; `&&`, `||` and `??` evaluate their right side only when it decides (02 §4.2)."""
    left = a.value(node.left)
    if node.op == "&&":
        return bool(left and a.value(node.right))
    if node.op == "||":
        return bool(left or a.value(node.right))
    if node.op == "??":
        return a.value(node.right) if left is None else left
    right = a.value(node.right)
    a.at = node.start
    return OPERATORS[node.op](left, right)


def unary(a: Activation, node: ast.Unary) -> Value:
    if node.op == "!":
        return not a.value(node.operand)
    if isinstance(node.operand, ast.Int):
        # The smallest int has no positive counterpart.
        return -node.operand.value
    operand = a.value(node.operand)
    a.at = node.start
    return operators.neg(operand)


def ternary(a: Activation, node: ast.Ternary) -> Value:
    return a.value(node.then) if a.value(node.cond) else a.value(node.otherwise)


def range_to(a: Activation, node: ast.RangeTo) -> Range:
    first, last = a.values([node.first, node.last])
    return operators.range_to(first, last, node.exclusive)
