"""Real time, whatever a program's clock shows, for what must happen while the program computes."""

from __future__ import annotations

from _thread import start_new_thread
from threading import Event, Lock
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


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
        except RuntimeError as error:  # none for its stack either
            raise MemoryError(str(error)) from None

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
