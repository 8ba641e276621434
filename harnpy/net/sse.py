"""Server-sent events as a client receives them, over connections that may break. Spec: 04 §21.5.

Bytes are parsed as the HTML standard does (9.2.6). Not by `httpx2.EventSource`: that one yields events
without data, which mean nothing to anybody, and takes a byte order mark for a part of the first field.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple

from harnpy.net.errors import Broken, Refused, SseError
from harnpy.net.http_request import PASSING, STATUSES, Retries
from harnpy.world.connections import Failed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator

    from harnpy.net.http_replies import Response

    #: Opens a connection that goes on after the event with this id. Raises `Refused` and `Broken`.
    Connect = Callable[[str | None], Awaitable[Response]]

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
_RETRY = re.compile("[0-9]{1,15}")


class Event(NamedTuple):
    """``id``: of this event or the last one before it that had one. ``retry_ms``: as this event asks."""

    event: str
    data: str
    id: str | None = None
    retry_ms: int | None = None


class EventTooLong(Exception):
    """An event has more bytes than it may."""


class Decoder:
    """The events of one connection. ``most``: bytes that the lines of an event may have together.

    ``last_id`` is what a new connection begins after, ``retry_ms`` how long to wait before it, if the server
    has said so.
    """

    def __init__(self, most: int, last_id: str | None = None) -> None:
        self.last_id = last_id
        self.retry_ms: int | None = None
        self._most = most
        self._line: list[bytes] = []
        self._is_first = True
        self._ends_with_cr = False
        self._id = last_id
        self._begin()

    def _begin(self) -> None:
        self._name = ""
        self._data: list[str] = []
        self._retry: int | None = None
        self._size = 0

    def feed(self, data: bytes) -> Iterator[Event]:
        """Yield the events that ``data`` completes. Raises TooLong, perhaps after some."""
        at = 1 if self._ends_with_cr and data.startswith(b"\n") else 0
        if data:
            self._ends_with_cr = data.endswith(b"\r")
        for end in _LINE_END.finditer(data, at):
            self._take(data[at : end.start()])
            at = end.end()
            line, self._line = b"".join(self._line), []
            event = self._decode(line)
            if event is not None:
                yield event
        self._take(data[at:])

    def _take(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._most:
            raise EventTooLong
        if piece:
            self._line.append(piece)

    def _decode(self, line: bytes) -> Event | None:
        if self._is_first:
            self._is_first = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._complete()
        if line.startswith(b":"):
            self._size -= len(line)
            return None
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        match name:
            case "data":
                self._data.append(value)
            case "event":
                self._name = value
            case "id" if "\0" not in value:
                self._id = value
            case "retry" if _RETRY.fullmatch(value):
                self.retry_ms = self._retry = int(value)
        return None

    def _complete(self) -> Event | None:
        self.last_id = self._id
        event = None
        if self._data:
            event = Event(self._name or "message", "\n".join(self._data), self.last_id, self._retry)
        self._begin()
        return event


# Events over connections that break: the next one begins after the last event that came. Spec: 04 §21.5.


_NO_CONTENT = 204


class Opened(NamedTuple):
    """A connection was opened."""


class Reconnecting(NamedTuple):
    """Rules for opening a connection again that has ended.

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
        except EventTooLong:
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
