"""Waiting on a loop for what a thread does."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


async def in_thread(work: Callable[[], T], cancel: Callable[[], None] | None = None) -> T:
    """Return what ``work`` returns, in a thread of its own: one that waits for others keeps nobody waiting.

    When the task is cancelled, ``cancel`` is called, and the task ends once ``work`` has.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def run() -> None:
        try:
            result = context.run(work)
        except asyncio.CancelledError:
            loop.call_soon_threadsafe(done.cancel)
        except StopIteration as error:  # which no future takes
            told = RuntimeError("a function of the session raised StopIteration")
            told.__cause__ = error
            loop.call_soon_threadsafe(done.set_exception, told)
        except BaseException as error:
            loop.call_soon_threadsafe(done.set_exception, error)
        else:
            loop.call_soon_threadsafe(done.set_result, result)

    Thread(target=run, name="session", daemon=True).start()
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        if cancel is not None:
            cancel()
        while not done.done():
            await asyncio.wait([done])
        if not done.cancelled():
            done.exception()  # somebody has looked at it
        raise
