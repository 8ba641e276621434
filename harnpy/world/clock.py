"""Time: what it is, letting it pass, and how a moment is written."""

from __future__ import annotations

import os
import time
from functools import lru_cache
from math import inf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable
    from typing import Protocol

    class Clock(Protocol):
        def now(self) -> float:
            """Seconds since 1970, UTC."""

        def monotonic(self) -> float:
            """Seconds on a clock that never goes back."""

        def sleep(self, seconds: float | None) -> None:
            """Block the whole thread; None waits for a signal."""


#: Seconds of one wait for a lock. On Windows, Ctrl-C is heard of between two of them only.
_LONGEST = 0.05 if os.name == "nt" else 1e6


class RealClock:
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    def sleep(self, seconds: float | None) -> None:
        time.sleep(1e9 if seconds is None else seconds)

    @staticmethod
    def doze(seconds: float | None, bell: LockType) -> None:
        """`sleep`, until another thread releases ``bell``, a lock that is held."""
        until = inf if seconds is None else time.monotonic() + seconds
        left = until - time.monotonic()
        while left > 0 and not bell.acquire(timeout=min(left, _LONGEST)):
            left = until - time.monotonic()


class ProgramClock:
    """The clock that programs see: ``real``, until one stops it at a time. Waiting takes real time even then.

    ``now`` and ``passed`` are other functions while it is stopped: ask the clock for them each time.
    """

    now: Callable[[], float]
    passed: Callable[[], int]
    _begin: float | None
    _stopped: tuple[int, int] | None

    def __init__(self, real: Clock) -> None:
        self.real = real
        self.monotonic = real.monotonic
        self.sleep = real.sleep
        self.reset()

    @property
    def is_stopped(self) -> bool:
        return self._stopped is not None

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC."""
        return milliseconds(self.now())

    def stop(self, ms: int, passed: int = 0) -> None:
        """Have it show ``ms`` milliseconds since 1970, and that ``passed`` have passed."""
        seconds = ms / 1000
        self._stopped = ms, passed
        self.now = lambda: seconds
        self.passed = lambda: passed

    def advance(self, ms: int) -> int:
        """Put the stopped clock forward; return the milliseconds since 1970 that it shows then."""
        assert self._stopped is not None
        now, passed = self._stopped
        self.stop(now + ms, passed + ms)
        return now + ms

    def go(self) -> None:
        """Show real time again."""
        self._stopped = None
        self.now = self.real.now
        self.passed = self._really_passed

    def reset(self) -> None:
        """Show real time, as if nobody had asked yet how much has passed."""
        self._begin = None
        self.go()

    def _really_passed(self) -> int:
        """The milliseconds since this was first asked for."""
        now = self.real.monotonic()
        if self._begin is None:
            self._begin = now
        return int((now - self._begin) * 1000)


def milliseconds(seconds: float) -> int:
    """The milliseconds that have passed: those of a float that is nearly there count."""
    return round(seconds * 1e6) // 1000


_RFC3339 = (
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt ]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?"
    r"([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)"
)


def rfc3339(seconds: float, digits: int = 3) -> str:
    """Epoch seconds as RFC 3339 in UTC with that many decimals, e.g. ``2026-01-31T09:15:02.114Z``."""
    unit = 10**digits
    whole, fraction = divmod(round(seconds * unit), unit)
    return rfc3339_parts(whole, fraction, digits)


def rfc3339_parts(whole: int, fraction: int, digits: int) -> str:
    """`rfc3339` of whole seconds and a fraction that is counted in units of the last decimal."""
    return f"{_second(whole)}.{fraction:0{digits}d}Z"


@lru_cache(maxsize=4)  # times that are written follow each other closely
def _second(whole: int) -> str:
    year, month, day, hour, minute, second, *_ = time.gmtime(whole)
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}"


def is_rfc3339(text: str) -> bool:
    """Return whether ``text`` is a date and a time with an offset, as RFC 3339 defines them."""
    import re

    return re.fullmatch(_RFC3339, text, re.ASCII) is not None
