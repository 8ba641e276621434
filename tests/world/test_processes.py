"""Programs of the system: their results, and their end whatever interrupts the wait for them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from harnpy.faults import TooLarge
from harnpy.world import processes
from harnpy.world import processes as pipes
from harnpy.world.processes import RealProcesses
from tests.support import PATIENCE, wait_until

#: Two processes of one group, which end only when they are ended.
_ENDLESS = ["/bin/sh", "-c", "sleep 1000 & sleep 1000"]


#: What a program may be doing with its pipes when its time is over.
_AT_WORK = ["while true; do echo y; done", "sleep 1000 & exit 0", "exec sleep 1000 >&- 2>&-"]


class Started:
    """The programs that were started; ``then()`` is called when one is there and nobody knows it yet."""

    def __init__(self) -> None:
        self.groups: list[int] = []
        self.then: Callable[[], object] = lambda: None

    def none_is_left(self) -> bool:
        return not any(map(_is_alive, self.groups))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[Started]:
    noted = Started()

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            noted.groups.append(self.pid)
            noted.then()

    monkeypatch.setattr(subprocess, "Popen", Noted)
    yield noted
    for group in noted.groups:
        with suppress(ProcessLookupError):
            os.killpg(group, 9)


@pytest.fixture
def keyboard() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _is_alive(group: int) -> bool:
    """Whether any process of a group is there and no zombie."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, number = stat.read_text().rpartition(")")[2].split()[:3]
            if int(number) == group and state not in "ZX":
                return True
    return False


def test_a_process_that_ran() -> None:
    program = "import os, sys; print(os.environ['A'], os.getcwd()); sys.stderr.write('e'); sys.exit(3)"
    ended = asyncio.run(RealProcesses().run([sys.executable, "-c", program], "/", {"A": "1"}))
    assert (ended.code, ended.out, ended.err) == (3, b"1 /\n", b"e")


def test_a_process_whose_time_is_over_is_ended_with_all_that_it_started(started: Started) -> None:
    ended = asyncio.run(RealProcesses().run(_ENDLESS, "/", timeout=0.1))
    assert (ended.code, ended.out, ended.pid) == (None, b"", started.groups[0])
    with pytest.raises(ProcessLookupError):
        os.kill(ended.pid, 0)
    wait_until(started.none_is_left)


def test_what_has_left_the_group_and_keeps_the_pipes_is_not_waited_for_then(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    escaped = f"echo $$ >{note}.part; mv {note}.part {note}; exec sleep 1000"
    escape = f"setsid sh -c '{escaped}' & sleep 1000"

    async def cancel_after_the_escape() -> None:
        task = asyncio.ensure_future(RealProcesses().run(["/bin/sh", "-c", escape], "/"))
        while not note.exists():
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancel_after_the_escape())
    os.kill(int(note.read_text()), 9)


@pytest.mark.parametrize("command", _AT_WORK)
def test_what_a_program_does_with_its_pipes_does_not_keep_it_alive(command: str) -> None:
    ended = asyncio.run(RealProcesses().run(["/bin/sh", "-c", command], "/", timeout=0.2))
    assert (ended.code, ended.out) == (None, b"")


def test_output_has_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "MOST_OUTPUT", 100_000)
    with pytest.raises(TooLarge, match="result too large: more than 100000 bytes of output"):
        asyncio.run(RealProcesses().run(["yes"], "/"))


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        asyncio.run(RealProcesses().run(["/no/such/program"], "/"))


# Interruptions. None may leave a process behind.


class Interruption:
    """A run of an endless program in a loop that is closed as the scheduler closes its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.task = self.loop.create_task(RealProcesses().run(_ENDLESS, "/"))

    def end(self) -> str:
        """Run until the interruption comes, and return its name."""
        try:
            self.loop.run_until_complete(self.task)
        except (KeyboardInterrupt, asyncio.CancelledError) as error:
            return type(error).__name__
        finally:
            self.task.cancel()
            self.loop.run_until_complete(asyncio.gather(self.task, return_exceptions=True))
            self.loop.close()
        raise AssertionError("an endless program has ended")


def test_cancellation_while_a_program_starts(started: Started) -> None:
    run, cancelled = Interruption(), threading.Event()

    def cancel() -> None:
        run.task.cancel()
        cancelled.set()

    def then() -> None:
        run.loop.call_soon_threadsafe(cancel)
        assert cancelled.wait(PATIENCE)

    started.then = then
    assert run.end() == "CancelledError"
    wait_until(started.none_is_left)


def test_a_signal_while_a_program_starts(started: Started, keyboard: None) -> None:
    run = Interruption()
    main = threading.main_thread().ident
    assert main
    started.then = lambda: signal.pthread_kill(main, signal.SIGINT)
    assert run.end() == "KeyboardInterrupt"
    wait_until(started.none_is_left)


def test_an_interrupt_at_any_step_until_the_wait(started: Started) -> None:
    step = 1
    while _is_interrupted_at(step):
        step += 1
    assert step > 15
    wait_until(started.none_is_left)


def _is_interrupted_at(step: int) -> bool:
    """Interrupt this thread before the step of that number in `processes`; False when it waits by then."""
    run, taken = Interruption(), 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal taken
        if frame.f_code.co_filename != processes.__file__:
            return None
        frame.f_trace_opcodes = True  # which CPython 3.12 and 3.13.0 may overlook: then steps are lines
        taken += event in ("line", "opcode")
        if taken == step:
            raise KeyboardInterrupt
        return trace

    def waits() -> None:
        sys.settrace(None)
        run.task.cancel()

    before = sys.gettrace()
    run.loop.call_soon(waits)
    sys.settrace(trace)
    try:
        return run.end() == "KeyboardInterrupt"
    finally:
        sys.settrace(before)
