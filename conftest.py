"""Lets pytest collect the conformance programs, wherever it is pointed at; what tests write is in memory."""

from __future__ import annotations

import faulthandler
import gc
import math
import os
import tempfile
from atexit import register
from fcntl import LOCK_EX, LOCK_NB, flock
from glob import glob
from shutil import disk_usage, rmtree
from time import monotonic

import pytest
from _pytest.runner import runtestprotocol

pytest_plugins = ["tests.counts", "tests.conformance_plugin", "tests.peers"]

_MEMORY = "/dev/shm"
_PREFIX = "harnpy-tests."
#: Bytes that must be free.
_ROOM = 4 << 30


def _in_memory() -> None:
    """Have temporary files, and the cache of programs, in memory where it has room for them.

    A test that writes waits for the disk several times as long as for anything else. ``TMPDIR`` and
    ``XDG_CACHE_HOME`` choose other places; the processes of xdist take over those of the first.
    """
    if "TMPDIR" in os.environ or not os.access(_MEMORY, os.R_OK | os.W_OK):
        return
    if disk_usage(_MEMORY).free < _ROOM or os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC:
        return
    place = _new_place()
    register(rmtree, place, ignore_errors=True)
    os.environ["TMPDIR"] = tempfile.tempdir = place
    os.environ.setdefault("XDG_CACHE_HOME", os.path.join(place, "cache"))


def _new_place() -> str:
    """A new directory, locked for as long as this process lives. What killed runs have left is removed."""
    memory = os.open(_MEMORY, os.O_RDONLY)
    try:
        flock(memory, LOCK_EX)  # nobody looks at the new one before it is locked
        for left in glob(f"{_MEMORY}/{_PREFIX}*"):
            if not _is_in_use(left):
                rmtree(left, ignore_errors=True)
        place = tempfile.mkdtemp(prefix=_PREFIX, dir=_MEMORY)
        flock(os.open(place, os.O_RDONLY), LOCK_EX)
    finally:
        os.close(memory)
    return place


def _is_in_use(place: str) -> bool:
    """Whether the run that made a directory still lives, or is somebody else's."""
    try:
        directory = os.open(place, os.O_RDONLY)
    except OSError:
        return True
    try:
        flock(directory, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(directory)


_in_memory()


class _Hangs:
    """Let a test that hangs show where, and end its process: xdist reports its name and goes on.

    What pytest has for that starts a thread for each test, which takes as long as a short test.
    """

    #: Seconds: how long any test may take at least, and how much longer until it is ended.
    PATIENCE, SLACK = 300, 30

    def __init__(self) -> None:
        self._stderr = os.dup(2)
        self._renewed = -math.inf

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> None:
        if monotonic() - self._renewed > self.SLACK:
            faulthandler.dump_traceback_later(self.PATIENCE + self.SLACK, exit=True, file=self._stderr)
            self._renewed = monotonic()

    def pytest_unconfigure(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        os.close(self._stderr)


def pytest_configure(config: pytest.Config) -> None:
    """Watch for tests that hang. Those of a campaign may take as long as they do."""
    if not config.option.campaign:
        config.pluginmanager.register(_Hangs())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what takes long first."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection() -> None:
    """Collect tests without the garbage collector: nearly all that is made lasts to the end."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Let the garbage collector never look at what collection made, and seldom at what is new."""
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Have a process of xdist send less: six messages take as long as a short test.

    That a test begins and ends, and that setting it up and tearing it down went well, is left out; to see how
    long those take, run `--durations` without `-n`.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True
