"""The payloads that refer to other events: a session's creation, and the cuts that replace its window.

Spec: 10 §A1.1, §C9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.events import HISTORY_REPLACED, Event, Payload, Summary

if TYPE_CHECKING:
    from harnpy.session.events import Origin
    from harnpy.session.window import Window


class Created(Payload):
    """Payload of ``session_created``. A fork names its parent and the parent's last event at the fork."""

    __slots__ = ("fork_point", "parent")

    def __init__(self, parent: Origin | None = None, fork_point: Event | None = None) -> None:
        self.parent = parent
        self.fork_point = fork_point

    @property
    def fork_seq(self) -> int:
        """How many events the fork has from its parent; 0 when it has no parent."""
        return 0 if self.fork_point is None else self.fork_point.seq

    def data(self, event: Event) -> dict[str, Any]:
        depth = event.owner.depth
        if self.parent is None or self.fork_point is None:
            return {"depth": depth}
        return {
            "depth": depth,
            "parent_session_id": self.parent.id,
            "fork_point_event_id": self.parent.own(self.fork_point).id,
            "fork_point_seq": self.fork_seq,
        }

    def stored(self, event: Event) -> dict[str, Any]:
        depth = event.owner.depth
        if self.parent is None:
            return {"depth": depth} if depth else {}
        return {"depth": depth, "parent_session_id": self.parent.id, "fork_point_seq": self.fork_seq}


class Cut(Payload):
    """Payload of the events that replace the window.

    ``reason`` is the reason of a ``history_replaced`` (``reset``, ``set``, ``fork``, ``fork_at``) or the
    strategy of a ``compaction_triggered`` (``trim`` …). A fork onto a session that exists also brings
    its ``parent_id`` and the parent's ``registers``; ``branched_at`` is the branch index of a ``fork_at``.
    ``cutoff`` is the last event before a compaction.
    """

    __slots__ = ("branched_at", "cutoff", "parent_id", "reason", "registers", "window")

    def __init__(
        self,
        reason: str,
        window: Window,
        parent_id: str | None = None,
        registers: dict[str, tuple[int, Any]] | None = None,
        branched_at: int | None = None,
        cutoff: Event | None = None,
    ) -> None:
        self.reason = reason
        self.cutoff = cutoff
        self.window = window
        self.parent_id = parent_id
        self.registers = registers
        self.branched_at = branched_at

    def data(self, event: Event) -> dict[str, Any]:
        if event.type == HISTORY_REPLACED:
            return {"messages": list(self.window.messages()), "reason": self.reason}
        return {
            "strategy": self.reason,
            "cutoff_event_id": None if self.cutoff is None else event.owner.own(self.cutoff).id,
            "entries": [_history_entry(entry) for entry in self.window.entries.items()],
        }


def _history_entry(entry: Event) -> dict[str, Any]:
    """Return a window's message as snapshots show it. Spec: 10 §A1.7."""
    shown = {"event_id": entry.id, "event_type": entry.type, "message": entry.payload}
    return {**shown, "context_kind": "summary"} if isinstance(entry, Summary) else shown
