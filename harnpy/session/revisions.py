"""A session's revision: how many saves its log tells of. Spec: 10 §C3.3.

An append is a save, unless something it writes belongs to a turn that is still open afterwards. So the
log alone decides, and a session that was loaded finds the number that the live one had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session.events import TURN_COMPLETED, TURN_STARTED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.session.events import Event
    from harnpy.storage.contract import Stream

#: A fact of an import's first event: how many saves the session had before, where it comes from.
SAVES_BEFORE = "saves_before"


class Saves:
    """Counts the saves of a log, as far as somebody has asked."""

    __slots__ = ("_batch", "_open", "_read", "count")

    def __init__(self, shared: int = 0) -> None:
        """``shared`` is how many events a fork has from its parent; it counts its own saves alone."""
        self.count = 1 if shared else 0
        self._read = shared  # the number of the last event taken into account
        self._open: set[int] = set()
        self._batch: set[int] = set()  # the turns of the append being read; 0 for none

    def copy(self) -> Saves:
        """Return the same count, to go on from here on its own."""
        copy = Saves()
        copy.count, copy._read = self.count, self._read
        copy._open, copy._batch = set(self._open), set(self._batch)
        return copy

    def resume(self, count: int, read: int, open_turns: Iterable[int]) -> None:
        """Go on behind event number ``read``, with what is known of the log up to there."""
        self.count, self._read = count, read
        self._open = set(open_turns)

    def upto(self, stream: Stream) -> int:
        """Return the revision at the stream's end."""
        self.add(stream.read(after=self._read))
        return self.count

    def add(self, events: Iterable[Event]) -> None:
        """Take the next events into account."""
        for event in events:
            self._read += 1
            if self._read == 1:
                self.count = event.body.facts.get(SAVES_BEFORE, 0)
            turn = 0 if event.turn is None else event.turn.seq
            if event.type == TURN_STARTED:
                turn = event.seq
                self._open.add(turn)
            elif event.type == TURN_COMPLETED:
                self._open.discard(turn)
            self._batch.add(turn)
            if not event.more:
                self.count += not self._batch & self._open
                self._batch.clear()
