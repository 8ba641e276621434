"""A call whose progress its caller reads while it waits. Spec: 07 §15.1."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from harnpy.mcp.connection import Progress
    from harnpy.reading.dicts import Dict


class ReportedCall:
    """``make`` returns the call, which reports to the function that it is given.

    Only the latest report is kept: a caller that is slow to read misses the ones in between.
    """

    def __init__(self, make: Callable[[Progress], Coroutine[Any, Any, Any]]) -> None:
        self._make = make
        self._call: asyncio.Task[Any] | None = None
        self._latest: Dict | None = None

    async def report(self) -> Dict | None:
        """Return ``{progress, total?, message?}`` as soon as there is news; None when the call has ended."""
        if self._call is None:
            self._news = asyncio.Event()
            self._call = asyncio.ensure_future(self._make(self._heard))
            self._call.add_done_callback(self._ended)
        await self._news.wait()
        latest, self._latest = self._latest, None
        if not self._call.done():
            self._news.clear()
        return latest

    async def result(self) -> Any:
        assert self._call is not None
        return await self._call

    def stop(self) -> None:
        """Cancel the call unless it has ended."""
        if self._call is not None:
            self._call.cancel()

    def _heard(self, progress: float, total: float | None, message: str | None) -> None:
        given = {"progress": progress, "total": total, "message": message}
        self._latest = {key: value for key, value in given.items() if value is not None}
        self._news.set()

    def _ended(self, call: asyncio.Task[Any]) -> None:
        self._news.set()
        if not call.cancelled():
            call.exception()  # nobody may be there any more who asks for it
