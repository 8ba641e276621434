"""Dicts of a known shape: every key is there, with a value of its type or its default.

`made` is for parts that the caller knows to be right, `read` for dicts from outside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from harnpy.reading.strict import read_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harnpy.reading.dicts import Dict


T = TypeVar("T")

#: What a field holds under a key that only functions may have.
_DATA = (str, int, float, list, dict, type(None))


class Field(NamedTuple):
    """``kind`` is the type as `read_fields` knows it; ``part`` is the shape of a dict, or of a list's dicts.

    A ``required`` field must not be nil.
    """

    kind: str
    default: Any = None
    part: Shape[Any] | None = None
    required: bool = False

    def blank(self) -> Any:
        """The default, for the caller to keep; a part that is always there has all its keys."""
        if self.part is not None and isinstance(self.default, dict):
            return made(self.part, {})
        return type(self.default)() if isinstance(self.default, dict | list) else self.default


class Shape(Generic[T]):
    """The shape of dicts of the type ``T``: a `TypedDict` with the same keys.

    The fields in ``optional`` are there only when they are given. An ``open`` shape also keeps functions
    under any other key.
    """

    __slots__ = ("fields", "kinds", "open", "optional", "required")

    def __init__(
        self, fields: Mapping[str, Field], optional: Mapping[str, str] | None = None, open: bool = False
    ) -> None:
        self.fields = fields
        self.optional = optional or {}
        self.open = open
        self.kinds = {key: field.kind for key, field in fields.items()}
        self.required = tuple(key for key, field in fields.items() if field.required)


def all_of(field: Field, names: str) -> Mapping[str, Field]:
    """Several fields of one kind."""
    return dict.fromkeys(names.split(), field)


def list_of(shape: Shape[Any]) -> Field:
    """A list of dicts of one shape."""
    return Field("list", [], shape)


def made(shape: Shape[T], fields: Mapping[str, Any]) -> T:
    """A part with these fields and the defaults of the rest. Raises TypeError for an unknown field."""
    known = shape.fields
    unknown = fields.keys() - known.keys()
    if unknown:
        raise TypeError(f"no such field: {', '.join(sorted(unknown))}")
    part: Any = {key: fields[key] if key in fields else field.blank() for key, field in known.items()}
    complete: T = part
    return complete


def read(shape: Shape[T], given: Any, path: str = "") -> T:
    """A part with every key; unknown ones are dropped. Raises `MisuseError` for a wrong type, by its path."""
    fields = read_fields(given, shape.kinds, path, shape.required)
    part: Any = {
        key: _filled(field, fields[key], f"{path}.{key}" if path else key)
        for key, field in shape.fields.items()
    }
    if shape.optional:
        optional = read_fields(given, shape.optional, path)
        part |= {key: value for key, value in optional.items() if value is not None}
    if shape.open:
        part |= {key: value for key, value in given.items() if not isinstance(value, _DATA)}
    complete: T = part
    return complete


def only(part: Mapping[str, Any], keys: Iterable[str]) -> Dict:
    """Some of a part's fields."""
    return {key: part[key] for key in keys}


def _filled(field: Field, value: Any, path: str) -> Any:
    if value is None:
        return field.blank()
    if field.part is None:
        return value
    if isinstance(value, list):
        return [read(field.part, item, f"{path}[{index}]") for index, item in enumerate(value)]
    return read(field.part, value, path)
