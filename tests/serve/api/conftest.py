"""A service over a store, its API as an application, and callers who are whom they say."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from starlette.routing import Router

from harnpy.net.admission import CALLER
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

    async def prompt(self, runtime: Any, id: str, prompt: Any, **options: Any) -> Any:
        text = str(prompt)
        self.runs += 1
        agent, key = (options.pop(name, None) for name in ("agent", "key"))

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


@asynccontextmanager
async def served(url: str = "memory:", agents: Any = None):
    runtime = SessionRuntime(url)
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
