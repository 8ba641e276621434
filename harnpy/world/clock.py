"""Time: what it is, letting it pass, and how a moment is written."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Clock(Protocol):
        def now(self) -> float:
            """Seconds since 1970, UTC."""

        def monotonic(self) -> float:
            """Seconds on a clock that never goes back."""

        def sleep(self, seconds: float | None) -> None:
            """Block the whole thread; None waits for a signal."""


class RealClock:
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    def sleep(self, seconds: float | None) -> None:
        time.sleep(1e9 if seconds is None else seconds)


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
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{fraction:0{digits}d}Z"


def is_rfc3339(text: str) -> bool:
    """Whether ``text`` is a date and a time with an offset, as RFC 3339 defines them."""
    import re

    return re.fullmatch(_RFC3339, text, re.ASCII) is not None
