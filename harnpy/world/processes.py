"""Programs of the system: those that run to their end, and companions, which we talk to while they run.

A companion never outlives us. It does nothing more after `stop`, and when our process dies in a way that
nothing can react to, a *guard* sees its own input end and kills the group that both are in.
"""

from __future__ import annotations

import asyncio
import os
from asyncio import Future, StreamReader, StreamReaderProtocol, StreamWriter
from contextlib import suppress
from selectors import EVENT_READ, DefaultSelector
from signal import SIGKILL, SIGTERM
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from threading import Thread
from time import monotonic

from harnpy.faults import TooLarge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Protocol

    Variables = Mapping[str, str]
    #: Is told a line, with its end if it has one.
    Heard = Callable[[str], object]

    class Processes(Protocol):
        async def run(
            self, argv: Sequence[str], cwd: str, env: Variables | None = None, timeout: float | None = None
        ) -> Ended:
            """Run a program to its end, and to that of everything that writes to its pipes.

            It reads no input. ``env`` is its whole environment, None for ours. Raises OSError when it can't
            be started, `TooLarge` when it writes too much.
            """

        async def start(
            self, argv: Sequence[str], cwd: str, env: Variables | None = None, heard: Heard | None = None
        ) -> Companion:
            """Start a program that we talk to while it runs, and that never outlives us.

            ``env`` is its whole environment, None for ours; ``heard`` is told what it writes to standard
            error, which otherwise is ours. Raises OSError when it can't be started.
            """

# What a program of the system writes, read to its end; a program that writes without end is refused.


#: Bytes that a program may write to each of its pipes, as many as the characters of a string.
MOST_OUTPUT = 2**28

_CHUNK = 2**16


def read_output(process: Popen[bytes], timeout: float | None) -> tuple[bytes, bytes]:
    """Return what a process writes to stdout and stderr until both are closed and it has ended.

    Raises TimeoutExpired when that takes longer than ``timeout``, `TooLarge` when it is too much.
    """
    assert process.stdout is not None
    assert process.stderr is not None
    pipes = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    ends = None if timeout is None else monotonic() + timeout

    def left() -> float | None:
        return None if ends is None else max(ends - monotonic(), 0)

    with DefaultSelector() as waiting:
        for pipe in pipes:
            waiting.register(pipe, EVENT_READ)
        while waiting.get_map():
            ready = waiting.select(left())
            if not ready or left() == 0:  # one that writes without end is always ready
                raise TimeoutExpired(process.args, timeout or 0)
            for key, _ in ready:
                if not _read_pipe(key.fd, pipes[key.fd]):
                    waiting.unregister(key.fd)
    process.wait(left())
    out, err = map(bytes, pipes.values())
    return out, err


def _read_pipe(pipe: int, into: bytearray) -> bool:
    """Read what there is. Return whether there may be more."""
    data = os.read(pipe, _CHUNK)
    into += data
    if len(into) > MOST_OUTPUT:
        raise TooLarge(f"more than {MOST_OUTPUT} bytes of output", MOST_OUTPUT)
    return bool(data)


#: Bytes that a line may have.
MOST_LINE = 64 * 1024 * 1024

#: Seconds that a companion has to end by itself after its input ended, and again after it was asked to.
PATIENCE = 1.0

#: Waits for the end of its input; signals that ask the group to end are not meant for it.
_GUARD = ("/bin/sh", "-c", "trap '' HUP INT TERM; read -r _; kill -KILL 0")


async def start_companion(
    argv: Sequence[str], cwd: str, env: Mapping[str, str] | None = None, heard: Heard | None = None
) -> Companion:
    """Start a program in a process group of its own.

    ``env`` is its whole environment, None for ours; ``heard`` is told the lines that it writes to standard
    error, which otherwise is ours. Raises OSError when it can't be started.
    """
    told = None if heard is None else PIPE
    guard = Popen(_GUARD, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, process_group=0)
    try:
        program = Popen(argv, stdin=PIPE, stdout=PIPE, stderr=told, cwd=cwd, env=env, process_group=guard.pid)
    except BaseException:
        _kill_group(guard)
        raise
    companion = Companion(program, guard, heard)
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

    def __init__(self, program: Popen[bytes], guard: Popen[bytes], heard: Heard | None = None) -> None:
        self.pid = program.pid
        self._program = program
        self._guard = guard
        self._loop = asyncio.get_running_loop()
        self._exited = asyncio.Event()
        self._output = StreamReader(MOST_LINE)
        self._input: StreamWriter | None = None
        self._reading: asyncio.ReadTransport | None = None
        self._errors = None if heard is None else _Errors(heard)
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
        errors = self._errors
        if errors is not None:
            await loop.connect_read_pipe(lambda: errors, program.stderr)

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

    async def last_words(self) -> str:
        """Return the last line that it has written to standard error, for one whose output has ended."""
        if self._errors is None:
            return ""
        await self._errors.wait()
        return self._errors.last

    async def stop(self) -> None:
        """End the program and its group: politely at first, at once when we are cancelled."""
        assert self._input is not None
        try:
            self._input.close()
            if not await self._ends():
                os.killpg(self._guard.pid, SIGTERM)
                await self._ends()
            if self._errors is not None:
                _kill_group(self._guard)  # so that nothing more is written
                await self._errors.wait()
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
        if self._errors is not None:
            self._errors.close()
        for pipe in (self._program.stdin, self._program.stdout, self._program.stderr):
            if pipe is not None:
                pipe.close()

    async def _ends(self) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), PATIENCE)
        return self._exited.is_set()


class _Errors(asyncio.Protocol):
    """What a companion writes to standard error, told line by line; ``last`` is the last line that says
    something."""

    def __init__(self, heard: Heard) -> None:
        self.last = ""
        self._heard = heard
        self._rest = b""
        self._ended = asyncio.Event()
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._tell(line + b"\n")
        if len(self._rest) > _CHUNK:  # a line without an end is told in pieces
            self._tell(self._rest)
            self._rest = b""

    def connection_lost(self, exc: Exception | None) -> None:
        if self._rest:
            self._tell(self._rest)
        self._ended.set()

    def _tell(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        self.last = text.strip() or self.last
        self._heard(text)

    async def wait(self) -> None:
        """Wait until all is told, a moment only: a process that left the group may hold the pipe open."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), PATIENCE)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def _kill_group(guard: Popen[bytes]) -> None:
    """End a guard and whatever is in its group, once: then its number may become somebody else's."""
    if guard.returncode is not None:
        return
    with suppress(ProcessLookupError):
        os.killpg(guard.pid, SIGKILL)
    guard.wait()
    assert guard.stdin is not None
    guard.stdin.close()


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

    async def start(
        self, argv: Sequence[str], cwd: str, env: Variables | None = None, heard: Heard | None = None
    ) -> Companion:
        return await start_companion(argv, cwd, env, heard)


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

        process = self._begun()
        if process is None:
            return None
        with process:
            try:
                out, err = read_output(process, self._timeout)
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
