"""Reading what a verb is given beside its id: known keys only, each of its kind. Spec: 08 §1.2, §1.9.

A kind is a function from a value to what is wrong with it, None when nothing is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.effects import is_rfc3339
from harnpy.session.errors import InvalidArgument
from harnpy.session.values import detached

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from harnpy.reading.dicts import Dict

    Kind = Callable[[Any], str | None]


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


def read_options(given: Any, kinds: Mapping[str, Kind]) -> Dict:
    """The options that are set, in the order of ``kinds``; what is nil counts as not set.

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
    expected = tuple(known)
    for key in sorted(given):
        if key not in expected:
            raise InvalidArgument(f"unknown {what} '{key}' (expected one of: {', '.join(expected)})")


def check(name: str, value: Any, kind: Kind) -> None:
    """Raise `InvalidArgument` unless the argument ``name`` is of that kind."""
    problem = kind(value)
    if problem is not None:
        raise InvalidArgument(f"`{name}` {problem}")


def not_blank(name: str, text: str | None) -> None:
    """Raise `InvalidArgument` for a text of nothing but white space, or what is no text; None is fine."""
    if text is not None:
        check(name, text, string)
        if not text.strip():
            raise InvalidArgument(f"`{name}` must not be empty")
