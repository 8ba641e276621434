"""Kinds of arguments: each is a function that returns what is wrong with a value, or None."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.world.clock import is_rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable

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
