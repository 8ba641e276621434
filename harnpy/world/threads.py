"""Threads: locks, a ticker, reads that a caller may stop waiting for, signals that wake a loop, and forks.

Python notes a signal and calls its handler when the main thread computes again. One that another thread
receives, or that comes just before the main thread begins to wait for its sockets, wakes nobody: without
`Wakeful`, Ctrl-C would have to wait for whatever the program waits for.
"""

from __future__ import annotations

import os
import signal
import threading
from _thread import start_new_thread
from contextlib import suppress
from threading import Event, Lock, RLock, Thread
from time import monotonic
from weakref import WeakSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from typing import Final

__all__ = ["Lock", "OfProcess", "RLock", "Reading", "Stopwatch", "Ticker", "Wakeful"]

# Real time, whatever a program's clock shows, for what must happen while the program computes.


class Stopwatch:
    """Measures from when it is made."""

    def __init__(self) -> None:
        self._start = monotonic()

    def has_passed(self, seconds: float) -> bool:
        return monotonic() - self._start >= seconds


class Ticker:
    """Calls ``tick()`` every ``seconds``, in a thread of its own, until `stop`.

    Raises MemoryError when no thread can be started.
    """

    def __init__(self, seconds: float, tick: Callable[[], object]) -> None:
        self._seconds = seconds
        self._tick = tick
        self._stopped = Event()
        self._ticking = Lock()
        try:
            # `Thread.start` waits until the thread runs: for ever where no memory was left for it to begin.
            start_new_thread(self._run, ())
        except RuntimeError:  # none for its stack either
            raise MemoryError("no other thread can start") from None

    def stop(self) -> None:
        """After this `tick` is not called, and is not running either."""
        self._stopped.set()
        with self._ticking:
            pass

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            with self._ticking:
                if not self._stopped.is_set():
                    self._tick()


class Reading:
    """A call that reads, in a thread of its own, which nothing can interrupt: it may outlast who asked."""

    def __init__(self, read: Callable[[], str]) -> None:
        self._read = read
        self._text = ""
        self._error: BaseException | None = None
        self._done = Event()
        Thread(target=self._run, name="harnpy input", daemon=True).start()

    def _run(self) -> None:
        try:
            self._text = self._read()
        except BaseException as error:
            self._error = error
        self._done.set()

    def text(self, seconds: float | None) -> str:
        """Return what was read. Raises TimeoutError when it is not there after ``seconds``."""
        if not self._done.wait(seconds):
            raise TimeoutError
        if self._error is not None:
            raise self._error
        return self._text


_NOBODY = -1


class Wakeful:
    """Has every signal wake ``loop``, which runs in the thread that makes this, until `close`.

    Only the main thread hears of signals; in others nothing happens. Whoever wanted to be woken before is
    told of the signals, too.
    """

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._hears = threading.current_thread() is threading.main_thread()
        if self._hears:
            import socket

            self._reader, self._writer = socket.socketpair()
            self._reader.setblocking(False)
            self._writer.setblocking(False)
            self._before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
            loop.add_reader(self._reader, self._pass_on)

    def _pass_on(self) -> None:
        numbers = self._reader.recv(4096)
        if self._before != _NOBODY:
            with suppress(OSError):  # closed since, or full: woken anyway
                os.write(self._before, numbers)

    def leave(self) -> None:
        """Have signals wake whoever was woken before."""
        if self._hears:
            signal.set_wakeup_fd(self._before)

    def close(self) -> None:
        self.leave()
        if self._hears:
            self._loop.remove_reader(self._reader)
            self._reader.close()
            self._writer.close()


# What a process that is forked off must leave alone: connections of the other one, and locks of its threads.
#
# A fork copies them all, and the threads that would go on with them stay behind. Ending a copy of a
# connection would end the other's. Spec: 10 §C6.


class OfProcess:
    """Belongs to the process that made it, and begins anew in one that is forked off."""

    def bind(self) -> None:
        """Have the methods below called at forks, for as long as this lives."""
        with _FORKING:
            if not _BOUND:
                _watch_forks()
            _BOUND.add(self)

    def hold(self) -> None:
        """Have the other threads stand still before a fork, where something must be whole for it."""

    def let_go(self) -> None:
        """Have them go on after it, in the process that forks."""

    def forked(self) -> None:
        """Begin anew, in the process that was forked off."""
        raise NotImplementedError


#: Of this process, as forks are.
_BOUND: Final[WeakSet[OfProcess]] = WeakSet()
_FORKING: Final = Lock()
_WATCHED: Final[list[bool]] = []


def _watch_forks() -> None:
    """Be told of forks from now on, which nobody can take back."""
    if not _WATCHED and hasattr(os, "register_at_fork"):
        _WATCHED.append(True)
        os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_begin_anew)


def _hold() -> None:
    _FORKING.acquire()
    for each in [*_BOUND]:
        each.hold()


def _let_go() -> None:
    for each in [*_BOUND]:
        each.let_go()
    _FORKING.release()


def _begin_anew() -> None:
    for each in [*_BOUND]:
        each.forked()
    _FORKING.release()
