"""Programs of the system."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Mapping, Sequence
    from subprocess import Popen
    from typing import Protocol

    from harnpy.world.companions import Companion

    Variables = Mapping[str, str]

    class Processes(Protocol):
        async def run(
            self, argv: Sequence[str], cwd: str, env: Variables | None = None, timeout: float | None = None
        ) -> Ended:
            """Run a program to its end, and to that of everything that writes to its pipes.

            It reads no input. ``env`` is its whole environment, None for ours. Raises OSError when it can't
            be started, `TooLarge` when it writes too much.
            """

        async def start(self, argv: Sequence[str], cwd: str, env: Variables | None = None) -> Companion:
            """Start a program that we talk to while it runs, and that never outlives us.

            ``env`` is its whole environment, None for ours. Raises OSError when it can't be started.
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
        child = _Child(argv, cwd, env, timeout)
        try:
            child.start()
            return await child.ended
        finally:
            child.stop()

    async def start(self, argv: Sequence[str], cwd: str, env: Variables | None = None) -> Companion:
        from harnpy.world.companions import start

        return await start(argv, cwd, env)


class _Child:
    """A program, and the thread that starts it and waits for it.

    Python raises the exceptions of signals in the main thread only, so none comes between the start of the
    program and the moment from which it is known here. Its first process, when it has ended, stays a child
    of ours until nothing writes to the pipes: the group can be found by its number.
    """

    def __init__(self, argv: Sequence[str], cwd: str, env: Variables | None, timeout: float | None) -> None:
        from asyncio import get_running_loop
        from threading import Lock

        self._argv = argv
        self._cwd = cwd
        self._env = env
        self._timeout = timeout
        self._loop = get_running_loop()
        self.ended: Future[Ended] = self._loop.create_future()
        self._lock = Lock()
        self._process: Popen[bytes] | None = None
        self._stopped = False

    def start(self) -> None:
        from threading import Thread

        Thread(target=self._live, daemon=True).start()

    def stop(self) -> None:
        """End the program and its group unless it has ended; one that has not begun never does."""
        with self._lock:
            self._stopped = True
        if self._process:
            _kill(self._process)

    def _live(self) -> None:
        from contextlib import suppress

        outcome: Ended | Exception | None
        try:
            outcome = self._outcome()
        except Exception as error:
            outcome = error
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(self._settle, outcome)

    def _settle(self, outcome: Ended | Exception | None) -> None:
        if outcome is None or self.ended.done():
            return
        if isinstance(outcome, Exception):
            self.ended.set_exception(outcome)
        else:
            self.ended.set_result(outcome)

    def _outcome(self) -> Ended | None:
        from subprocess import TimeoutExpired

        from harnpy.world.pipes import written

        process = self._begun()
        if process is None:
            return None
        with process:
            try:
                out, err = written(process, self._timeout)
            except TimeoutExpired:
                _kill(process)
                return Ended(process.pid, None, b"", b"")
            except BaseException:
                _kill(process)
                raise
        return Ended(process.pid, process.returncode, out, err)

    def _begun(self) -> Popen[bytes] | None:
        from subprocess import DEVNULL, PIPE, Popen

        with self._lock:
            if self._stopped:
                return None
            self._process = Popen(
                self._argv,
                cwd=self._cwd,
                env=self._env,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                start_new_session=True,
            )
            return self._process


def _kill(process: Popen[bytes]) -> None:
    """End a process with its group, which may be there although it has ended itself."""
    import os
    from contextlib import suppress

    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()
