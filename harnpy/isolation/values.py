"""Values of the language as data that crosses between processes.

nil, bool, int, float, string, bytes, list and dict are msgpack's own; a struct becomes a dict. Enums,
durations, sets, pairs and ranges are extensions. A function crosses as a number: it stays in the child, where
`call` finds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from harnpy.vm.values.objects import Duration, EnumValue, Fn, Pair, Range, Set, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_encode, _Ext = msgspec.msgpack.encode, msgspec.msgpack.Ext
_FUNCTION = 1
#: Deeper values would cost the codec more C stack than there is.
_MOST_NESTED = 500


class RemoteFunction:
    """A function of an isolated program; `IsolatedVm.call` calls it. It ends with the child."""

    __slots__ = ("child", "name", "number")

    def __init__(self, child: int, number: int, name: str | None) -> None:
        self.child = child
        self.number = number
        self.name = name

    def __repr__(self) -> str:
        return f"<isolated fn {self.name or 'closure'}>"


def _enum(enum: str, variant: str, *fields: Any) -> EnumValue:
    return EnumValue(enum, variant, fields)


#: For each class: its extension code, its parts as a list, and what makes it of them again.
_PARTS: dict[type, tuple[int, Callable[[Any], list[Any]], Callable[..., Any]]] = {
    EnumValue: (2, lambda value: [value.enum, value.variant, *value.fields], _enum),
    Duration: (3, lambda value: [value.ms], Duration),
    Set: (4, lambda value: [value.items], Set),
    Pair: (5, lambda value: [value.first, value.second], Pair),
    Range: (6, lambda value: [value.first, value.last, value.exclusive], Range),
}
_MADE = {code: make for code, _, make in _PARTS.values()}


class Packing:
    """How one side packs values: what happens to functions differs."""

    def __init__(self, pack_function: Callable[[Any], list[Any] | None]) -> None:
        """``pack_function(value)`` returns what stands for a function, None for any other value."""
        self._pack_function = pack_function

    def pack(self, value: Any) -> Any:
        """The `enc_hook` of msgspec. Raises TypeError for what can't cross."""
        parts = _PARTS.get(type(value))
        if parts is not None:
            return _Ext(parts[0], _encode(parts[1](value), enc_hook=self.pack))
        function = self._pack_function(value)
        if function is None:
            what = type_name(value) if type(value).__module__.startswith("harnpy.") else type(value).__name__
            raise TypeError(f"a {what} can't leave its process: only plain data and functions do")
        return _Ext(_FUNCTION, _encode(function))


class Unpacking:
    """How one side unpacks values."""

    def __init__(self, unpack_function: Callable[..., Any]) -> None:
        self._unpack_function = unpack_function

    def unpack(self, code: int, data: memoryview) -> Any:
        """The `ext_hook` of msgspec. Raises ValueError for what isn't known."""
        make = self._unpack_function if code == _FUNCTION else _MADE.get(code)
        if make is None:
            raise ValueError(f"no value has the code {code}")
        return make(*msgspec.msgpack.decode(data, ext_hook=self.unpack))


def refuse_deep(value: Any) -> None:
    """Raise ValueError for a value that is nested too deeply to cross."""
    level = [value]
    for _ in range(_MOST_NESTED):
        level = [inner for each in level for inner in _contents(each)]
        if not level:
            return
    raise ValueError(f"a value nested more than {_MOST_NESTED} deep can't leave its process")


def _contents(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list | tuple):
        return value
    parts = _PARTS.get(type(value))
    return parts[1](value) if parts is not None else ()


def is_function(value: Any) -> bool:
    return type(value) is Fn
