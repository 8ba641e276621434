"""The stdio transport: a JSON-RPC message a line, from stdin and to stdout. Spec: 09 §11.4.

Threads wait for the streams, so that the loop never does, and so that a stop needn't wait for a line. The
program gets neither stream: what it reads is empty, and what it writes to stdout goes to stderr.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, BinaryIO

import anyio
import mcp_types as types
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from harnpy.serve.lines import Lines

#: Seconds that a client which has closed its end leaves for what it has asked already.
_GRACE = 1.0


async def serve_stdio(server: Server[Any], reader: BinaryIO, writer: BinaryIO) -> None:
    """Serve the client at the other end of two streams until it closes its end."""
    async with _messages(reader, writer) as (received, to_send):
        await server.run(received, to_send, server.create_initialization_options())


@asynccontextmanager
async def _messages(
    reader: BinaryIO, writer: BinaryIO
) -> AsyncIterator[tuple[ObjectReceiveStream[SessionMessage], ObjectSendStream[SessionMessage]]]:
    send_received, received = anyio.create_memory_object_stream[Any](0)
    to_send, send = anyio.create_memory_object_stream[Any](0)
    debts = Debts()
    async with anyio.create_task_group() as group:

        async def write() -> None:
            try:
                await _write(writer, send, debts)
            except OSError:  # the client has gone
                group.cancel_scope.cancel()

        group.start_soon(_read, Lines(reader), send_received, to_send.clone(), debts)
        group.start_soon(write)
        yield received, to_send
        group.cancel_scope.cancel()


class Debts:
    """Answers that are due: requests by their ids, and refusals that are not written."""

    def __init__(self) -> None:
        self._open: set[object] = set()
        self._paid = asyncio.Event()
        self._paid.set()

    def read(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCRequest):
            self._open.add(message.id)
            self._paid.clear()
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._pay((message.params or {}).get("requestId"))

    def refused(self, refusal: types.JSONRPCError) -> None:
        self._open.add(_key(refusal))
        self._paid.clear()

    def wrote(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._pay(message.id)
            self._pay(_key(message))

    async def paid(self) -> None:
        """Wait until all are answered, but not for long."""
        with anyio.move_on_after(_GRACE):
            await self._paid.wait()

    def _pay(self, id: Any) -> None:
        self._open.discard(id)
        if not self._open:
            self._paid.set()


def _key(refusal: types.JSONRPCMessage) -> object:
    """Return what stands for a refusal: it may have no id, or that of a request."""
    return "refusal", id(refusal)


async def _read(
    lines: Lines,
    received: ObjectSendStream[SessionMessage],
    answers: ObjectSendStream[SessionMessage],
    debts: Debts,
) -> None:
    async with received, answers:
        while line := await lines.next():
            if line.isspace():
                continue
            try:
                message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValidationError:
                refusal = _refusal(line)
                if refusal is not None:
                    debts.refused(refusal)
                    await answers.send(SessionMessage(refusal))
                continue
            debts.read(message)
            await received.send(SessionMessage(message))
        await debts.paid()


def _refusal(line: bytes) -> types.JSONRPCError | None:
    """Return the answer to a line that is no message; None to what may be an answer itself."""
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        return _error(None, types.PARSE_ERROR, "Parse error: a line must be a message of JSON-RPC 2.0")
    if isinstance(given, dict) and "method" not in given and ("result" in given or "error" in given):
        return None
    id = given.get("id") if isinstance(given, dict) else None
    known = id if type(id) in (str, int) else None
    return _error(known, types.INVALID_REQUEST, "Invalid request: this is no message of JSON-RPC 2.0")


def _error(id: str | int | None, code: int, message: str) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=id, error=types.ErrorData(code=code, message=message))


async def _write(writer: BinaryIO, messages: ObjectReceiveStream[SessionMessage], debts: Debts) -> None:
    async with messages:
        async for sent in messages:
            text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
            # Abandoned when the server stops: a client that doesn't read must not keep it.
            await anyio.to_thread.run_sync(_write_line, writer, text, abandon_on_cancel=True)
            debts.wrote(sent.message)


def _write_line(writer: BinaryIO, text: str) -> None:
    writer.write(text.encode() + b"\n")
    writer.flush()
