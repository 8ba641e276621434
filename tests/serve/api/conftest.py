"""A service over a store, its API as an application, and callers who are whom they say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from starlette.routing import Router

from harnpy.net.admission import CALLER
from harnpy.net.sse import Decoder
from harnpy.serve.api import routes
from harnpy.serve.service import Caller, Service
from harnpy.session.runtime import SessionRuntime


class Answering:
    """The agents of a test: one, `echo`, which does what its prompt says."""

    names = ("echo",)

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.runs = 0

    def kind(self, name: str) -> str:
        return "definition"

    def description(self, name: str) -> str:
        return "says what it is told"

    def definition(self, name: str) -> Any:
        return None

    def file(self, name: str) -> str | None:
        return None

    async def prompt(self, runtime: Any, id: str, prompt: Any, **options: Any) -> Any:
        text = str(prompt)
        self.runs += 1
        options.pop("agent", None)
        key = options.pop("key")

        async def answer(messages: Any, turn: Any) -> Any:
            if "tool" in text:
                yield await turn.tool("rm", {"path": "/"}, lambda args: "gone. ")
            if "ask" in text:
                yield await turn.ask("which one?")
            if "wait" in text:
                await self.go_on.wait()
            if "fail" in text:
                raise ValueError("it failed")
            for word in ("one ", "two ", "three"):
                yield word

        return await runtime.send(id, prompt, agent=answer, idempotency_key=key, **options)


class Api:
    """The API of a service. ``as_(…)`` returns a client of a caller."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.agents: Any = service.prompted
        self._router = Router(routes(service), redirect_slashes=False)

    def as_(self, principal: str, *scopes: str) -> httpx2.AsyncClient:
        caller = Caller(principal, frozenset(scopes or ("write",)))

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await self._router({**scope, CALLER: caller}, receive, send)

        return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://here")

    def watch(self, principal: str, path: str, **options: Any) -> Stream:
        """Return a stream of a caller, which begins when it is entered."""
        caller = Caller(principal, frozenset({"all" if principal == "boss" else "write"}))
        return Stream(self._router, caller, path, **options)

    def control(self, principal: str, path: str) -> Socket:
        return Socket(self._router, Caller(principal, frozenset({"write", "approve"})), path)


class Stream:
    """Server-sent events as they come. A reader that ``stalls`` never takes any."""

    def __init__(
        self,
        app: Any,
        caller: Caller,
        path: str,
        *,
        method: str = "GET",
        body: Any = None,
        headers: dict[str, str] | None = None,
        stalls: bool = False,
    ) -> None:
        target, _, query = path.partition("?")
        given = {"accept": "text/event-stream", **(headers or {})}
        self._scope = {
            "type": "http",
            "method": method,
            "path": target,
            "raw_path": target.encode(),
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
            CALLER: caller,
        }
        self._app = app
        self._body: Any = None if body is None else json.dumps(body).encode()
        self._stalls = stalls
        self._frames: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._gone = asyncio.Event()
        self.status = 0
        self.reply = b""

    async def __aenter__(self) -> Stream:
        self.task = asyncio.create_task(self._run())
        start = await self._frames.get()
        if start is None:
            await self.task
        self.status = start["status"]
        if self.status != 200:
            self.reply = (await self._frames.get())["body"]
        return self

    async def __aexit__(self, *error: Any) -> None:
        self._gone.set()
        await asyncio.wait([self.task])

    async def _run(self) -> None:
        try:
            await self._app(self._scope, self._receive, self._send)
        finally:
            self._frames.put_nowait(None)

    async def _receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        if self._stalls and message["type"] == "http.response.body":
            await asyncio.Event().wait()
        self._frames.put_nowait(message)

    async def events(self) -> AsyncIterator[tuple[str, str | None, Any]]:
        """Yield (event, id, data)."""
        decoder = Decoder(1 << 24)
        while (frame := await self._frames.get()) is not None:
            if "body" in frame:
                for event in decoder.feed(frame["body"]):
                    yield event.event, event.id if event.event == "event" else None, json.loads(event.data)


class Socket:
    """A WebSocket's other end."""

    def __init__(self, app: Any, caller: Caller, path: str) -> None:
        target, _, query = path.partition("?")
        self._scope = {
            "type": "websocket",
            "path": target,
            "raw_path": target.encode(),
            "query_string": query.encode(),
            "headers": [],
            CALLER: caller,
        }
        self._app = app
        self._said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._heard: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._said.put_nowait({"type": "websocket.connect"})
        self.passed: list[Any] = []

    async def __aenter__(self) -> Socket:
        self.task = asyncio.create_task(self._app(self._scope, self._said.get, self._heard.put))
        self.first = await self._heard.get()
        return self

    async def __aexit__(self, *error: Any) -> None:
        self._said.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await self.task

    async def hear(self) -> Any:
        heard = await self._heard.get()
        return json.loads(heard["text"]) if "text" in heard else heard

    async def say(self, **message: Any) -> Any:
        """Return the answer to a message; what comes before it is `passed`."""
        self._said.put_nowait({"type": "websocket.receive", "text": json.dumps({"id": 1, **message})})
        while "id" not in (heard := await self.hear()):
            self.passed.append(heard)
        return heard


@asynccontextmanager
async def served(url: str = "memory:", agents: Any = None, **options: Any):
    runtime = SessionRuntime(url, share_chunks=True, **options)
    service = Service(runtime, Answering() if agents is None else agents)
    try:
        yield Api(service)
    finally:
        await service.close()
        runtime.close()


@pytest.fixture
def run():
    """Run a test's coroutine, which may take a while and no longer."""

    def run(test: Any) -> Any:
        return asyncio.run(asyncio.wait_for(test, 20))

    return run
