"""A time limit on code that can't be asked to stop."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TimedOut(BaseException):
    """The limit has passed. No `Exception`: a program's own `catch` must not stop it."""


@contextmanager
def time_limit(ms: float) -> Iterator[None]:
    """Raise `TimedOut` in the body after `ms` milliseconds. For the main thread only.

    The alarm keeps ringing, so that a `finally` of the program that runs long is stopped as well.
    """
    previous = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, ms / 1000, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _ring(number: int, frame: FrameType | None) -> None:
    raise TimedOut
