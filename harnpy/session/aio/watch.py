"""A watch for asyncio. Spec: 10 §C10."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING
from weakref import finalize

from harnpy.session.aio.threads import in_thread

if TYPE_CHECKING:
    from typing import Self

    from harnpy.session.events import Event
    from harnpy.session.live.watch import Watch


class AsyncWatch:
    """An async iterator over a session's events, which waits for those to come; an async context manager that
    ends it. Who is cancelled while waiting misses nothing."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._waiting: asyncio.Task[Event | None] | None = None
        finalize(self, watch.close).atexit = False

    @property
    def dropped(self) -> int:
        """How many events weren't taken because the buffer was full."""
        return self._watch.dropped

    @property
    def closed(self) -> bool:
        """Whether no more events come."""
        return self._watch.closed

    def close(self) -> None:
        """End the watch. What it has taken in already can still be read."""
        self._watch.close()

    async def next(self, timeout: float | None = None) -> Event | None:
        """Return the next event; None when there is none within ``timeout`` seconds (None: however long), or
        the watch is closed. Raises `StorageError` when the store can't be read."""
        now = asyncio.get_running_loop().time
        ends = None if timeout is None else now() + timeout
        while True:
            left = None if ends is None else max(0.0, ends - now())
            is_over = self._waiting is None and left is not None
            waiting = self._waiting = self._waiting or self._look(left)
            done, _ = await asyncio.wait({waiting}, timeout=None if is_over else left)
            if not done:
                return None
            self._waiting = None
            event = waiting.result()
            if event is not None or is_over or self.closed:
                return event

    def _look(self, timeout: float | None) -> asyncio.Task[Event | None]:
        """Return a look for the next event, in a thread. It goes on when whoever wants it is cancelled."""
        return asyncio.create_task(in_thread(partial(self._watch.next, timeout), self._watch.close))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        event = await self.next()
        if event is None:
            raise StopAsyncIteration
        return event

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()
