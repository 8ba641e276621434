"""Messages of the Debug Adapter Protocol: sending and receiving them, and what requests carry.

Spec: 09 §15.6.
"""

from __future__ import annotations

import threading
from itertools import count
from typing import Any, BinaryIO

import msgspec

from harnpy.formats.mismatch import decoded

Body = dict[str, Any]

# What requests of the Debug Adapter Protocol carry, as far as harnpy reads it. Spec: 09 §15.6.


class Arguments(msgspec.Struct, rename="camel"):
    """The arguments of a request; those without a class of their own carry none."""


class Initialize(Arguments):
    lines_start_at1: bool = msgspec.field(default=True, name="linesStartAt1")
    columns_start_at1: bool = msgspec.field(default=True, name="columnsStartAt1")


class Launch(Arguments):
    """A launch configuration: the options of `harnpy debug`, and where to run. ``tape`` is a recorded run,
    in place of a program."""

    program: str | None = None
    tape: str | None = None
    args: list[str] = []
    cwd: str | None = None
    env: dict[str, str] = {}
    stop_on_entry: bool = False
    no_debug: bool = False
    skill_dirs: list[str] = []
    llm_mock: str | None = None


class Source(Arguments):
    path: str


class SourceBreakpoint(Arguments):
    line: int
    condition: str | None = None


class SetBreakpoints(Arguments):
    source: Source
    breakpoints: list[SourceBreakpoint] = []


class SetExceptionBreakpoints(Arguments):
    filters: list[str] = []


class OfThread(Arguments):
    thread_id: int


class StackTrace(OfThread):
    start_frame: int = 0
    levels: int = 0


class SourceText(Arguments):
    source_reference: int


class Scopes(Arguments):
    frame_id: int


class Variables(Arguments):
    variables_reference: int


class SetVariable(Variables):
    name: str
    value: str


class Evaluate(Arguments):
    expression: str
    frame_id: int | None = None


class Disconnect(Arguments):
    terminate_debuggee: bool = True


# Messages of the Debug Adapter Protocol: a `Content-Length` header, then JSON. Spec: 09 §15.6.


class ProtocolError(Exception):
    """A received message isn't one of the protocol."""


class Request(msgspec.Struct):
    """A client's request."""

    seq: int
    command: str
    arguments: dict[str, Any] | None = None


class Wire:
    """Reads in one thread; any thread may write."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO) -> None:
        self._reader = reader
        self._writer = writer
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._closed = False

    def read(self) -> Request | None:
        """The next request; None at the end. Raises ProtocolError."""
        length = self._header()
        if length is None:
            return None
        try:
            content = self._reader.read(length)
            return decoded(content, Request)
        except ValueError as error:
            raise ProtocolError(f"not a request: {error}") from None

    def _header(self) -> int | None:
        """Return the number of bytes of the next message; None at the end."""
        length = None
        while line := self._reader.readline():
            name, _, value = line.decode("ascii", "replace").strip().partition(":")
            if not name:
                if length is None:
                    raise ProtocolError("a message without Content-Length")
                return length
            if name.lower() == "content-length" and value.strip().isdecimal():
                length = int(value)
        return None

    def respond(self, request: Request, body: Body | None) -> None:
        self._write({**_reply(request), "success": True, "body": body or {}})

    def refuse(self, request: Request, message: str) -> None:
        """Report that a request failed; ``message`` is shown to the user."""
        error = {"id": 1, "format": "{text}", "variables": {"text": message}, "showUser": True}
        self._write({**_reply(request), "success": False, "message": message, "body": {"error": error}})

    def event(self, name: str, body: Body | None = None) -> None:
        self._write({"type": "event", "event": name, "body": body or {}})

    def close(self) -> None:
        """Drop whatever is written from now on: the client doesn't listen any more."""
        self._closed = True

    def _write(self, message: Body) -> None:
        with self._lock:
            if self._closed:
                return
            data = msgspec.json.encode({"seq": next(self._numbers), **message})
            try:
                self._writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
                self._writer.flush()
            except BrokenPipeError:
                self._closed = True


def _reply(request: Request) -> Body:
    return {"type": "response", "request_seq": request.seq, "command": request.command}
