"""Reading dicts from outside: leniently (a wrong type reads as absent) or strictly (it is an error)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from harnpy.faults import MisuseError, paced
from harnpy.formats.display import display, type_name
from harnpy.formats.json import compact_json
from harnpy.formats.options import expected
from harnpy.formats.text_size import cut_bytes
from harnpy.world.clock import is_rfc3339

Kind = Callable[[Any], str | None]

# `Dict`: a dict with text keys, which is what JSON objects and Harn's dicts are in Python.


Dict = dict[str, Any]


def detached(value: Any) -> Any:
    """Return a copy that shares no list and no dict with ``value``: a program's values must never change."""
    if type(value) is dict:
        return {key: item if type(item) is str else detached(item) for key, item in paced([*value.items()])}
    if type(value) is list:
        return [item if type(item) is str else detached(item) for item in paced(value)]
    return value


def read_toml(text: str) -> Dict:
    """Return a TOML text as JSON would hold it: dates and times become texts. Raises ValueError."""
    from harnpy.formats.toml import parse_toml

    return {key: _as_json(value) for key, value in parse_toml(text).items()}


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in paced([*value.items()])}
    if isinstance(value, list):
        return [_as_json(item) for item in paced(value)]
    return value.isoformat() if hasattr(value, "isoformat") else value


# Kinds of arguments: each is a function that returns what is wrong with a value, or None.


def anything(value: Any) -> str | None:
    return None


def string(value: Any) -> str | None:
    return None if type(value) is str else "must be a string"


def timestamp(value: Any) -> str | None:
    problem = string(value)
    return problem or (None if is_rfc3339(value) else "must be an RFC 3339 timestamp")


def boolean(value: Any) -> str | None:
    return None if type(value) is bool else "must be a bool"


def mapping(value: Any) -> str | None:
    return None if type(value) is dict else "must be a dict"


def closure(value: Any) -> str | None:
    return None if callable(value) else "must be a closure"


def integer(value: Any) -> str | None:
    return None if type(value) is int else "must be an int"


def count(value: Any) -> str | None:
    return integer(value) or (None if value >= 0 else "must be >= 0")


# Reading leniently: a value of the wrong type reads as absent, and unknown keys are ignored.


class Options:
    """The options of a call."""

    def __init__(self, given: Any) -> None:
        self.given: dict[str, Any] = given if isinstance(given, dict) else {}

    def __contains__(self, key: str) -> bool:
        return key in self.given

    def has_any(self, keys: frozenset[str]) -> bool:
        """Return whether one of these is given. Most calls give few options of the many that there are: what
        is made of several is made of the defaults once, and shared where none of them is given."""
        return not keys.isdisjoint(self.given)

    def value(self, key: str) -> Any:
        return self.given.get(key)

    def string(self, key: str, default: str | None = None) -> str | None:
        value = self.given.get(key)
        if type(value) is str:
            return value
        return default if value is None else display(value)

    def integer(self, key: str) -> int | None:
        value = self.given.get(key)
        return value if type(value) is int else None

    def count(self, key: str, default: int) -> int:
        """Return an int; a negative one reads as 0."""
        value = self.integer(key)
        return default if value is None else max(0, value)

    def limit(self, key: str, caller: str) -> int | None:
        """Return an int. Raises `MisuseError`, naming ``caller``, for a negative one."""
        return not_negative(self.integer(key), key, caller)

    def number(self, key: str) -> float | None:
        value = self.given.get(key)
        return float(value) if type(value) is int or type(value) is float else None

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.given.get(key)
        return default if value is None else bool(value)

    def mapping(self, key: str) -> dict[str, Any] | None:
        value = self.given.get(key)
        return value if isinstance(value, dict) else None

    def strings(self, key: str) -> list[str] | None:
        """Return the texts of a list's items; an empty list reads as absent."""
        value = self.given.get(key)
        return [display(item) for item in value] if isinstance(value, list) and value else None


def not_negative(value: int | None, key: str, caller: str) -> int | None:
    """Return the value of an option that must not be negative. Raises `MisuseError`."""
    if value is not None and value < 0:
        raise MisuseError(f"{caller}: {key} must be >= 0")
    return value


def as_text(value: Any) -> str | None:
    """Return a text that isn't empty, None for anything else."""
    return value if isinstance(value, str) and value else None


