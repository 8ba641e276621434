"""Events over connections that break: the next one begins after the last event that came. Spec: 04 §21.5."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple

from harnpy.net.http.retries import PASSING, STATUSES, Retries
from harnpy.net.sse.decoding import Decoder, TooLong
from harnpy.net.sse.errors import Broken, Refused, SseError
from harnpy.world.net.failed import Failed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from harnpy.net.http.replies import Response
    from harnpy.net.sse.decoding import Event

    #: Opens a connection that goes on after the event with this id. Raises `Refused` and `Broken`.
    Connect = Callable[[str | None], Awaitable[Response]]

_NO_CONTENT = 204


class Opened(NamedTuple):
    """A connection was opened."""


class Reconnecting(NamedTuple):
    """When a connection that has ended is opened again.

    ``most``: attempts in a row that bring no event; ``backoff``: seconds before the first one, unless the
    server says how long, doubled with each. ``always``: also where the server has given no id to go on from,
    or has ended the stream itself. ``chance``, from 0 to below 1, spreads the pauses.
    """

    most: int = 5
    backoff: float = 1.0
    always: bool = False
    chance: Callable[[], float] = lambda: 0.5
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep


class Source:
    """One stream of events, after that with the id ``last_id``. ``most``: the bytes of an event."""

    def __init__(
        self, connect: Connect, most: int, reconnecting: Reconnecting, last_id: str | None = None
    ) -> None:
        self._connect = connect
        self._most = most
        self._reconnecting = reconnecting
        self._backoff = reconnecting.backoff
        self._last_id = last_id
        self._failures = 0

    async def items(self, first: Response) -> AsyncGenerator[Opened | Event, None]:
        """Yield `Opened` for each connection, and its events; ``first``: the response of the first one.

        Raises `SseError`, `Broken` and what ``connect`` raises.
        """
        response: Response | None = first
        while response is not None:
            problem: Broken | None = None
            async with aclosing(self._events(response)) as events:
                yield Opened()
                try:
                    async for event in events:
                        self._failures = 0
                        yield event
                except Broken as error:
                    problem = error
            if not self._goes_on(problem):
                if problem is not None:
                    raise problem
                return
            response = await self._reconnected(problem)

    async def _events(self, response: Response) -> AsyncGenerator[Event, None]:
        decoder = Decoder(self._most, self._last_id)
        problem: Exception | None = None
        try:
            async with aclosing(response.pieces(None)) as pieces:
                async for piece in pieces:
                    for event in decoder.feed(piece):
                        yield event
        except TooLong:
            problem = SseError(f"event exceeded max_event_bytes ({self._most})")
        except Failed as error:
            problem = Broken(error)
        finally:
            self._last_id = decoder.last_id
            if decoder.retry_ms is not None:
                self._backoff = decoder.retry_ms / 1000
            await response.aclose()
        if problem is not None:
            raise problem

    def _goes_on(self, problem: Broken | None) -> bool:
        if problem is not None and problem.category not in PASSING:
            return False
        if self._reconnecting.always:
            return True
        return problem is not None and self._last_id is not None

    async def _reconnected(self, problem: Exception | None) -> Response | None:
        """Return the response of a new connection; None when the server has no more events."""
        retries = Retries(backoff=self._backoff)
        while self._failures < self._reconnecting.most:
            await self._reconnecting.sleep(retries.pause(self._failures, self._reconnecting.chance()))
            self._failures += 1
            try:
                return await self._connect(self._last_id)
            except Refused as refused:
                if refused.status == _NO_CONTENT:
                    return None
                if refused.status not in STATUSES:
                    raise
                problem = refused
            except Broken as failed:
                if failed.category not in PASSING:
                    raise
                problem = failed
        if problem is None:
            return None
        raise problem
