"""The WebSocket that controls a session. Spec: 11 §1.5."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from harnpy.client import types as t
from harnpy.formats.mismatch import decoded
from harnpy.serve.operations import Number
from harnpy.serve.refusals import Refused, check_key
from harnpy.serve.streams import encoded, sent
from harnpy.world.ids import RealIds

if TYPE_CHECKING:
    from harnpy.serve.service import Caller, Service
    from harnpy.world.connections import Receive, Send

#: Seconds between two heartbeats of its client.
BEAT: Final = 10.0


class Message(t.Body):
    """What a client says. ``id`` is the message's own, which the answer has, too."""

    op: Literal["send", "inject", "takeover", "release", "cancel", "answer", "allow", "deny"]
    id: int | str | None = None
    #: Of `send` and `inject`.
    prompt: t.Json | msgspec.UnsetType = msgspec.UNSET
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
    after: Number | None = None


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
        self._connection = RealIds().new()

    async def run(self) -> None:
        """Serve it until either side ends it. Raises `Refused` before it is accepted, TimeoutError for a
        client that doesn't read."""
        query = self._query
        attach = t.Attach(client=query.client, mode=query.mode, takeover=query.takeover)
        await self._receive()  # that it connects
        try:
            attached = await self._service.attach(self._caller, self._id, attach, self._connection)
            await self._send({"type": "websocket.accept"})
            await self._say({"attached": attached})
            await self._talk()
        except TimeoutError:
            raise
        except OSError:  # from what it is sent, the client has left
            return
        finally:
            with suppress(Refused):
                await self._service.leave(self._caller, self._id, query.client, self._connection)

    async def _talk(self) -> None:
        parts = [asyncio.ensure_future(part) for part in (self._hear(), self._beat(), self._show())]
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for part in parts:
                part.cancel()
            await asyncio.wait(parts)
        failures = [part.exception() for part in parts if not part.cancelled()]
        for failure in failures:
            if failure is not None:
                raise failure

    async def _say(self, message: Any) -> None:
        text = encoded(message).decode()
        async with self._sending:  # its parts have one connection
            await sent(self._send, {"type": "websocket.send", "text": text})

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT)
            try:
                await self._service.heartbeat(self._caller, self._id, self._query.client)
            except Refused as refusal:
                await self._say({"error": _problem(refusal)})
                await self._send({"type": "websocket.close", "code": 1000})
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
                message = decoded(given, Message)
            except ValueError as error:
                problem = t.Problem(code="invalid", message=str(error))
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
            if message.prompt is msgspec.UNSET:
                raise Refused(422, "invalid", "`prompt` is missing")
            if message.key is not None:
                check_key(message.key, "key")
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
            return await service.attach(caller, id, t.Attach(client=client), self._connection)
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
