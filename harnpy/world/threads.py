"""Threads: locks, a ticker, reads that a caller may stop waiting for, and signals that wake a loop.

Python notes a signal and calls its handler when the main thread computes again. One that another thread
receives, or that comes just before the main thread begins to wait for its sockets, wakes nobody: without
`Wakeful`, Ctrl-C would have to wait for whatever the program waits for.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from _thread import start_new_thread
from contextlib import suppress
from threading import Event, Lock, RLock, Thread
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

__all__ = ["Lock", "RLock", "Reading", "Stopwatch", "Ticker", "Wakeful"]

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

    def close(self) -> None:
        if self._hears:
            signal.set_wakeup_fd(self._before)
            self._loop.remove_reader(self._reader)
            self._reader.close()
            self._writer.close()
