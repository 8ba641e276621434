"""Lines of the two streams of a protocol's client, which threads wait for, so that the loop never does.

A stop of the server needn't wait for a line, nor for a client that doesn't read.
"""

from __future__ import annotations

import asyncio
import threading
from queue import SimpleQueue
from typing import BinaryIO


class Lines:
    """The lines of a stream that a thread reads, one ahead of who asks for them."""

    def __init__(self, reader: BinaryIO) -> None:
        self._reader = reader
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self._wanted = threading.Semaphore(1)
        threading.Thread(target=self._read, daemon=True).start()

    async def next(self) -> bytes:
        """The next line; empty at the end."""
        line = await self._lines.get()
        self._wanted.release()
        return line

    def _read(self) -> None:
        line = b"-"
        while line:
            self._wanted.acquire()
            try:
                line = self._reader.readline()
            except (OSError, ValueError):
                line = b""
            try:
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
            except RuntimeError:
                return  # the loop is closed


class LineWriter:
    """Lines to a stream, in the order in which they are given."""

    def __init__(self, writer: BinaryIO) -> None:
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._lines: SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = SimpleQueue()
        threading.Thread(target=self._write, daemon=True).start()

    async def write(self, line: bytes) -> None:
        """Write a line. Who is cancelled meanwhile has it written all the same. Raises OSError when nobody
        reads any more."""
        written: asyncio.Future[None] = self._loop.create_future()
        self._lines.put((line + b"\n", written))
        await asyncio.shield(written)

    def close(self) -> None:
        """End the thread, behind the lines that it has."""
        self._lines.put(None)

    def _write(self) -> None:
        while (item := self._lines.get()) is not None:
            line, written = item
            problem: OSError | None = None
            try:
                self._writer.write(line)
                self._writer.flush()
            except (OSError, ValueError) as error:
                problem = error if isinstance(error, OSError) else OSError(str(error))
            try:
                self._loop.call_soon_threadsafe(_settle, written, problem)
            except RuntimeError:
                return  # the loop is closed


def _settle(written: asyncio.Future[None], problem: OSError | None) -> None:
    if written.done():
        return
    if problem is None:
        written.set_result(None)
    else:
        written.set_exception(problem)
        written.exception()  # somebody has looked at it: its writer may have been cancelled
