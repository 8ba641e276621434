"""The payload of a session's first event, and payloads made of what a store keeps.

Spec: 10 §A1.1, §C9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.cuts import Cut
from harnpy.session.events import (
    BRANCH_SUMMARY,
    COMPACTION_TRIGGERED,
    HISTORY_REPLACED,
    LEAF_MOVED,
    SESSION_CREATED,
    Origin,
    Payload,
)
from harnpy.session.shown.branch_summary import BranchSummary
from harnpy.session.shown.rewinding import LeafMoved

if TYPE_CHECKING:
    from harnpy.session.events import Event


#: What ``session_created`` says of the session's agent.
AGENT_FACTS = ("agent_name", "agent_label", "definition")


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


def restored_payload(type: str, data: Any, owner: Origin) -> Any:
    """Return the payload whose stored form is ``data``; ``owner`` is the session that wrote it."""
    if type == SESSION_CREATED:
        return _restored_creation(data, owner)
    if type in (HISTORY_REPLACED, COMPACTION_TRIGGERED):
        return Cut.restored(data)
    if type == LEAF_MOVED:
        return LeafMoved.restored(data)
    if type == BRANCH_SUMMARY and "from_seq" in data:
        return BranchSummary(data)
    return data


def _restored_creation(data: dict[str, Any], owner: Origin) -> Created:
    facts = {key: value for key, value in data.items() if key not in _LINEAGE}
    parent = data.get("parent_session_id")
    if parent is None:
        return Created(facts=facts)
    shared = data["fork_point_seq"]
    # An imported log holds what it shared with a parent that may not be here.
    known = owner.parent or Origin(parent, owner.world, shared=shared)
    return Created(known, shared, facts=facts)


_LINEAGE = frozenset({"parent_session_id", "fork_point_seq"})
