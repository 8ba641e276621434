"""Reading strictly: a field of the wrong type is an error. Spec: 08 §5.1, §6.2."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.reading.option_tables import expected
from harnpy.text.display import type_name
from harnpy.text.json.compact import compact_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from harnpy.reading.dicts import Dict


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
        items = value.values() if isinstance(value, dict) else value
        return isinstance(value, owner) and all(_fits(item, item_kind) for item in items)
    return isinstance(value, _TYPES[kind])


def _parse_error(what: str, path: str, reason: str, given: Any) -> FieldError:
    payload = compact_json(given).encode("utf-8", "surrogatepass")[:_EXCERPT].decode("utf-8", "ignore")
    return FieldError(what, f"{path or 'payload'}: {reason} | payload={payload}")
