"""The reason why msgspec can't read a value as a type: "`a.b` must be a string, not an int".

msgspec reads fast, and its texts are its own: this is asked after it has refused a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from harnpy.faults import paced
from harnpy.formats.json import DEPTH_LIMIT, JsonError, parse_json, refuse_depth

T = TypeVar("T")

#: The types without parts: what they take, and what messages call them.
_PLAIN: dict[type[inspect.Type], tuple[Any, str]] = {
    inspect.StrType: (str, "a string"),
    inspect.IntType: (int, "an int"),
    inspect.FloatType: (int | float, "a number"),
    inspect.BoolType: (bool, "a bool"),
    inspect.NoneType: (type(None), "nil"),
}
_NAMES: dict[type, str] = {
    str: "a string",
    int: "an int",
    float: "a float",
    bool: "a bool",
    type(None): "nil",
    list: "a list",
    tuple: "a list",
    dict: "a dict",
}


def mismatch(value: Any, kind: Any, name: str = "") -> str:
    """Return what is wrong with a value that ``msgspec.convert`` refuses as ``kind``.

    ``name`` is what the message calls the whole.
    """
    return next(_problems(value, inspect.type_info(kind), name), f"{_called(name)} doesn't fit its type")


def decoded(content: bytes | str, kind: type[T]) -> T:
    """Return a JSON text from elsewhere as ``kind``. Raise ValueError with what is wrong with it.

    msgspec recurses in C, and the limit of recursion of a process with a Vm is no bound for that.
    """
    try:
        refuse_depth(content, DEPTH_LIMIT - 1)
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise ValueError(unread(content, kind)) from None


def unread(content: bytes | str, kind: Any) -> str:
    """Return what is wrong with a JSON text that msgspec can't decode as ``kind``."""
    try:
        value = parse_json(content.decode() if isinstance(content, bytes) else content)
    except UnicodeDecodeError:
        return "stream did not contain valid UTF-8"
    except JsonError as error:
        return str(error)
    return mismatch(value, kind)


def _problems(value: Any, type: inspect.Type, path: str) -> Iterator[str]:
    while isinstance(type, inspect.Metadata):
        type = type.type
    check = _CHECKS.get(type.__class__)
    if check is not None:
        yield from check(value, type, path)
    elif type.__class__ in _PLAIN and not _is_plain(value, _PLAIN[type.__class__][0]):
        yield _wrong(value, type, path)


def _is_plain(value: Any, taken: Any) -> bool:
    return isinstance(value, taken) and (taken is bool or not isinstance(value, bool))


def _object(value: Any, type: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield _wrong(value, type, path)
        return
    for field in type.fields:
        key = field.encode_name
        if key in value:
            yield from _problems(value[key], field.type, _within(path, key))
        elif field.required:
            yield f"`{_within(path, key)}` is missing"
    if getattr(type, "forbid_unknown_fields", False):
        known = {field.encode_name for field in type.fields}
        yield from (f"unknown key `{_within(path, key)}`" for key in value if key not in known)


def _items(value: Any, type: Any, path: str) -> Iterator[str]:
    if not isinstance(value, list | tuple):
        yield _wrong(value, type, path)
        return
    for number, item in enumerate(paced(value)):
        yield from _problems(item, type.item_type, f"{path}[{number}]")


def _entries(value: Any, type: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield _wrong(value, type, path)
        return
    for key, item in paced([*value.items()]):
        yield from _problems(item, type.value_type, _within(path, key))


def _union(value: Any, type: Any, path: str) -> Iterator[str]:
    problems = [next(_problems(value, each, path), None) for each in type.types]
    if None in problems:
        return
    others = [each for each in type.types if not isinstance(each, inspect.NoneType)]
    if len(others) == 1 and value is not None:
        yield from _problems(value, others[0], path)
    else:
        yield _wrong(value, type, path)


def _one_of(value: Any, type: Any, path: str) -> Iterator[str]:
    if value not in _choices(type):
        yield f"{_called(path)} must be {_described(type)}"


_CHECKS: dict[type[inspect.Type], Callable[[Any, Any, str], Iterator[str]]] = {
    inspect.StructType: _object,
    inspect.DataclassType: _object,
    inspect.TypedDictType: _object,
    inspect.DictType: _entries,
    inspect.ListType: _items,
    inspect.VarTupleType: _items,
    inspect.SetType: _items,
    inspect.FrozenSetType: _items,
    inspect.UnionType: _union,
    inspect.EnumType: _one_of,
    inspect.LiteralType: _one_of,
}


def _wrong(value: Any, type: inspect.Type, path: str) -> str:
    found = _NAMES.get(value.__class__, f"a {value.__class__.__name__}")
    return f"{_called(path)} must be {_described(type)}, not {found}"


def _called(path: str) -> str:
    return f"`{path}`" if path else "the value"


def _within(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def _described(type: Any) -> str:
    if isinstance(type, inspect.UnionType):
        return " or ".join(_described(each) for each in type.types)
    if isinstance(type, inspect.EnumType | inspect.LiteralType):
        return " or ".join(f"'{each}'" if isinstance(each, str) else str(each) for each in _choices(type))
    if type.__class__ in _PLAIN:
        return _PLAIN[type.__class__][1]
    return "a list" if _CHECKS.get(type.__class__) is _items else "a dict"


def _choices(type: Any) -> list[Any]:
    return [each.value for each in type.cls] if isinstance(type, inspect.EnumType) else list(type.values)
