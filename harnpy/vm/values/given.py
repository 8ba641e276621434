"""Values that a Python program gives to Harn: what becomes of Python's other types. Spec: 09 §16.4.

There is one way in, `given`, for globals, arguments, and what functions of the embedder return. A value of
the language passes as it is, without a copy; what stands for one in just one way is converted; all else is
refused with the path to it: ``orders[0].price is of the type Decimal``.
"""

from __future__ import annotations

from operator import is_

from harnpy.faults import paced
from harnpy.vm.values import Duration, Set, display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    Value = Any

#: As deep as values may leave an isolated program.
DEEPEST = 500
#: A path with more characters is shown in part.
_LONGEST = 120
_MOST, _LEAST = 2**63 - 1, -(2**63)
_EASY = frozenset((str, float, bool, type(None)))
_STRING = frozenset((str,))

#: What to do instead, by the name of the type.
_REMEDIES = {
    "Decimal": "pass float(x), or str(x) for all its digits",
    "Fraction": "pass float(x), or str(x)",
    "complex": "pass [x.real, x.imag]",
    "date": "pass x.isoformat()",
    "time": "pass x.isoformat()",
    "datetime": "it has no time zone; pass x.astimezone(), or x.isoformat()",
    "timedelta": "it isn't whole milliseconds; round it",
    "function": "make it a builtin with `register`",
    "method": "make it a builtin with `register`",
    "builtin_function_or_method": "make it a builtin with `register`",
    "coroutine": "await it, and pass the result",
    "generator": "pass list(x)",
}
#: Where pydantic, msgspec, attrs and named tuples declare the fields of a class.
_DECLARATIONS = ("model_fields", "__struct_fields__", "__attrs_attrs__", "_fields")
_REMEDY = "pass what it is made of, as text, numbers, lists and dicts"


class UnsupportedValue(TypeError):
    """Harn can't hold a value. ``path`` leads to it, "" for the value itself; ``reason`` says why not."""

    def __init__(self, door: str, path: str, reason: str) -> None:
        shown = path if len(path) <= _LONGEST else f"{path[: _LONGEST // 2]}…{path[-_LONGEST // 4 :]}"
        super().__init__(f"{door}: {shown} {reason}" if path else f"{door} {reason}")
        self.path = path
        self.reason = reason


class _Refused(Exception):
    """``steps``: the way to the part that is refused, the last one first."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[str | int] = []


def given(value: Any, door: str) -> Value:
    """Return ``value`` as a value of the language. ``door``: what messages say it was given to.

    Raises `UnsupportedValue`.
    """
    if type(value) in _EASY:
        return value
    try:
        return _given(value, set())
    except _Refused as refused:
        raise UnsupportedValue(door, path_text(reversed(refused.steps)), refused.reason) from None


def path_text(steps: Iterable[str | int]) -> str:
    """Return a path as programs write it: ``orders[0].price``."""
    text = ""
    for step in steps:
        if isinstance(step, str) and step.isidentifier():
            text += f".{step}" if text else step
        else:
            from harnpy.formats.json import compact_json

            text += f"[{compact_json(step)}]"
    return text


def _given(value: Any, inside: set[int]) -> Value:
    """``inside``: the ids of the containers around the value."""
    kind = type(value)
    if kind in _EASY or kind is bytes:
        return value
    if kind is int:
        if not _LEAST <= value <= _MOST:
            raise _Refused("is an int of more than 64 bits: pass a string, or a float")
        return value
    if kind is list:
        return _within(value, inside, lambda: _items(value, inside))
    if kind is dict:
        return _within(value, inside, lambda: _entries(value, inside))
    if hasattr(kind, "type_name"):
        return value  # one of the language already
    return _within(value, inside, lambda: _converted(value, kind, inside))


def _within(container: Any, inside: set[int], convert: Callable[[], Value]) -> Value:
    if id(container) in inside:
        raise _Refused("contains itself, as no value of Harn does: leave the circle out")
    if len(inside) >= DEEPEST:
        raise _Refused(f"is nested more than {DEEPEST} deep: flatten it")
    inside.add(id(container))
    made = convert()
    inside.discard(id(container))
    return made


def _items(items: list[Any], inside: set[int]) -> list[Value]:
    """Return the items as values: the list itself if they are."""
    if _EASY.issuperset(map(type, items)):
        return items
    made = [_part(i, item, inside) for i, item in enumerate(paced(items))]
    return items if all(map(is_, made, items)) else made


def _entries(entries: Mapping[Any, Any], inside: set[int]) -> dict[str, Value]:
    """Return the entries as a dict of values: the dict itself if it is one."""
    plain = type(entries) is dict and _STRING.issuperset(map(type, entries))
    if plain and _EASY.issuperset(map(type, entries.values())):
        return entries  # type: ignore[return-value]  # a dict
    made = {}
    for key, item in paced([*entries.items()]):
        name = _key(key)
        if name in made:
            raise _Refused(f"has two keys that are the text {name!r}: rename one")
        made[name] = _part(name, item, inside)
    return entries if plain and all(map(is_, made.values(), entries.values())) else made  # type: ignore[return-value]


def _part(step: str | int, item: Any, inside: set[int]) -> Value:
    try:
        return _given(item, inside)
    except _Refused as refused:
        refused.steps.append(step)
        raise


def _key(key: Any) -> str:
    if type(key) is str:
        return key
    if isinstance(key, str):
        return str(getattr(key, "value", key))  # that of an enum's member
    raise _Refused(f"has the key {key!r}, of the type {type(key).__name__}: the keys of a dict are strings")


def _converted(value: Any, kind: type, inside: set[int]) -> Value:
    """Return what stands for a value of another of Python's types."""
    import datetime
    from enum import Enum
    from uuid import UUID

    if isinstance(value, Enum):
        return _given(value.value, inside)
    if kind.__module__ == "numpy" and hasattr(value, "tolist"):
        found = value.tolist()  # Python's own, for what numpy shares with Python
        return _other(value) if type(found) is kind else _given(found, inside)
    for plain in (str, int, float):
        if isinstance(value, plain):
            return _given(plain(value), inside)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, UUID):
        return str(value)
    if hasattr(kind, "__fspath__"):
        return value.__fspath__()
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.isoformat()
    if isinstance(value, datetime.timedelta) and not value % datetime.timedelta(milliseconds=1):
        return Duration(value // datetime.timedelta(milliseconds=1))
    if isinstance(value, set | frozenset):
        return Set(sorted(_items([*value], inside), key=display))  # an order that is always the same
    entries = _fields(value, kind)
    if entries is not None:
        return _entries(entries, inside)
    if isinstance(value, list | tuple):
        return _items([*value], inside)
    return _other(value)


def _fields(value: Any, kind: type) -> Mapping[Any, Any] | None:
    """Return a mapping, or what an object with declared fields has in them; None for anything else."""
    from collections.abc import Mapping
    from dataclasses import fields, is_dataclass

    if isinstance(value, Mapping):
        return value
    if is_dataclass(kind):
        return {field.name: getattr(value, field.name) for field in fields(kind)}
    for declaration in _DECLARATIONS:
        found = getattr(kind, declaration, None)
        if found is not None:
            names = [each if isinstance(each, str) else each.name for each in found]
            return {name: getattr(value, name) for name in names}
    return None


def _other(value: Any) -> Value:
    name = type(value).__name__
    raise _Refused(f"is of the type {name}, and Harn has no such value: {_REMEDIES.get(name, _REMEDY)}")
