"""Bytes that nobody can guess, and new ids.

Ids are UUIDs of version 7: each new one differs from all others, and later ones sort after earlier ones.
"""

from __future__ import annotations

import os
import time

from harnpy.world.threads import OfProcess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
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
#: How many ids share a call of the system for their chance.
_DRAWN = 32


class RealIds(OfProcess):
    """Ids by the clock, down to a 4096th of a millisecond (method 3 of RFC 9562), so that those of all
    processes of a machine sort by when they were made. Within one, chance counts upward (its method 2)."""

    _nanoseconds = staticmethod(time.time_ns)

    def __init__(self) -> None:
        self._ticks, self._last = 0, ""
        self._drawn: Iterator[str] = iter(())
        """The last 64 bits of the next ids, as text: to ask for chance takes longer than all else here."""
        self.bind()

    def forked(self) -> None:
        self._drawn = iter(())

    def new(self) -> str:
        # Written out here: the package uuid6 adds a millisecond to each id that comes in the same one, and so
        # runs ahead of the clock; `uuid` takes longer to load than a short program runs, and its objects take
        # twice as long as their texts.
        ticks = (self._nanoseconds() << 12) // 1_000_000
        rest = next(self._drawn, "") or self._draw()
        if 0 <= self._ticks - ticks < _MOST_AHEAD:
            ticks, rest = self._following(rest)
        # Bytes are written as hex several times as fast as numbers are formatted.
        moment, below = (ticks >> 12).to_bytes(6).hex("-", -4), (0x7000 | ticks & 0xFFF).to_bytes(2).hex()
        self._ticks, self._last = ticks, rest
        return f"{moment}-{below}-{rest}"

    def _draw(self) -> str:
        """Return 64 bits that begin with those of the variant, by chance, and have more at hand."""
        text = os.urandom(8 * _DRAWN).hex()
        first, *more = [f"8{text[at : at + 3]}-{text[at + 3 : at + 15]}" for at in range(0, len(text), 16)]
        self._drawn = iter(more)
        return first

    def _following(self, chance: str) -> tuple[int, str]:
        """Return what follows the last id at once: its moment, or the next one with this ``chance``."""
        tail = int(self._last.replace("-", ""), 16) + 1 + int(chance[-10:], 16)
        return (self._ticks, tail.to_bytes(8).hex("-", 6)) if tail < _END else (self._ticks + 1, chance)
