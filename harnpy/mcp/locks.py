"""Locks of asyncio for what outlives a loop: in the REPL each input has one of its own."""

from __future__ import annotations

import asyncio


class LoopLock:
    """``async with lock():`` holds a lock of the running loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = asyncio.Lock()

    def __call__(self) -> asyncio.Lock:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._lock = loop, asyncio.Lock()
        return self._lock
