"""Real time, whatever a program's clock shows, for what must happen while the program computes."""

from __future__ import annotations

from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: What the threads are called.
NAME = "harnpy-ticker"


class Stopwatch:
    """Measures from when it is made."""

    def __init__(self) -> None:
        self._start = monotonic()

    def has_passed(self, seconds: float) -> bool:
        return monotonic() - self._start >= seconds


class Ticker:
    """Calls ``tick()`` every ``seconds``, in a thread of its own, until `stop` returns."""

    def __init__(self, seconds: float, tick: Callable[[], object]) -> None:
        self._seconds = seconds
        self._tick = tick
        self._stopped = Event()
        self._thread = Thread(target=self._run, name=NAME, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            self._tick()
