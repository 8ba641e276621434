"""Events that a server sends to browsers: the frame of one, and a response that is a stream of them.

Spec: 04 §21.5.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

from harnpy.faults import paced
from harnpy.formats.display import display, type_name
from harnpy.formats.json import to_json
from harnpy.net.server_messages import Response, response
from harnpy.net.server_options import ServerFault, number_option


class Event(NamedTuple):
    """One event; ``name`` None is `message`, as clients have it."""

    data: str
    name: str | None = None
    id: str | None = None
    retry_ms: int | None = None

    def frame(self) -> str:
        lines = []
        if self.id is not None:
            lines.append(f"id: {self.id}")
        if self.name is not None:
            lines.append(f"event: {self.name}")
        if self.retry_ms is not None:
            lines.append(f"retry: {self.retry_ms}")
        lines.extend(f"data: {line}" for line in paced(_lines(self.data)))
        return "\n".join(lines) + "\n\n"

    def shown(self) -> dict[str, Any]:
        """Return the event as a client receives it."""
        return {
            "type": "event",
            "event": self.name or "message",
            "data": "\n".join(_lines(self.data)),
            "id": self.id,
            "retry_ms": self.retry_ms,
        }


class Comment(NamedTuple):
    """A comment, which clients ignore: it keeps a connection alive."""

    text: str

    def frame(self) -> str:
        return "".join(f": {line}\n" for line in paced(_lines(self.text))) + "\n"

    def shown(self) -> dict[str, Any]:
        return {"type": "comment", "comment": self.text}


def event_of(given: Any) -> Event:
    """Return the event that a program gives: a dict of `EVENT`, whose keys were checked, or the data alone.

    Data that is no string is sent as JSON. Raises ServerFault.
    """
    if type(given) is not dict:
        return Event(_data(given))
    retry = given.get("retry_ms") if given.get("retry_ms") is not None else given.get("retry")
    if retry is not None and (type(retry) is not int or retry < 0):
        raise ServerFault(f"`retry_ms` of an event must be an int from 0 on, got {display(retry)}")
    return Event(_data(given.get("data")), _line(given, "event"), _line(given, "id"), retry)


def _data(value: Any) -> str:
    if value is None:
        return ""
    return value if type(value) is str else to_json(value)


def _line(given: dict[str, Any], key: str) -> str | None:
    value = given.get(key)
    if value is None:
        return None
    if type(value) not in (str, int):
        raise ServerFault(f"`{key}` of an event must be a string, got {type_name(value)}")
    text = str(value)
    if any(each in text for each in "\r\n\0"):
        raise ServerFault(f"`{key}` of an event must be one line, got {text!r}")
    return text


def _lines(text: str) -> list[str]:
    """Return the lines as clients part them: at CR LF, LF and CR, and nowhere else."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


# A response that is a stream of events: what is sent and not read yet, and how it ended. Spec: 04 §21.5.


_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    # nginx would keep events back.
    "x-accel-buffering": "no",
}


class EventStream:
    """``options`` are those of `STREAM`, which were checked."""

    def __init__(self, id: str, options: dict[str, Any]) -> None:
        self.id = id
        self.max_event_bytes = number_option(options, "max_event_bytes", 65_536, least=1)
        self.max_buffered = number_option(options, "max_buffered_events", 256, least=1)
        self.sent = self.flushed = 0
        self.closed = self.disconnected = self.cancelled = False
        self.cancel_reason: str | None = None
        #: Whether a client reads it.
        self.attached = False
        #: Called once, at the next change.
        self.waiting: list[Callable[[], None]] = []
        self._buffer: deque[Event | Comment] = deque()

    def response(self) -> Response:
        """Return the response that a handler returns to have the events sent."""
        return {
            **response(200, None, _HEADERS),
            "type": "sse_response",
            "id": self.id,
            "streaming": True,
            "max_event_bytes": self.max_event_bytes,
            "max_buffered_events": self.max_buffered,
        }

    def status(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "buffered_events": len(self._buffer),
            "sent_events": self.sent,
            "flushed_events": self.flushed,
            "closed": self.closed,
            "disconnected": self.disconnected,
            "cancelled": self.cancelled,
            "cancel_reason": self.cancel_reason,
        }

    def display(self) -> str:
        """Return its name in messages."""
        return self.id

    # --- the program's side ------------------------------------------------------------------------

    def is_open(self) -> bool:
        return not (self.closed or self.disconnected or self.cancelled)

    def is_full(self) -> bool:
        return len(self._buffer) >= self.max_buffered

    def is_empty(self) -> bool:
        return not self._buffer

    def put(self, item: Event | Comment) -> None:
        """Add what is sent next. Raises ServerFault for too large an event."""
        if len(item.frame().encode("utf-8", "surrogatepass")) > self.max_event_bytes:
            raise ServerFault(f"event exceeded max_event_bytes ({self.max_event_bytes})")
        self._buffer.append(item)
        self.sent += 1
        self._changed()

    def close(self) -> bool:
        """End the stream after what was sent. Return whether it was open, as the other ends do."""
        was_open, self.closed = self.is_open(), True
        self._changed()
        return was_open

    def cancel(self, reason: str | None) -> bool:
        """End the stream at once."""
        if not self.is_open():
            return False
        self.cancelled, self.cancel_reason = True, reason
        self._buffer.clear()
        self._changed()
        return True

    # --- the client's side -------------------------------------------------------------------------

    def disconnect(self) -> bool:
        """Note that the client reads no more. It is the usual end of one that was closed."""
        if not self.is_open():
            self._changed()
            return False
        self.disconnected = True
        self._buffer.clear()
        self._changed()
        return True

    def take(self) -> Event | Comment | None:
        """Return what is read next; None when nothing is there."""
        if not self._buffer:
            return None
        item = self._buffer.popleft()
        self.flushed += 1
        self._changed()
        return item

    async def frames(self) -> AsyncIterator[str]:
        """Yield what was sent, several frames at once when there are some, until the stream ends."""
        self.attached = True
        while True:
            frames = []
            while (item := self.take()) is not None:
                frames.append(item.frame())
            if frames:
                yield "".join(frames)
            elif not self.is_open():
                return
            else:
                changed = asyncio.Event()
                self.waiting.append(changed.set)
                await changed.wait()

    def _changed(self) -> None:
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            each()
