"""Dicts of a known shape: every key is present, with a value of its type or its default.

`made` builds parts that the caller knows to be right, `read` reads dicts from outside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from harnpy.formats.dicts import only_keys, read_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harnpy.formats.dicts import Dict


T = TypeVar("T")


class Field(NamedTuple):
    """``kind`` is the type as `read_fields` knows it; ``part`` is the shape of a dict, or of a list's dicts.

    A ``required`` field must not be nil.
    """

    kind: str
    default: Any = None
    part: Shape[Any] | None = None
    required: bool = False

    def blank(self) -> Any:
        """Return the default, for the caller to keep; a part that is always present has all its keys."""
        default = self.default
        if not isinstance(default, dict | list):
            return default
        if self.part is not None and isinstance(default, dict):
            return made(self.part, {})
        return type(default)()


class Shape(Generic[T]):
    """The shape of dicts of the type ``T``, a `TypedDict` with the same keys.

    The ``optional`` fields are present only when given. Other keys are dropped.
    """

    __slots__ = ("fields", "kinds", "optional", "required")

    def __init__(self, fields: Mapping[str, Field], optional: Mapping[str, str] | None = None) -> None:
        self.fields = fields
        self.optional = optional or {}
        self.kinds = {key: field.kind for key, field in fields.items()}
        self.required = tuple(key for key, field in fields.items() if field.required)


class StrictShape(Shape[T]):
    """A shape in which other keys are errors."""

    __slots__ = ()


def all_of(field: Field, names: str) -> Mapping[str, Field]:
    """Return several fields of one kind."""
    return dict.fromkeys(names.split(), field)


def list_of(shape: Shape[Any]) -> Field:
    """Return a field for a list of dicts of one shape."""
    return Field("list", [], shape)


def made(shape: Shape[T], fields: Mapping[str, Any]) -> T:
    """Return a part with these fields and defaults for the rest. Raise TypeError for an unknown field."""
    known = shape.fields
    unknown = fields.keys() - known.keys()
    if unknown:
        raise TypeError(f"no such field: {', '.join(sorted(unknown))}")
    part: Any = {key: fields[key] if key in fields else field.blank() for key, field in known.items()}
    complete: T = part
    return complete


def read(shape: Shape[T], given: Any, path: str = "", others: Iterable[str] = ()) -> T:
    """Return a part with every key, without unknown ones. Raise `MisuseError` for a wrong type.

    ``others`` are keys that a strict shape may have here, for others to read.
    """
    if isinstance(shape, StrictShape):
        only_keys((*shape.fields, *shape.optional), given, path, others)
    fields = read_fields(given, shape.kinds, path, shape.required)
    part: Any = {
        key: _filled(field, fields[key], f"{path}.{key}" if path else key)
        for key, field in shape.fields.items()
    }
    if shape.optional:
        optional = read_fields(given, shape.optional, path)
        part |= {key: value for key, value in optional.items() if value is not None}
    complete: T = part
    return complete


def only(part: Mapping[str, Any], keys: Iterable[str]) -> Dict:
    """Return some of a part's fields."""
    return {key: part[key] for key in keys}


def _filled(field: Field, value: Any, path: str) -> Any:
    if value is None:
        return field.blank()
    if field.part is None:
        return value
    if isinstance(value, list):
        return [read(field.part, item, f"{path}[{index}]") for index, item in enumerate(value)]
    return read(field.part, value, path)
