"""What has come: read ahead as far as there is room, in order, and lost to nobody who stops waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest

from harnpy.net.inbox import Inbox


class Source:
    """Yields 0, 1, … as far as ``until``; ``open`` lets them through."""

    def __init__(self, until: int, failure: Exception | None = None) -> None:
        self.read = 0
        self.open = asyncio.Event()
        self.is_closed = False
        self._until = until
        self._failure = failure

    async def items(self) -> AsyncGenerator[int, None]:
        try:
            while self.read < self._until:
                await self.open.wait()
                self.read += 1
                yield self.read - 1
            if self._failure is not None:
                raise self._failure
        finally:
            self.is_closed = True


def in_loop(test: Callable[[], Awaitable[Any]]) -> None:
    async def run() -> None:
        await test()

    asyncio.run(run())


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def taken(inbox: Inbox[int]) -> int | None:
    assert await inbox.wait(None)
    return inbox.take()


@pytest.mark.parametrize(("size", "ahead"), [(0, 256), (1, 100), (30, 4), (1000, 1)])
def test_no_more_is_read_than_there_is_room_for(size: int, ahead: int) -> None:
    async def test() -> None:
        source = Source(1000)
        source.open.set()
        inbox = Inbox(source.items(), lambda item: size, 100)
        await turns(600)
        assert source.read == ahead
        found = []
        while (item := await taken(inbox)) is not None:
            found.append(item)
            assert source.read <= len(found) + ahead
        assert found == [*range(1000)]
        assert await taken(inbox) is None

    in_loop(test)


def test_who_stops_waiting_has_taken_nothing() -> None:
    async def test() -> None:
        source = Source(3)
        inbox = Inbox(source.items(), lambda item: 1, 100)
        assert not await inbox.wait(0)
        waiting = [asyncio.ensure_future(inbox.wait(None)) for _ in range(3)]
        await turns()
        waiting[0].cancel()
        source.open.set()
        await turns()
        waiting[1].cancel()
        assert await waiting[2]
        assert [await taken(inbox) for _ in range(4)] == [0, 1, 2, None]

    in_loop(test)


def test_a_failure_comes_after_the_last_message_and_stays() -> None:
    async def test() -> None:
        source = Source(2, ValueError("broken"))
        source.open.set()
        inbox = Inbox(source.items(), lambda item: 1, 100)
        assert [await taken(inbox), await taken(inbox)] == [0, 1]
        for _ in range(2):
            with pytest.raises(ValueError, match="broken"):
                await taken(inbox)

    in_loop(test)


@pytest.mark.parametrize("count", [0, 5, 1000])
def test_closing_closes_the_source_wherever_it_is(count: int) -> None:
    async def test() -> None:
        source = Source(1000)
        if count:
            source.open.set()
        inbox = Inbox(source.items(), lambda item: 1, count + 1)
        await turns(2 * count + 5)
        await inbox.aclose()
        assert source.is_closed
        assert len(asyncio.all_tasks()) == 1

    in_loop(test)
