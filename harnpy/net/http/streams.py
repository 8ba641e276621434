"""Responses that a program reads piece by piece. Spec: 04 §21.2.

Nothing is read before it is asked for: who sends too fast waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harnpy.net.http.handles import Handles

if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Mapping

    from harnpy.net.http.replies import Response


class Times(NamedTuple):
    """``read``: seconds that a piece may take. ``ends_at``: when all must be there, on the loop's clock."""

    read: float
    ends_at: float | None


class Stream:
    """A response, and what has come of its body."""

    def __init__(self, response: Response, most: int | None, times: Times) -> None:
        self.status: int = response.status
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._times = times
        self._pieces = response.pieces(most)
        self._coming: Task[bytes] | None = None
        self._left = memoryview(b"")
        self._failure: Exception | None = None
        self._has_ended = False
        self._is_closed = False

    async def read(self, most: int) -> bytes | None:
        """Return the next bytes, at most so many; None at the end. Raises `Failed`, and then again."""
        while not self._left and not self._has_ended:
            if self._failure is not None:
                raise self._failure
            await self._next()
        if not self._left:
            return None
        taken, self._left = bytes(self._left[:most]), self._left[most:]
        return taken

    async def _next(self) -> None:
        """Wait for the next piece. Who stops waiting loses nothing: the next one waits for the same piece."""
        import asyncio

        if self._coming is None:
            self._coming = asyncio.ensure_future(anext(self._pieces))
        coming = self._coming
        try:
            async with asyncio.timeout(self._times.read), asyncio.timeout_at(self._times.ends_at):
                piece = await asyncio.shield(coming)
        except TimeoutError:
            from harnpy.world.net.failed import too_slow

            problem = too_slow("read_timeout_ms" if self._times.ends_at is None else "total_timeout_ms")
        except StopAsyncIteration:
            self._has_ended = True
            return
        except asyncio.CancelledError:
            if not self._is_closed:
                raise
            from harnpy.world.net.failed import cut_off

            problem = self._failure = cut_off()
        except Exception as error:
            self._failure = error
            raise
        else:
            # Two tasks may have waited for it.
            if self._coming is coming:
                self._coming, self._left = None, memoryview(piece)
            return
        raise problem

    async def aclose(self) -> None:
        self._is_closed = True
        if self._coming is not None:
            self._coming.cancel()
        await self._response.aclose()


class Streams(Handles[Stream]):
    """The open streams of one program."""

    def __init__(self) -> None:
        super().__init__("http-stream", "stream")

    async def aclose(self) -> None:
        for stream in self:
            await stream.aclose()
        self.clear()
