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
    """The groups that can still grow, the oldest first: turn → (messages up to the group's end, in it)."""

    __slots__ = ("_open",)

    def __init__(self, groups: dict[Turn, tuple[int, int]] | None = None) -> None:
        self._open: dict[Turn, tuple[int, int]] = groups or {}

    @property
    def are_open(self) -> bool:
        """Whether a group can still grow: one of a turn, that is."""
        return any(self._open)

    def branch(self) -> Groups:
        """Return the same groups, to grow on their own."""
        return Groups(dict(self._open))

    def begin(self, turn: Turn, count: int) -> None:
        """Begin a group behind all ``count`` messages that there are; the turn's last one is complete."""
        self._open.pop(turn, None)
        self._open[turn] = count, 0

    def end(self, turn: Turn) -> None:
        """The turn appends nothing more."""
        self._open.pop(turn, None)

    def is_begun(self, turn: Turn) -> bool:
        """Whether the turn's group has messages."""
        return self._open.get(turn, (0, 0))[1] > 0

    def place(self, turn: Turn, count: int) -> int:
        """Return where the turn's next message stands among ``count`` others, and make room for it."""
        if turn not in self._open:
            return count
        place = self._open[turn][0]
        behind = False
        for other, (end, size) in self._open.items():
            behind = behind or other == turn
            if end > place or (behind and end == place):
                self._open[other] = end + 1, size + (other == turn)
        return place

    def moved(self, place: Callable[[int], int]) -> Groups:
        """Return the groups of a window in which each end is at ``place(end)``."""
        return Groups({turn: (place(end), size) for turn, (end, size) in self._open.items()})


def turn_of(event: Event) -> Turn:
    """Return what tells the event's turn from others."""
    turn = event.turn
    return 0 if turn is None else turn.seq or turn.id
