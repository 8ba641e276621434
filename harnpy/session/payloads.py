"""The payloads that refer to other events: a session's creation, and the cuts that replace its window.

Spec: 10 §A1.1, §C9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.events import HISTORY_REPLACED, SESSION_CREATED, Event, Origin, Payload, Summary

if TYPE_CHECKING:
    from harnpy.session.window import Window


class Created(Payload):
    """Payload of ``session_created``. A fork names its parent and how many events it has from there.

    ``point`` is the last of those, if it is at hand; ``facts`` is what else is known of the session.
    """

    __slots__ = ("_point", "facts", "fork_seq", "parent")

    def __init__(
        self,
        parent: Origin | None = None,
        fork_seq: int = 0,
        point: Event | None = None,
        facts: dict[str, Any] | None = None,
    ) -> None:
        self.parent = parent
        self.fork_seq = fork_seq
        self.facts = facts or {}
        self._point = point

    def data(self, event: Event) -> dict[str, Any]:
        data = self.stored(event)
        if self.parent is None:
            return data
        point = self._point or event.owner.find(self.fork_seq)
        id = "" if point is None else self.parent.own(point).id
        return {
            "depth": event.owner.depth,
            "parent_session_id": self.parent.id,
            "fork_point_event_id": id,
            **data,
        }

    def stored(self, event: Event) -> dict[str, Any]:
        depth = event.owner.depth
        if self.parent is None:
            return {"depth": depth, **self.facts}
        fork = {"parent_session_id": self.parent.id, "fork_point_seq": self.fork_seq}
        return {"depth": depth, **fork, **self.facts}


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


def restored_payload(type: str, data: Any, owner: Origin) -> Any:
    """Return the payload whose stored form is ``data``; ``owner`` is the session that wrote it."""
    if type == SESSION_CREATED:
        return _restored_creation(data, owner)
    return data


def _restored_creation(data: dict[str, Any], owner: Origin) -> Created:
    facts = {key: value for key, value in data.items() if key not in _LINEAGE}
    parent = data.get("parent_session_id")
    if parent is None:
        return Created(facts=facts)
    known = owner.parent or Origin(parent, owner.world)
    return Created(known, data["fork_point_seq"], facts=facts)


_LINEAGE = frozenset({"depth", "parent_session_id", "fork_point_seq"})