def as_dict(value: Any) -> Dict:
    return value if isinstance(value, dict) else {}


def as_dicts(value: Any) -> list[Dict]:
    """Return the dicts in a list, in order."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def as_texts(value: Any) -> list[str]:
    """Return the texts in a list, in order."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def dicts_at(value: Any, key: str) -> list[Dict]:
    """Return the dicts in the list under a key of a dict."""
    return as_dicts(as_dict(value).get(key))


# Reading strictly: a field of the wrong type is an error. Spec: 08 §5.1, §6.2.


_EXCERPT = 600  # bytes

#: The types that a field may have, by their words in messages. Any field may be nil; `any` accepts all.
_TYPES: Mapping[str, tuple[type[Any], ...]] = {
    "string": (str,),
    "int": (int,),
    "number": (int, float),
    "bool": (bool,),
    "dict": (dict,),
    "list": (list,),
}

#: The same for the items of lists and the values of dicts.
_ITEMS: Mapping[str, tuple[type[Any], str]] = {
    "list of strings": (list, "string"),
    "list of dicts": (list, "dict"),
    "dict of dicts": (dict, "dict"),
    "dict of strings": (dict, "string"),
    "dict of lists of strings": (dict, "list of strings"),
}


class FieldError(MisuseError):
    """A value of the wrong type or name. ``problem`` says what and where, without ``what`` is being read."""

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(f"{what} parse error at {problem}")
        self.problem = problem


@contextmanager
def errors_after(lead: str) -> Iterator[None]:
    """Put ``lead`` before the problem in every `MisuseError` of the block."""
    try:
        yield
    except MisuseError as error:
        problem = error.problem if isinstance(error, FieldError) else error.message
        raise MisuseError(lead + problem) from error


def read_fields(
    given: Any,
    types: Mapping[str, str],
    path: str,
    required: tuple[str, ...] = (),
    what: str = "orchestration",
) -> Dict:
    """Return the known fields of a dict: None for those that are nil or absent; others are dropped.

    Raises `FieldError` for a field of another type and for a ``required`` one that is nil. The message names
    ``what`` is being read, and the field by its ``path``.
    """
    if not isinstance(given, dict):
        raise _parse_error(what, path, f"expected dict, got {type_name(given)}", given)
    read = {}
    for key, kind in types.items():
        value = given.get(key)
        if not _fits(value, kind) and (value is not None or key in required):
            place = f"{path}.{key}" if path else key
            raise _parse_error(what, place, f"expected {kind}, got {type_name(value)}", given)
        read[key] = value
    return read


def one_of(
    names: Sequence[str], given: str, noun: str, path: str, owner: Any, what: str = "orchestration"
) -> str:
    """Return ``given`` if it is one of ``names``. Raise `FieldError`, which calls it an unknown ``noun``."""
    if given in names:
        return given
    raise _parse_error(what, path, f"unknown {noun} '{given}' ({expected(given, names)})", owner)


def only_keys(names: Sequence[str], given: Any, path: str, others: Iterable[str] = ()) -> None:
    """Raise `FieldError` for a key of the dict ``given`` that is neither in ``names`` nor in ``others``.

    The message lists ``names`` only. What is no dict passes.
    """
    if not isinstance(given, dict) or given.keys() <= {*names, *others}:
        return
    key = next(key for key in given if key not in names and key not in others)
    raise unknown_key(key, expected(key, names, others), path, given)


def unknown_key(key: str, hint: str, path: str, owner: Any, what: str = "orchestration") -> FieldError:
    """The error for a key that the dict ``owner`` at ``path`` can't have."""
    return _parse_error(what, path, f"unknown key '{key}' ({hint})", owner)


def _fits(value: Any, kind: str) -> bool:
    if kind == "any":
        return True
    if isinstance(value, bool) and kind != "bool":
        return False
    if kind in _ITEMS:
        owner, item_kind = _ITEMS[kind]
        if not isinstance(value, owner):
            return False
        items = [*value.values()] if isinstance(value, dict) else value
        return all(_fits(item, item_kind) for item in paced(items))
    return isinstance(value, _TYPES[kind])


def _parse_error(what: str, path: str, reason: str, given: Any) -> FieldError:
    payload = cut_bytes(compact_json(given), _EXCERPT)
    return FieldError(what, f"{path or 'payload'}: {reason} | payload={payload}")
