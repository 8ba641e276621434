"""Names that several test modules need."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread, Timer
from types import FrameType
from typing import Any

ROOT = Path(__file__).parent.parent

#: The `harnpy` fixture: `harnpy("run", "x.harn", stdin="…", NO_COLOR="1")`.
Command = Callable[..., "subprocess.CompletedProcess[str]"]
#: The `popen` fixture: `popen([sys.executable, "-c", "…"], stdout=PIPE)`.
Popen = Callable[..., "subprocess.Popen[Any]"]

#: Seconds after which a wait for another process or for a thread is given up: a last resort against
#: hanging, longer than anything takes on the busiest machine, and shorter than what pytest gives a test
#: (`conftest.py`).
PATIENCE = 240


@contextmanager
def ends(seconds: float = 60) -> Iterator[None]:
    """Fail when the block takes more than ``seconds`` of this process's own processor time.

    A last resort against hanging: however busy the machine is, that time is the same.
    """

    def ring(number: int, frame: FrameType | None) -> None:
        import pytest  # which processes of tests go without

        pytest.fail(f"no end after {seconds:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def wait_for_rewrite(path: Path, before: int) -> None:
    """Return once a file has another `last_written` than ``before``."""
    wait_until(lambda: last_written(path) not in (0, before))


def last_written(path: Path) -> int:
    """When, in nanoseconds; 0 for a file that is not there."""
    return path.stat().st_mtime_ns if path.exists() else 0


def wait_until(happened: Callable[[], object]) -> None:
    """Return as soon as ``happened()``; for what another process or thread does."""
    given_up = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < given_up, "it never happened"
        time.sleep(0.001)


def happens(event: Event) -> None:
    """Return as soon as it is set."""
    assert event.wait(PATIENCE), "it never happened"


def ended(*threads: Thread) -> None:
    """Return when they have ended."""
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), f"{thread.name} doesn't end"


@contextmanager
def patience(process: subprocess.Popen[Any]) -> Iterator[None]:
    """Kill the process unless the block ends, in which somebody waits for it: then its output ends, too."""
    timer = Timer(PATIENCE, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def processor_time(work: Callable[[], object]) -> float:
    """The seconds that this thread alone works, without the collector and without waiting for its turn."""
    gc.disable()
    try:
        start = time.thread_time()
        work()
        return time.thread_time() - start
    finally:
        gc.enable()


def assert_linear(time_of: Callable[[int], float], size: int) -> None:
    """Eight times the size may take 24 times as long, in the best of five tries; quadratic takes 64 times."""
    assert any(time_of(8 * size) < 24 * time_of(size) for _ in range(5))


def calls_made(work: Callable[[], object]) -> int:
    """The calls of functions, Python's and C's, which tell the cost of the work on any machine."""
    made = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return made
