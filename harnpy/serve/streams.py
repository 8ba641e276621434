"""Server-sent events, and the WebSocket that controls a session. Spec: 11 §1.4, §1.5."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from harnpy.client import types as t
from harnpy.formats.mismatch import unread
from harnpy.serve.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from harnpy.serve.service import Caller, Service
    from harnpy.world.connections import AsgiMessage, Receive, Send

#: Seconds that a reader may take to read what was sent.
PATIENCE: Final = 30.0
#: Seconds between two heartbeats of a WebSocket's client.
BEAT: Final = 10.0

ALIVE: Final = b": still there\n\n"
_GONE: Final = b"event: gone\ndata: {}\n\n"
_HEADERS: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


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


async def send_stream(frames: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
    """Answer with frames as they come, until they end or the reader is gone.

    Raises TimeoutError for a reader that doesn't read.
    """
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
    await _sent(send, {"type": "http.response.start", "status": 200, "headers": _HEADERS})
    # What comes first may come late: until then, something shows that the stream has begun.
    await _sent(send, {"type": "http.response.body", "body": b": here\n\n", "more_body": True})
    async for frame in frames:
        await _sent(send, {"type": "http.response.body", "body": frame, "more_body": True})
    await _sent(send, {"type": "http.response.body", "body": b""})


async def _sent(send: Send, message: AsgiMessage) -> None:
    async with asyncio.timeout(PATIENCE):
        await send(message)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


# The WebSocket. Spec: 11 §1.5.


class Message(t.Body):
    """What a client says. ``id`` is the message's own, which the answer has, too."""

    op: Literal["send", "inject", "takeover", "release", "cancel", "answer", "allow", "deny"]
    id: int | str | None = None
    #: Of `send` and `inject`.
    prompt: t.Json = None
    content: t.Json = None
    role: Literal["user", "system", "assistant"] = "user"
    key: str | None = None
    agent: str | None = None
    timeout: float | None = None
    budget: dict[str, t.Json] | None = None
    #: Of `answer`, `allow` and `deny`: the request.
    request: str | None = None
    answer: t.Json = None
    reason: str = ""


class ControlQuery(t.Body):
    client: str
    mode: t.Mode = "controller"
    takeover: bool = False
    after: int | None = None


class Control:
    """One WebSocket: its client is attached while it is open."""

    def __init__(
        self, service: Service, caller: Caller, id: str, query: ControlQuery, receive: Receive, send: Send
    ) -> None:
        self._service = service
        self._caller = caller
        self._id = id
        self._query = query
        self._receive = receive
        self._send = send
        self._sending = asyncio.Lock()

    async def run(self) -> None:
        """Serve it until either side ends it. Raises `Refused` before it is accepted, TimeoutError for a
        client that doesn't read."""
        query = self._query
        attach = t.Attach(client=query.client, mode=query.mode, takeover=query.takeover)
        attached = await self._service.attach(self._caller, self._id, attach)
        await self._receive()  # that it connects
        await self._send({"type": "websocket.accept"})
        await self._say({"attached": attached})
        parts = [asyncio.ensure_future(part) for part in (self._hear(), self._beat(), self._show())]
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for part in parts:
                part.cancel()
            await asyncio.wait(parts)
            with suppress(Refused):
                await self._service.detach(self._caller, self._id, query.client)
        failures = [part.exception() for part in parts if not part.cancelled()]
        for failure in failures:
            if failure is not None:
                raise failure

    async def _say(self, message: Any) -> None:
        text = encoded(message).decode()
        async with self._sending:  # its parts have one connection
            await _sent(self._send, {"type": "websocket.send", "text": text})

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT)
            try:
                await self._service.heartbeat(self._caller, self._id, self._query.client)
            except Refused as refusal:
                await self._say({"error": _problem(refusal)})
                return

    async def _show(self) -> None:
        watch = self._service.watch(self._caller, self._id, after=self._query.after)
        try:
            async for item in watch:
                if item is not None:
                    await self._say({"chunk" if isinstance(item, t.Chunk) else "event": item})
        except Refused as refusal:
            await self._say({"error": _problem(refusal)})
        await self._send({"type": "websocket.close", "code": 1000})

    async def _hear(self) -> None:
        while True:
            heard = await self._receive()
            if heard["type"] == "websocket.disconnect":
                return
            given = heard.get("text") or (heard.get("bytes") or b"").decode("utf-8", "replace")
            try:
                message = msgspec.json.decode(given, type=Message)
            except (msgspec.DecodeError, RecursionError):
                problem = t.Problem(code="invalid", message=unread(given, Message))
                await self._say({"id": None, "error": problem})
                continue
            try:
                answer = {"id": message.id, "result": await self._done(message)}
            except Refused as refusal:
                answer = {"id": message.id, "error": _problem(refusal)}
            await self._say(answer)

    async def _done(self, message: Message) -> Any:
        service, caller, id, client = self._service, self._caller, self._id, self._query.client
        if message.op == "send":
            body = t.Send(
                prompt=message.prompt,
                agent=message.agent,
                client=client,
                timeout=message.timeout,
                budget=message.budget,
            )
            return await service.send(caller, id, body, message.key)
        if message.op == "inject":
            inject = t.Inject(content=message.content, role=message.role, client=client)
            return await service.inject(caller, id, inject)
        if message.op == "takeover":
            return await service.takeover(caller, id, client)
        if message.op == "release":
            return await service.attach(caller, id, t.Attach(client=client))
        if message.op == "cancel":
            return {"cancelled": await service.cancel(caller, id)}
        if message.request is None:
            raise Refused(422, "invalid", f"`{message.op}` needs `request`, the id of one")
        if message.op == "answer":
            given = t.Answer(answer=message.answer)
        else:
            given = t.Answer(decision="allow" if message.op == "allow" else "deny", reason=message.reason)
        return await service.answer(caller, message.request, given)


def _problem(refusal: Refused) -> t.Problem:
    return t.Problem(code=refusal.code, message=refusal.message)
