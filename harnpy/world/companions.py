"""Programs that run beside ours: we write to them and read what they answer, line by line.

A companion never outlives us. It leads no life of its own after `stop`, and when our process dies in a way
that nothing can react to, a *guard* sees its own input end and kills the group that both are in.
"""

from __future__ import annotations

import asyncio
import os
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter
from contextlib import suppress
from signal import SIGKILL, SIGTERM
from subprocess import DEVNULL, PIPE, Popen
from threading import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Bytes that a line may have.
MOST = 64 * 1024 * 1024

#: Seconds that a companion has to end by itself after its input ended, and again after it was asked to.
PATIENCE = 1.0

#: Waits for the end of its input; signals that ask the group to end are not meant for it.
_GUARD = ("/bin/sh", "-c", "trap '' HUP INT TERM; read -r _; kill -KILL 0")


async def start(argv: Sequence[str], cwd: str, env: Mapping[str, str] | None = None) -> Companion:
    """Start a program in a process group of its own; it writes to our standard error.

    ``env`` is its whole environment, None for ours. Raises OSError when it can't be started.
    """
    guard = Popen(_GUARD, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, process_group=0)
    try:
        program = Popen(argv, stdin=PIPE, stdout=PIPE, cwd=cwd, env=env, process_group=guard.pid)
    except BaseException:
        _kill_group(guard)
        raise
    companion = Companion(program, guard)
    try:
        await companion.open()
    except BaseException:
        companion.kill()
        raise
    return companion


class Companion:
    """A program that runs. The guard is in its group, so that the group's number stays ours.

    It is no subprocess of asyncio's: there, a start that is cancelled may wait without end.
    """

    def __init__(self, program: Popen[bytes], guard: Popen[bytes]) -> None:
        self.pid = program.pid
        self._program = program
        self._guard = guard
        self._loop = asyncio.get_running_loop()
        self._exited = asyncio.Event()
        self._output = StreamReader(MOST)
        self._input: StreamWriter | None = None
        self._reading: asyncio.ReadTransport | None = None
        Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        """Tell of the program's end, whoever else holds its output open."""
        self._program.wait()
        with suppress(RuntimeError):  # the loop has ended as well
            self._loop.call_soon_threadsafe(self._exited.set)

    async def open(self) -> None:
        """Connect the program's input and output to the loop."""
        loop, program = self._loop, self._program
        protocol = StreamReaderProtocol(self._output)
        self._reading, _ = await loop.connect_read_pipe(lambda: protocol, program.stdout)
        writing, flow = await loop.connect_write_pipe(
            lambda: StreamReaderProtocol(StreamReader()), program.stdin
        )
        self._input = StreamWriter(writing, flow, None, loop)

    async def write(self, line: bytes) -> None:
        """Send a line. Raises ConnectionError when the program reads no more."""
        assert self._input is not None
        self._input.write(line)
        await self._input.drain()

    async def line(self) -> bytes:
        """Return what it wrote next; empty when nothing comes any more, or a line has no end."""
        try:
            return await self._output.readline()
        except ValueError:
            return b""

    async def stop(self) -> None:
        """End the program and its group: politely at first, at once when we are cancelled."""
        assert self._input is not None
        try:
            self._input.close()
            if not await self._ends():
                os.killpg(self._guard.pid, SIGTERM)
                await self._ends()
        finally:
            self.kill()
            await self._exited.wait()

    def kill(self) -> None:
        """End the program and its group at once, and close what connects us to it."""
        _kill_group(self._guard)
        self._program.kill()  # it may have left the group
        if self._input is not None:
            writing = self._input.transport
            if writing.get_write_buffer_size():  # nobody reads it any more
                writing.abort()
            else:
                writing.close()
        if self._reading is not None:
            self._reading.close()
        for pipe in (self._program.stdin, self._program.stdout):
            assert pipe is not None
            pipe.close()

    async def _ends(self) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), PATIENCE)
        return self._exited.is_set()


def _kill_group(guard: Popen[bytes]) -> None:
    """End a guard and whatever is in its group, once: then its number may become somebody else's."""
    if guard.returncode is not None:
        return
    with suppress(ProcessLookupError):
        os.killpg(guard.pid, SIGKILL)
    guard.wait()
    assert guard.stdin is not None
    guard.stdin.close()
