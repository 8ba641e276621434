"""Server-sent events: what a watch yields, as a response that goes on. Spec: 11 §1.4."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from harnpy.client import types as t
from harnpy.serve.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from harnpy.world.connections import AsgiMessage, Receive, Send

#: Seconds that a reader may take to read what was sent.
PATIENCE: Final = 30.0

ALIVE: Final = b": still there\n\n"
_GONE: Final = b"event: gone\ndata: {}\n\n"
_HEADERS: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
_START: Final = {"type": "http.response.start", "status": 200, "headers": _HEADERS}


def encoded(value: Any) -> bytes:
    """Return a reply as JSON."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError, RecursionError):
        # Half a surrogate pair, or a very large number: a program may have put them into its log.
        from harnpy.formats.json import ordered_json

        return ordered_json(msgspec.to_builtins(value)).encode("utf-8", "replace")


# Server-sent events.


async def frames(items: AsyncIterator[t.Event | t.Chunk | t.Turn | None]) -> AsyncIterator[bytes]:
    """Yield what a watch yields as server-sent events."""
    try:
        async for item in items:
            if item is None:
                yield ALIVE
            elif isinstance(item, t.Turn):
                yield b"event: turn\ndata: %b\n\n" % encoded(item)
            elif isinstance(item, t.Chunk):
                yield b"event: chunk\ndata: %b\n\n" % encoded(item)
            else:
                yield b"event: event\nid: %d\ndata: %b\n\n" % (item.seq, encoded(item))
    except Refused as refusal:
        if refusal.code != "gone":
            raise
        yield _GONE


async def step_frames(steps: AsyncIterator[t.RunStep | None]) -> AsyncIterator[bytes]:
    """Yield the steps of a run as server-sent events."""
    async for step in steps:
        if step is None:
            yield ALIVE
        else:
            yield b"event: step\nid: %d\ndata: %b\n\n" % (step.n, encoded(step))


async def send_stream(
    frames: AsyncIterator[bytes], receive: Receive, send: Send, *, is_head: bool = False
) -> None:
    """Answer with frames as they come, until they end or the reader is gone; if ``is_head``, with none.

    Raises TimeoutError for a reader that doesn't read.
    """
    if is_head:
        await sent(send, _START)
        await sent(send, {"type": "http.response.body", "body": b""})
        return
    pump = asyncio.ensure_future(_pump(frames, send))
    gone = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait((pump, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        pump.cancel()
        await asyncio.wait((pump, gone))
    if not pump.cancelled():
        pump.result()


async def _pump(frames: AsyncIterator[bytes], send: Send) -> None:
    await sent(send, _START)
    # What comes first may come late: until then, something shows that the stream has begun.
    await sent(send, {"type": "http.response.body", "body": b": here\n\n", "more_body": True})
    async for frame in frames:
        await sent(send, {"type": "http.response.body", "body": frame, "more_body": True})
    await sent(send, {"type": "http.response.body", "body": b""})


async def sent(send: Send, message: AsgiMessage) -> None:
    async with asyncio.timeout(PATIENCE):
        await send(message)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
