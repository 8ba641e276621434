"""Messages that have come over a connection and were not taken yet. Spec: 04 §21.5.

Messages are read ahead of whoever takes them, until there is no more room: then nothing is read, and the
sender has to wait. Waiting and taking are two steps: whoever stops waiting, at a deadline or because it is
cancelled, has taken nothing, so no message is lost.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from typing import Any, Generic, TypeVar

#: Begins a coroutine in the running loop for which no task of a program waits.
Start = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]

T = TypeVar("T")

#: Messages that are read ahead, at most.
_MOST = 256


class Inbox(Generic[T]):
    """The messages that ``source`` yields, which nobody else reads or closes; made inside the loop.

    ``size(message)`` is counted in bytes: no more is read while ``room`` bytes or more are waiting.
    ``start`` begins the reading, beside whatever waits.
    """

    def __init__(
        self,
        source: AsyncGenerator[T, None],
        size: Callable[[T], int],
        room: int,
        start: Start = asyncio.ensure_future,
    ) -> None:
        self._source = source
        self._size = size
        self._left = room
        self._waiting: deque[T] = deque()
        self._failure: Exception | None = None
        self._has_ended = False
        #: Set while `is_ready`.
        self._ready = asyncio.Event()
        self._has_room = asyncio.Event()
        self._reader = start(self._read())

    @property
    def is_ready(self) -> bool:
        """Return whether there is a message, or will be none any more."""
        return bool(self._waiting) or self._has_ended

    async def wait(self, seconds: float | None) -> bool:
        """Wait until it `is_ready`, but at most so long; return whether it was."""
        try:
            async with asyncio.timeout(seconds):
                await self._ready.wait()
        except TimeoutError:
            return False
        return True

    def take(self) -> T | None:
        """Return the next message; None when all were taken. Only when it `is_ready`.

        Raises what the source has raised, after the last message, and then again.
        """
        if not self._waiting:
            if self._failure is not None:
                raise self._failure
            return None
        message = self._waiting.popleft()
        self._left += self._size(message)
        if not self._is_full:
            self._has_room.set()
        if not self.is_ready:
            self._ready.clear()
        return message

    async def aclose(self) -> None:
        if not self._reader.done():  # one that has ended may have ended with its loop, which is another one
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        await self._source.aclose()

    @property
    def _is_full(self) -> bool:
        return self._left <= 0 or len(self._waiting) >= _MOST

    async def _read(self) -> None:
        try:
            async for message in self._source:
                self._waiting.append(message)
                self._left -= self._size(message)
                self._ready.set()
                while self._is_full:
                    self._has_room.clear()
                    await self._has_room.wait()
        except Exception as error:
            self._failure = error
        finally:
            self._has_ended = True
            self._ready.set()


class Script(Generic[T]):
    """Messages that are known from the beginning, in the place of an `Inbox`: a mock's."""

    is_ready = True

    def __init__(self, messages: Iterable[T]) -> None:
        self._waiting = deque(messages)

    def add(self, message: T) -> None:
        self._waiting.append(message)

    async def wait(self, seconds: float | None) -> bool:
        return True

    def take(self) -> T | None:
        return self._waiting.popleft() if self._waiting else None

    async def aclose(self) -> None:
        """There is nothing to close."""
