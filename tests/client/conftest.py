"""Both clients as one: what a test does with them is the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Protocol

import pytest

from harnpy.client import AsyncClient, Client
from tests.client.scripted import Server

Serve = Callable[..., Server]


class Face(Protocol):
    """A client that blocks. ``items``: the first ones that an iterator yields, by default all."""

    def __call__(self, verb: str, *args: Any, **options: Any) -> Any: ...
    def items(self, verb: str, *args: Any, most: int | None = None, **options: Any) -> list[Any]: ...


class Sync:
    def __init__(self, *args: Any, **options: Any) -> None:
        self.client = Client(*args, **options)

    def __call__(self, verb: str, *args: Any, **options: Any) -> Any:
        return getattr(self.client, verb)(*args, **options)

    def items(self, verb: str, *args: Any, most: int | None = None, **options: Any) -> list[Any]:
        return list(islice(getattr(self.client, verb)(*args, **options), most))

    def close(self) -> None:
        self.client.disconnect()


class Async:
    def __init__(self, *args: Any, **options: Any) -> None:
        self.client = AsyncClient(*args, **options)
        self._loop = asyncio.Runner()

    def __call__(self, verb: str, *args: Any, **options: Any) -> Any:
        return self._loop.run(getattr(self.client, verb)(*args, **options))

    def items(self, verb: str, *args: Any, most: int | None = None, **options: Any) -> list[Any]:
        async def some() -> list[Any]:
            found, items = list[Any](), getattr(self.client, verb)(*args, **options)
            async for item in items:
                found.append(item)
                if len(found) == most:
                    break
            await items.aclose()
            return found

        return self._loop.run(some())

    def close(self) -> None:
        self._loop.run(self.client.disconnect())
        self._loop.close()


@pytest.fixture(params=[Sync, Async])
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[..., Face]]:
    """Makes clients, which are closed in the end."""
    made: list[Any] = []

    def make(*args: Any, **options: Any) -> Face:
        made.append(request.param(*args, **options))
        return made[-1]

    yield make
    for face in made:
        face.close()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers, which are closed in the end."""
    made: list[Server] = []

    def start(answer: Any) -> Server:
        made.append(Server(answer))
        return made[-1]

    yield start
    for server in made:
        server.close()
