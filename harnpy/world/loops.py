"""Ending an event loop in order: what it ran is over, and what it read is closed, before it is."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress


async def cancel_tasks() -> bool:
    """Cancel the other tasks of the running loop, and wait for them. Return whether there were any.

    A task that closes a generator, which asyncio begins when nobody refers to one any more, is not cancelled:
    it ends by itself, and may leave another generator to be closed.
    """
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        if inspect.iscoroutine(task.get_coro()):
            task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    return bool(left)


async def end_tasks() -> None:
    """Cancel the other tasks of the running loop, and those that they leave, until there are none.

    Not on a loop that still accepts connections: asyncio leaves one open whose acceptance is cancelled.
    """
    while await cancel_tasks():
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
