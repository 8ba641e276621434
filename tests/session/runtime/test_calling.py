"""Calling functions that may be async, until somebody wants no result any more (10 §C7.2)."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Coroutine, Iterator

import pytest

from harnpy.session.calling import ThreadCaller


@pytest.fixture
def calls() -> Iterator[ThreadCaller]:
    calls = ThreadCaller()
    yield calls
    calls.close()


def test_what_is_stopped_before_it_begins_is_closed(calls: ThreadCaller) -> None:
    caller = calls.one()

    async def waits() -> None:
        await asyncio.Event().wait()

    def begin() -> Coroutine[None, None, None]:
        caller.stop()
        return waits()

    with pytest.raises(asyncio.CancelledError):
        caller(begin)
    gc.collect()  # a coroutine that nobody has awaited would be warned of


def test_what_waits_is_stopped_from_another_thread(calls: ThreadCaller) -> None:
    caller = calls.one()

    async def waits() -> None:
        await asyncio.to_thread(caller.stop)
        await asyncio.Event().wait()

    with pytest.raises(asyncio.CancelledError):
        caller(waits)
    with pytest.raises(asyncio.CancelledError):
        caller(lambda: None)
    assert calls(lambda: 1) == 1, "others go on"


async def _nested(depth: int, closed: list[int]) -> AsyncGenerator[int]:
    """Count from 0; the generators that this one reads from are left open when it is closed."""
    try:
        if depth == 0:
            yield 0
            yield 1
            return
        async for number in _nested(depth - 1, closed):
            yield number
    finally:
        closed.append(depth)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_what_is_left_when_it_closes_ends_in_order(
    calls: ThreadCaller, caplog: pytest.LogCaptureFixture
) -> None:
    """Generators are closed one after the other, each by a task of its own; waiting tasks are cancelled."""
    closed: list[int] = []
    kept: list[object] = []

    async def reads() -> None:
        await anext(_nested(5, closed))  # nobody refers to it any more
        pieces = _nested(2, closed)
        await anext(pieces)
        kept.append(pieces)

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            closed.append(-1)

    async def begins() -> None:
        kept.append(asyncio.create_task(waits()))
        await asyncio.sleep(0)

    calls(begins)
    calls(reads)
    loop = calls.loop()
    calls.close()
    assert loop.is_closed()
    assert not calls.is_running
    assert sorted(closed) == [-1, 0, 0, 1, 1, 2, 2, 3, 4, 5]
    kept.clear()
    gc.collect()
    assert caplog.records == [], "asyncio reports tasks that are destroyed while they are pending"
    calls.close()
    assert calls(lambda: 1) == 1, "it can begin anew"


def test_a_loop_that_nobody_closes_ends_with_its_caller() -> None:
    calls = ThreadCaller()
    loop = calls.loop()
    del calls
    gc.collect()
    assert loop.is_closed()
