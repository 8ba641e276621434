"""Bytes that nobody can guess, and new ids.

Ids are UUIDs of version 7: each new one differs from all others, and later ones sort after earlier ones.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Entropy(Protocol):
        def bytes(self, count: int) -> bytes:
            """``count`` bytes, fit for a private key."""

    class Ids(Protocol):
        def new(self) -> str:
            """A new UUID, version 7, as 36 characters."""


class RealEntropy:
    bytes = staticmethod(os.urandom)


#: How far ids may be ahead of a clock that was set back, in 4096ths of a millisecond: else they go back, too.
_MOST_AHEAD = 4095
_TAIL = 1 << 62
_VERSION, _VARIANT = 7 << 76, 0b10 << 62


class RealIds:
    """Ids by the clock, down to a 4096th of a millisecond (method 3 of RFC 9562), so that those of all
    processes of a machine sort by when they were made. Within one, chance counts upward (its method 2)."""

    _ticks = _tail = 0
    _nanoseconds = staticmethod(time.time_ns)

    def new(self) -> str:
        ticks = (self._nanoseconds() << 12) // 1_000_000
        if 0 <= self._ticks - ticks < _MOST_AHEAD:
            ticks = self._ticks
            tail = self._tail + 1 + int.from_bytes(os.urandom(5))
        else:
            tail = _TAIL
        if tail >= _TAIL:
            ticks += ticks == self._ticks
            tail = int.from_bytes(os.urandom(8)) >> 3  # the upper half is for those that follow
        self._ticks, self._tail = ticks, tail
        # Written out: `uuid` takes longer to load than a short program runs, and to make one.
        digits = f"{(ticks >> 12) << 80 | _VERSION | (ticks & 0xFFF) << 64 | _VARIANT | tail:032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
