"""Waiting for a reply that somebody watches: what is left isn't asked for any more."""

from collections.abc import Awaitable
from inspect import CORO_CLOSED, getcoroutinestate
from typing import Any

import pytest

from harnpy.llm.waiting import Watched


async def _reply() -> str:
    return "never"


class _Left(BaseException):
    pass


def _leaves(awaitable: Awaitable[Any]) -> Any:
    """Wait as a task that ends before anything begins."""
    awaitable.close()  # type: ignore[attr-defined]
    raise _Left


def test_a_reply_that_was_never_waited_for_is_closed() -> None:
    reply = _reply()
    with pytest.raises(_Left):
        Watched(reply, lambda: None).result(_leaves)
    assert getcoroutinestate(reply) == CORO_CLOSED
