"""Ending an event loop in order: what it ran is over, and what it read is closed, before it is."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress


async def end_tasks() -> None:
    """Cancel the other tasks of the running loop, and wait for them.

    A task that closes a generator, which asyncio begins when nobody refers to one any more, is not cancelled:
    it ends by itself, and may leave another generator to be closed.
    """
    while left := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in left:
            if inspect.iscoroutine(task.get_coro()):
                task.cancel()
        await asyncio.wait(left)
        await asyncio.sleep(0)  # for what they have left


async def close_generators() -> None:
    """Close the generators that were left, one by one: asyncio closes those that read from one another
    at once, and reports that they are in each other's way."""
    loop = asyncio.get_running_loop()
    for generator in [*getattr(loop, "_asyncgens", ())]:
        with suppress(Exception):
            await generator.aclose()
    await loop.shutdown_asyncgens()
    await asyncio.sleep(0)  # for the sockets of closed connections
