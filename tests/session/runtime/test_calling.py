"""Calling functions that may be async, until somebody wants no result any more (10 §C7.2)."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine, Iterator

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
