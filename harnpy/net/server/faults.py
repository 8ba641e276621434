"""What can go wrong around a server. Spec: 04 §21.5."""

from __future__ import annotations

from harnpy.faults import NamedFault
from harnpy.text.display import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")


class ServerFault(NamedFault):
    """A server, a route, a message or an option that can't be what is given."""


class HandlerFailed(Exception):
    """A function of the program failed; ``text`` is its error as the program would see it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class OutOfTime(HandlerFailed):
    """A handler took longer than its ``milliseconds``."""

    def __init__(self, milliseconds: int) -> None:
        super().__init__(f"it took longer than {milliseconds} ms")
        self.milliseconds = milliseconds


def number(options: dict[str, Any], name: str, default: int, least: int = 0) -> int:
    """Return the int option ``name``, or ``default``. Raises ServerFault for another value."""
    value = _given(options, name, int, "an int")
    if value is None:
        return default
    if value < least:
        raise ServerFault(f"option `{name}` must be at least {least}, got {value}")
    return value


def flag(options: dict[str, Any], name: str, default: bool) -> bool:
    """Return the bool option ``name``, or ``default``. Raises ServerFault for another value."""
    value = _given(options, name, bool, "a bool")
    return default if value is None else value


def text(options: dict[str, Any], name: str, default: str) -> str:
    """Return the string option ``name``, or ``default``. Raises ServerFault for another value."""
    value = _given(options, name, str, "a string")
    return default if value is None else value


def _given(options: dict[str, Any], name: str, kind: type[T], words: str) -> T | None:
    value = options.get(name)
    if value is not None and type(value) is not kind:
        raise ServerFault(f"option `{name}` must be {words}, got {type_name(value)}")
    return value
