"""What a session's user chooses to be shown: pinned messages, and turns taken back. Spec: 10 §C5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session import events as kinds
from harnpy.session import rewind
from harnpy.session.errors import EventNotFound, RewindError, SessionBusy

if TYPE_CHECKING:
    from harnpy.session.events import Event, EventDraft, Origin
    from harnpy.session.view import View
    from harnpy.storage.contract import Stream


class Choices:
    """The part of a `Session` that says which of its messages count."""

    __slots__ = ()

    id: str
    origin: Origin
    stream: Stream
    version: int
    view: View

    def write(self, *drafts: EventDraft, expected_version: int | None = None) -> list[Event]:
        raise NotImplementedError

    def record(self, type: str, payload: Any, turn: Event | None = None) -> Event:
        raise NotImplementedError

    def setting(self, key: str, value: Any, **why: Any) -> EventDraft:
        raise NotImplementedError

    def pin(self, event_id: str) -> bool:
        """Keep a message in the window, whatever is trimmed or compacted (10 §C5). Return False if it is
        pinned already. Raises `EventNotFound` unless it is a message of the history."""
        seq = rewind.position(self.view.window.history(), self.origin, event_id)
        if seq is None:
            raise EventNotFound(event_id, self.id)
        if seq in self.view.pins:
            return False
        self.write(self.setting(rewind.REGISTER, sorted({*self.view.pins, seq})))
        return True

    def unpin(self, event_id: str) -> bool:
        """Take a pin out. Return False if the event isn't pinned."""
        seq = rewind.position(self.view.window.history(), self.origin, event_id)
        if seq not in self.view.pins:
            return False
        self.write(self.setting(rewind.REGISTER, [pin for pin in self.view.pins if pin != seq]))
        return True

    def rewind(self, turns: int = 1) -> list[dict[str, Any]]:
        """Take back the last turns; the log keeps them. Return the messages that left the window.

        Raises `RewindError` when there are fewer, `SessionBusy` while a turn is open.
        """
        self._check_idle()
        start = rewind.start_of(self.view.turns.items(), turns, self.id)
        former, now = self._move_leaf(start - 1, rewind.REWIND)
        return rewind.missing(former, now)

    def redo(self) -> list[dict[str, Any]]:
        """Undo the last rewind. Return the messages that came back.

        Raises `RewindError` when something was added since, `SessionBusy` while a turn is open.
        """
        self._check_idle()
        rewound = self.view.rewound
        if not rewound.leaves or self.view.has_added(rewound.at, self.version):
            raise RewindError(f"session '{self.id}' has nothing to redo", self.id)
        former, now = self._move_leaf(rewound.leaves[-1], rewind.REDO)
        return rewind.missing(now, former)

    def _check_idle(self) -> None:
        own = (turn for seq, turn in self.view.open_turns.items() if seq > self.view.linked_at)
        if any(
            not rewind.has_ended(turn, self.stream.read(turn.seq)) for turn in own
        ):  # a fork doesn't run its parent's
            raise SessionBusy(f"session '{self.id}' is busy: a turn is open", self.id)

    def _move_leaf(self, target: int, reason: str) -> tuple[list[Event], list[Event]]:
        """Go on behind event number ``target``. Return the entries of the window before and now."""
        former = list(self.view.window.entries.items())
        self.record(kinds.LEAF_MOVED, rewind.LeafMoved(target, reason))
        return former, self.view.window.entries.items()
