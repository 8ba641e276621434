"""Names of what stays open between two calls: `<kind>-<n>`. Spec: 04 §21.2."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from harnpy.net.http.errors import HttpError
from harnpy.text.display import display

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")


def read_handle(name: str, value: Any) -> str:
    """Return the handle that the builtin ``name`` was given. Raises `HttpError`."""
    if type(value) is dict:
        value = value.get("id")
        if value is None:
            raise HttpError(f"{name}: handle dict must contain id")
        return display(value)
    if type(value) is not str:
        raise HttpError(f"{name}: first argument must be a handle string or dict")
    return value


class Handles(Generic[T]):
    """What is open, by its handle. ``kind`` begins a handle, ``noun`` is what messages call such a thing."""

    def __init__(self, kind: str, noun: str) -> None:
        self._kind = kind
        self._noun = noun
        self._numbers = count(1)
        self._open: dict[str, T] = {}

    def add(self, opened: T) -> str:
        """Return a new handle."""
        handle = f"{self._kind}-{next(self._numbers)}"
        self._open[handle] = opened
        return handle

    def get(self, name: str, value: Any) -> T:
        """Return what the handle ``value`` stands for. Raises `HttpError`."""
        handle = read_handle(name, value)
        if handle not in self._open:
            raise HttpError(f"{name}: unknown {self._noun} '{handle}'")
        return self._open[handle]

    def take(self, name: str, value: Any) -> T | None:
        """Return it, and forget it; None when there is none. Raises `HttpError` for what is no handle."""
        return self._open.pop(read_handle(name, value), None)

    def __iter__(self) -> Iterator[T]:
        return iter([*self._open.values()])

    def clear(self) -> None:
        self._open.clear()
