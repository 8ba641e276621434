"""What a taped program has open in the real world: it lives outside of the program, between effects.

The program has a stand-in for it, whose calls are effects. Spec: 13 §3.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harnpy.durable.journal import Journal

T = TypeVar("T")

#: Why something that a branch has from its tape can't be used: it is open in the recorded run only.
LEFT_BEHIND: Final = "it was open in the recorded run, and the branch has none: open it anew"


class Held(Generic[T]):
    """Something real. A task in the journal's loop holds it, and closes it there: when it is told to, at the
    latest when the journal is closed.

    ``real`` is None in a replay, and on a branch for what the tape has opened.
    """

    def __init__(self, journal: Journal, close: Callable[[T], Awaitable[object]]) -> None:
        self._journal = journal
        self.real: T | None = None
        self._close = close
        self._holder: asyncio.Task[None] | None = None
        self._over: asyncio.Event | None = None

    async def open(self, make: Callable[[], Awaitable[T]]) -> T:
        """In an effect: make it. Raises what ``make`` raises."""
        made: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._over = asyncio.Event()
        self._holder = self._journal.hold(self._hold(make, made, self._over))
        try:
            return await made
        except asyncio.CancelledError:
            self._holder.cancel()
            raise

    async def close(self) -> None:
        """In an effect: have it closed, and wait for that."""
        self.end()
        if self._holder is not None:
            await asyncio.shield(self._holder)

    def end(self) -> None:
        """Have it closed as soon as something goes on outside."""
        if self._over is not None:
            self._over.set()

    async def _hold(
        self, make: Callable[[], Awaitable[T]], made: asyncio.Future[T], over: asyncio.Event
    ) -> None:
        try:
            real = await make()
        except Exception as error:
            if not made.done():
                made.set_exception(error)
            return
        self.real = real
        try:
            if not made.done():
                made.set_result(real)
                await over.wait()
        finally:
            self.real = None
            await self._close(real)
