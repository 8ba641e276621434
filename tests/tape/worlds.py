"""Worlds for tests of tapes: one whose effects end in a random order, and one that nobody may touch."""

from __future__ import annotations

import asyncio
from io import StringIO
from random import Random
from typing import Any

import httpx2

from harnpy import Vm
from harnpy.llm.errors import CallError
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request
from harnpy.world import World
from harnpy.world.clock import RealClock
from harnpy.world.environment import Variables
from harnpy.world.host import People
from harnpy.world.random import RealRandom
from harnpy.world.streams import RealStreams
from tests.durable.runs import Outside


class Scattered(Outside):
    """An outside whose replies, their pieces, processes, responses and people come in the order of a seed."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._chance = Random(seed)
        self.clock = RealClock()
        self.environment = Variables(
            {"HOME": "/home/anna", "API_KEY": "sk-1234567890abcdef", "HARNPY_CHAOS_SCHED": f"{seed % 3}"}
        )
        self.random = RealRandom()
        self.people = People(self._answer)
        self.http = _Http(self)
        self.errors: list[str] = []
        lines = StringIO("".join(f"line {number}\n" for number in range(3)))
        self.streams = RealStreams(self.print, self.errors.append, lines)

    async def pause(self, what: str) -> None:
        """Let so much time pass as chance says."""
        await asyncio.sleep(self._chance.choice((0, 0, 0, 0.0003, 0.001)))

    async def complete(self, request: Request) -> Reply:
        if request.shown is None:
            return await super().complete(request)
        for text in ("a ", "few ", "pieces")[: self._chance.randint(0, 3)]:
            await self.pause(text)
            request.shown.piece(text)
        return await super().complete(request)

    async def stream(self, request: Request) -> Any:
        prompt = request.messages[-1]["content"]
        for number, word in enumerate(prompt.split()):
            await self.pause(word)
            if word == "fail":
                raise CallError("rate_limit", f"too much: {prompt}")
            yield f"{number}:{word}"

    async def _answer(self, request: dict[str, Any]) -> Any:
        await self.pause("a person")
        return {"response": f"answer {self._chance.random()}"}


class _Http:
    def __init__(self, outside: Scattered) -> None:
        self._outside = outside

    def behind(self, egress: Any) -> _Http:
        return self

    def client(self, surface: str, **options: Any) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self._respond))

    async def _respond(self, request: httpx2.Request) -> httpx2.Response:
        await self._outside.pause(request.url.path)
        if "refuse" in request.url.path:
            raise httpx2.ConnectError("refused")
        return httpx2.Response(200, text=f"body {self._outside._chance.random()}")


class Untouched(World):
    """A world that raises whatever it is asked for, but prints."""

    def __init__(self) -> None:
        self.printed: list[str] = []
        self.errors: list[str] = []
        parts = "clock entropy environment files host ids listening machine people processes random stopping"
        super().__init__(**{name: _Closed(name) for name in parts.split()})  # type: ignore[arg-type]
        self.http = _ClosedHttp()
        self.streams = _Printing(self.printed.append, self.errors.append)

    def output(self) -> tuple[str, str]:
        return "".join(self.printed), "".join(self.errors)


class Touched(BaseException):
    """Something outside was asked for; no program catches it."""


class _Closed:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        def refuse(*args: Any, **options: Any) -> Any:
            raise Touched(f"{self._name}.{name}")

        # The same files, but for new ones nobody else may read.
        return (lambda: self) if name == "private" else refuse


class _ClosedHttp:
    """It makes clients, which send nothing."""

    def behind(self, egress: Any) -> _ClosedHttp:
        return self

    def client(self, surface: str, **options: Any) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self._refuse))

    def _refuse(self, request: httpx2.Request) -> httpx2.Response:
        raise Touched(f"http {request.url}")


class _Printing(RealStreams):
    def read_line(self, within: float | None = None) -> str | None:
        raise Touched("streams.read_line")

    def isatty(self, stream: str) -> bool:
        raise Touched("streams.isatty")


def came_to(vm: Vm, run: Any) -> tuple[Any, str | None]:
    """Return what a program returns, or the text of its error."""
    try:
        return run(), None
    except Exception as error:
        return None, str(error)
