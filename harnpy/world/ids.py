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
#: The last 64 bits begin with 8, 9, a or b, in hex: with 8 at first, so that many can follow.
_END = 0xC << 60


class RealIds:
    """Ids by the clock, down to a 4096th of a millisecond (method 3 of RFC 9562), so that those of all
    processes of a machine sort by when they were made. Within one, chance counts upward (its method 2)."""

    _ticks, _last = 0, ""
    _nanoseconds = staticmethod(time.time_ns)

    def new(self) -> str:
        # Written out here: the package uuid6 adds a millisecond to each id that comes in the same one, and so
        # runs ahead of the clock; `uuid` takes longer to load than a short program runs, and its objects take
        # twice as long as their texts.
        ticks = (self._nanoseconds() << 12) // 1_000_000
        chance = os.urandom(8)
        rest = f"8{chance.hex('-', 6)[1:]}"
        if 0 <= self._ticks - ticks < _MOST_AHEAD:
            ticks, rest = self._following(chance, rest)
        # Bytes are written as hex several times as fast as numbers are formatted.
        moment, below = (ticks >> 12).to_bytes(6).hex("-", -4), (0x7000 | ticks & 0xFFF).to_bytes(2).hex()
        self._ticks, self._last = ticks, rest
        return f"{moment}-{below}-{rest}"

    def _following(self, chance: bytes, rest: str) -> tuple[int, str]:
        """Return what follows the last id at once: its moment, or the next one with this ``rest``."""
        tail = int(self._last.replace("-", ""), 16) + 1 + (int.from_bytes(chance) >> 24)
        return (self._ticks, tail.to_bytes(8).hex("-", 6)) if tail < _END else (self._ticks + 1, rest)
