"""Literals, interpolation and the displays of lists, dicts and structs. Spec: 02 §4.4, §4.5, §5.2, §15.1."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.run.calls import make_struct
from harnpy.vm.values.objects import Duration, Struct, display
from harnpy.vm.values.operators import spread_dict, spread_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from harnpy.vm.walk.activation import Activation

    Value = Any


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
