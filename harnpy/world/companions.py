"""Programs that run beside ours: we write to them and read what they answer, line by line.

A companion never outlives us. It leads no life of its own after `stop`, and when our process dies in a way
that nothing can react to, a *guard* sees its own input end and kills the group that both are in.
"""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from contextlib import suppress
from signal import SIGKILL, SIGTERM
from subprocess import DEVNULL, Popen

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
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.subprocess_exec(
            lambda: _Protocol(MOST, loop),
            *argv,
            stdin=PIPE,
            stdout=PIPE,
            stderr=None,
            cwd=cwd,
            env=env,
            process_group=guard.pid,
        )
    except BaseException:
        _kill_group(guard)
        raise
    return Companion(Process(transport, protocol, loop), protocol.exited, guard)


class Companion:
    """A program that runs. The guard is in its group, so that the group's number stays ours."""

    def __init__(self, process: Process, exited: asyncio.Event, guard: Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.pid = process.pid
        self._process = process
        self._input = process.stdin
        self._output = process.stdout
        self._exited = exited
        self._guard = guard

    async def write(self, line: bytes) -> None:
        """Send a line. Raises ConnectionError when the program reads no more."""
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
        try:
            self._input.close()
            if not await self._ends():
                os.killpg(self._guard.pid, SIGTERM)
                await self._ends()
        finally:
            _kill_group(self._guard)
            await self._ends()
            self._process._transport.close()  # type: ignore[attr-defined]

    async def _ends(self) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), PATIENCE)
        return self._exited.is_set()


class _Protocol(SubprocessStreamProtocol):
    """Tells of the program's end; asyncio's own wait goes on while something else holds its output open."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit, loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


def _kill_group(guard: Popen[bytes]) -> None:
    """End a guard and whatever is in its group, once: then its number may become somebody else's."""
    if guard.returncode is not None:
        return
    with suppress(ProcessLookupError):
        os.killpg(guard.pid, SIGKILL)
    guard.wait()
    assert guard.stdin is not None
    guard.stdin.close()
