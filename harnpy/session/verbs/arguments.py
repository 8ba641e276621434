"""Reading what a verb is given besides an id: known keys only, each of its kind. Spec: 08 §1.2, §1.9."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.reading.dicts import detached
from harnpy.reading.kinds import string
from harnpy.reading.option_tables import expected
from harnpy.session.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harnpy.reading.dicts import Dict
    from harnpy.reading.kinds import Kind


def read_options(given: Any, kinds: Mapping[str, Kind]) -> Dict:
    """Return the options that are set, in the order of ``kinds``; nil counts as not set.

    Raises `InvalidArgument` for the first unknown key, else for the first value of another kind.
    """
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise InvalidArgument("`opts` must be a dict or nil")
    known_keys("option key", given, kinds)
    options = {key: given[key] for key in kinds if given.get(key) is not None}
    for key, value in options.items():
        check(key, value, kinds[key])
    return {key: detached(value) for key, value in options.items()}


def known_keys(what: str, given: Dict, known: Iterable[str]) -> None:
    """Raise `InvalidArgument` for the first key, in ascending order, that isn't ``known``."""
    names = tuple(known)
    for key in sorted(given):
        if key not in names:
            raise InvalidArgument(f"unknown {what} '{key}' ({expected(key, names)})")


def check(name: str, value: Any, kind: Kind) -> None:
    """Raise `InvalidArgument` unless the argument ``name`` is of that kind."""
    problem = kind(value)
    if problem is not None:
        raise InvalidArgument(f"`{name}` {problem}")


def not_blank(name: str, text: str | None) -> None:
    """Raise `InvalidArgument` unless given a text that is more than white space, or None."""
    if text is not None:
        check(name, text, string)
        if not text.strip():
            raise InvalidArgument(f"`{name}` must not be empty")
