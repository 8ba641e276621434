"""What callers give, read: each function returns it as it may be used, or raises `InvalidArgument`.

What belongs in a log as a text of its own (a key, a label) is mended as all that is appended. Spec: 10 §C3.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from harnpy.session.errors import InvalidArgument, InvalidSessionId
from harnpy.session.json_check import checked

T = TypeVar("T")


def text(name: str, value: Any) -> str:
    """Return a text, with U+FFFD for each lone surrogate."""
    mended: str = checked(instance(name, value, str, "a text"))
    return mended


def optional_text(name: str, value: Any) -> str | None:
    return None if value is None else text(name, value)


def count(name: str, value: Any, least: int = 0) -> int:
    """Return an int that isn't smaller than ``least``."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidArgument(f"`{name}` must be an int >= {least}, got {value!r}")
    return value


def seconds(name: str, value: Any) -> float:
    """Return a number that isn't negative."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not value >= 0:
        raise InvalidArgument(f"`{name}` must be a number of seconds >= 0, got {value!r}")
    return value


def optional_seconds(name: str, value: Any) -> float | None:
    return None if value is None else seconds(name, value)


def mapping(name: str, value: Any) -> Mapping[str, Any]:
    """Return a mapping, an empty one for None."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidArgument(f"`{name}` must be a dict, got {type(value).__name__}")
    return value


def items(name: str, value: Any) -> Iterable[Any]:
    """Return what can be iterated, and is no text."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidArgument(f"`{name}` must be a list, got {type(value).__name__}")
    return value


def function(name: str, value: Any) -> None:
    if not callable(value):
        raise InvalidArgument(f"`{name}` must be a function, got {type(value).__name__}")


def instance(name: str, value: Any, kind: type[T], called: str = "") -> T:
    """Return a value of that class, which is ``called`` so in the error."""
    if not isinstance(value, kind):
        wanted = called or f"a {kind.__name__}"
        raise InvalidArgument(f"`{name}` must be {wanted}, got {type(value).__name__}")
    return value


def types(given: Any) -> frozenset[str]:
    """Return types of events. A single text would be read as its letters."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidArgument(f"`types` must be a list of event types, got {given!r}")
    return frozenset(map(str, given))


def session_id(value: Any) -> str:
    """Return an id to look for. Raises `InvalidSessionId` for what isn't text."""
    if not isinstance(value, str):
        raise InvalidSessionId(value)
    return value


def check_session(value: Any) -> None:
    """Make sure that a function gets a session: no id, and none of the asyncio face."""
    if not hasattr(value, "stream"):
        raise InvalidArgument(f"`session` must be a Session, got {type(value).__name__}")
