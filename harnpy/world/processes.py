"""Programs of the system."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    Variables = Mapping[str, str]

    class Processes(Protocol):
        async def run(
            self, argv: Sequence[str], cwd: str, env: Variables | None = None, timeout: float | None = None
        ) -> Ended:
            """Run a program to its end, and to that of everything that writes to its pipes.

            It reads no input. ``env`` is its whole environment, None for ours. Raises OSError when it can't
            be started.
            """


class Ended:
    """A process that ran: ``code`` is None when its time was over, negative when a signal ended it."""

    __slots__ = ("code", "err", "out", "pid")

    def __init__(self, pid: int, code: int | None, out: bytes, err: bytes) -> None:
        self.pid = pid
        self.code = code
        self.out = out
        self.err = err


class RealProcesses:
    async def run(
        self, argv: Sequence[str], cwd: str, env: Variables | None = None, timeout: float | None = None
    ) -> Ended:
        import asyncio
        import os
        from asyncio.subprocess import DEVNULL, PIPE
        from contextlib import suppress

        process = await asyncio.create_subprocess_exec(
            *argv, cwd=cwd, env=env, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
        whole = False
        try:
            out, err = await asyncio.wait_for(process.communicate(), timeout)
            whole = True
        except TimeoutError:
            return Ended(process.pid, None, b"", b"")
        finally:
            if not whole:
                # Its own group: what it has started goes with it, also if it has ended itself, or would keep
                # the pipes open.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, 9)
                await process.wait()
        return Ended(process.pid, process.returncode, out, err)
