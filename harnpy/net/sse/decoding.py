"""Bytes to server-sent events, as the HTML standard parses them (9.2.6). Spec: 04 §21.5.

Not `httpx2.EventSource`: that one yields events without data, which mean nothing to anybody, and takes a byte
order mark for a part of the first field.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
_RETRY = re.compile("[0-9]{1,15}")


class Event(NamedTuple):
    """``id``: of this event or the last one before it that had one. ``retry_ms``: as this event asks."""

    event: str
    data: str
    id: str | None = None
    retry_ms: int | None = None


class TooLong(Exception):
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
            raise TooLong
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
