"""What a turn appends from one of its steps to the next stands in one piece. Spec: 10 §C5.

The groups of a window stand in the order of their first events. A message that others add while a step is
under way stands behind the whole step, and nothing comes between a call and its result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.session.events import Event

    Turn = int | str


class Groups:
    """Where the groups that can still grow end: turn → number of messages up to there, the oldest first."""

    __slots__ = ("_ends",)

    def __init__(self, ends: dict[Turn, int] | None = None) -> None:
        self._ends: dict[Turn, int] = ends or {}

    def branch(self) -> Groups:
        """Return the same groups, to grow on their own."""
        return Groups(dict(self._ends))

    def begin(self, turn: Turn, count: int) -> None:
        """Begin a group behind all ``count`` messages that there are; the turn's last one is complete."""
        self._ends.pop(turn, None)
        self._ends[turn] = count

    def end(self, turn: Turn) -> None:
        """The turn appends nothing more."""
        self._ends.pop(turn, None)

    def place(self, turn: Turn, count: int) -> int:
        """Return where the turn's next message stands among ``count`` others, and make room for it."""
        place = self._ends.get(turn, count)
        if turn in self._ends:
            behind = False
            for other, end in self._ends.items():
                behind = behind or other == turn
                if end > place or (behind and end == place):
                    self._ends[other] = end + 1
        return place

    def moved(self, place: Callable[[int], int]) -> Groups:
        """Return the groups of a window in which each end is at ``place(end)``."""
        return Groups({turn: place(end) for turn, end in self._ends.items()})


def turn_of(event: Event) -> Turn:
    """Return what tells the event's turn from others."""
    turn = event.turn
    return 0 if turn is None else turn.seq or turn.id
