"""Dicts of a known shape: every key is present, with a value of its type or its default.

A shape is declared once, as a `TypedDict`. Its fields default to an empty text, 0, false, an empty list or
dict; those that may be None to None. `Annotated[int, 16]` is a field with another default; a `Field` there
replaces what the type says. `NotRequired` fields are present only when given.

`made` builds parts that the caller knows to be right, `read` and `read_strictly` read dicts from outside.
"""

from __future__ import annotations

from functools import cache
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NamedTuple,
    NotRequired,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from harnpy.faults import look
from harnpy.formats.dicts import Dict, only_keys, read_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


T = TypeVar("T")


class Field(NamedTuple):
    """``kind`` is the type as `read_fields` knows it; ``part`` is the shape of a dict, or of a list's dicts.

    A ``required`` field must not be nil.
    """

    kind: str
    default: Any = None
    part: type[Any] | None = None
    required: bool = False

    def blank(self) -> Any:
        """Return the default, for the caller to keep; a part that is always present has all its keys."""
        default = self.default
        if not isinstance(default, dict | list):
            return default
        if self.part is not None and isinstance(default, dict):
            return made(self.part, {})
        return type(default)()


class Fields(NamedTuple):
    """The fields of a shape by key; the ``optional`` ones are present only when given."""

    always: Mapping[str, Field]
    optional: Mapping[str, Field]
    required: tuple[str, ...]
    #: The defaults of all that is always present, …
    defaults: Mapping[str, Any]
    #: … and the keys of those that parts may not share.
    unshared: tuple[str, ...]

    def kinds(self) -> Mapping[str, str]:
        return {key: field.kind for key, field in self.always.items()}


def fields_of(shape: Any) -> Fields:
    """Return the fields that a `TypedDict` declares."""
    return _declared(shape)


@cache
def _declared(shape: Any) -> Fields:
    hints = get_type_hints(shape, include_extras=True)
    optional = {key: get_args(hint)[0] for key, hint in hints.items() if get_origin(hint) is NotRequired}
    always = {key: _field(hint) for key, hint in hints.items() if key not in optional}
    required = tuple(key for key, field in always.items() if field.required)
    defaults = {key: field.default for key, field in always.items()}
    unshared = tuple(key for key, default in defaults.items() if isinstance(default, dict | list))
    return Fields(always, {key: _field(hint) for key, hint in optional.items()}, required, defaults, unshared)


_FIELDS: Mapping[Any, Field] = {
    Any: Field("any"),
    str: Field("string", ""),
    int: Field("int", 0),
    float: Field("number", 0.0),
    bool: Field("bool", False),
    Dict: Field("dict", {}),
    list[Any]: Field("list", []),
    list[str]: Field("list of strings", []),
    list[Dict]: Field("list of dicts", []),
    dict[str, str]: Field("dict of strings", {}),
    dict[str, Dict]: Field("dict of dicts", {}),
    dict[str, list[str]]: Field("dict of lists of strings", {}),
}


def _field(hint: Any) -> Field:
    """Return the field that a type declares."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        said = hint.__metadata__[0]
        return said if isinstance(said, Field) else _field(parts[0])._replace(default=said)
    known = _FIELDS.get(hint)
    if known is not None:
        return known
    if origin is UnionType:
        [hint] = (part for part in parts if part is not NoneType)
        return _field(hint)._replace(default=None)
    if origin is list:
        return Field("list", [], parts[0])
    if not is_typeddict(hint):
        raise TypeError(f"no field has the type {hint}")
    return Field("dict", {}, hint)


def made(shape: type[T], fields: Mapping[str, Any]) -> T:
    """Return a part with these fields and defaults for the rest. Raise TypeError for an unknown field."""
    known = fields_of(shape)
    part: Any = {**known.defaults, **fields}
    if len(part) > len(known.defaults):
        unknown = fields.keys() - known.always.keys()
        raise TypeError(f"no such field: {', '.join(sorted(unknown))}")
    for key in known.unshared:
        if key not in fields:
            part[key] = known.always[key].blank()
    complete: T = part
    return complete


def read(shape: type[T], given: Any, path: str = "") -> T:
    """Return a part with every key, without unknown ones. Raise `MisuseError` for a wrong type."""
    return _read(shape, given, path, read)


def read_strictly(shape: type[T], given: Any, path: str = "", others: Iterable[str] = ()) -> T:
    """Return a part with every key. Raise `MisuseError` for a wrong type or an unknown key.

    ``others`` are keys that a part may have as well, for others to read.
    """
    known = fields_of(shape)
    only_keys((*known.always, *known.optional), given, path, others)
    return _read(shape, given, path, read_strictly)


def _read(shape: type[T], given: Any, path: str, read_part: Any) -> T:
    known = fields_of(shape)
    look(2 * len(known.always))
    fields = read_fields(given, known.kinds(), path, known.required)
    part: Any = {
        key: _filled(field, fields[key], f"{path}.{key}" if path else key, read_part)
        for key, field in known.always.items()
    }
    if known.optional:
        optional = read_fields(given, {key: field.kind for key, field in known.optional.items()}, path)
        part |= {key: value for key, value in optional.items() if value is not None}
    complete: T = part
    return complete


def _filled(field: Field, value: Any, path: str, read_part: Any) -> Any:
    if value is None:
        return field.blank()
    if field.part is None:
        return value
    if isinstance(value, list):
        return [read_part(field.part, item, f"{path}[{index}]") for index, item in enumerate(value)]
    return read_part(field.part, value, path)


def only(part: Mapping[str, Any], keys: Iterable[str]) -> Dict:
    """Return some of a part's fields."""
    return {key: part[key] for key in keys}
