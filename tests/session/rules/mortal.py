"""A process that dies at an append, without one: its store fails for good, and nothing can be tidied up."""

from __future__ import annotations

from typing import Any, cast

from harnpy.storage import Store


class Killed(BaseException):
    """Nobody handles it."""


class Mortal:
    """A store for a process that dies instead of making append number ``lives`` + 1."""

    def __init__(self, store: Store, lives: int) -> None:
        self._store = store
        self.lives = lives

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def stream(self, *args: Any) -> Any:
        return _MortalStream(self._store.stream(*args), self)


class _MortalStream:
    def __init__(self, stream: Any, process: Mortal) -> None:
        self._stream = stream
        self._process = process

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def append(self, *args: Any, **options: Any) -> Any:
        if not self._process.lives:
            raise Killed
        self._process.lives -= 1
        return self._stream.append(*args, **options)


def mortal(store: Store, lives: int) -> Store:
    return cast("Store", Mortal(store, lives))
