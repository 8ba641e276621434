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
#: The last two parts begin with 8, 9, a or b: with 8 at first, so that many can follow.
_FIRST, _END = "8", "c"


class RealIds:
    """Ids by the clock, down to a 4096th of a millisecond (method 3 of RFC 9562), so that those of all
    processes of a machine sort by when they were made. Within one, chance counts upward (its method 2)."""

    _ticks, _tail = 0, _END
    _nanoseconds = staticmethod(time.time_ns)

    def new(self) -> str:
        # Written out here: the package uuid6 adds a millisecond to each id that comes in the same one, and so
        # runs ahead of the clock; `uuid` takes longer to load than a short program runs, and its objects take
        # twice as long as their texts.
        ticks = (self._nanoseconds() << 12) // 1_000_000
        if 0 <= self._ticks - ticks < _MOST_AHEAD:
            ticks = self._ticks
            following = int(self._tail.replace("-", ""), 16) + 1 + int.from_bytes(os.urandom(5))
            tail = following.to_bytes(8).hex("-", 6)
        else:
            tail = _END
        if tail >= _END:
            ticks += ticks == self._ticks
            tail = _FIRST + os.urandom(8).hex("-", 6)[1:]
        self._ticks, self._tail = ticks, tail
        head = "%015x" % ticks  # noqa: UP031  # which is faster than a format
        return f"{head[:8]}-{head[8:12]}-7{head[12:]}-{tail}"
