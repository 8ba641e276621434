"""What a parent's log says of a child, from the time it is asked for to its end: types and payloads.

Whoever runs children writes them, the session runtime and the workers of agents alike.
Spec: 10 §A1.15, §C16.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from harnpy.session import events as kinds

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict

    Fact = tuple[str, Dict]

#: Ways in which a child's session begins: with a task, as a fork of the parent, or empty.
HANDOFF, FORK, FRESH = "handoff", "fork", "fresh"

#: What becomes of a child.
REQUESTED, RUNNING, BLOCKED = "requested", "running", "blocked"
COMPLETED, FAILED, CANCELED, MERGED = "completed", "failed", "canceled", "merged"

#: The type of an event → what the child is from there on.
STATUS_AFTER: Final = {
    kinds.CHILD_REQUESTED: REQUESTED,
    kinds.CHILD_STARTED: RUNNING,
    kinds.CHILD_BLOCKED: BLOCKED,
    kinds.CHILD_COMPLETED: COMPLETED,
    kinds.CHILD_FAILED: FAILED,
    kinds.CHILD_CANCELED: CANCELED,
    kinds.CHILD_MERGED: MERGED,
}
#: Types of events behind which a child doesn't run, until somebody has it go on.
ENDS: Final = frozenset(
    {kinds.CHILD_BLOCKED, kinds.CHILD_COMPLETED, kinds.CHILD_FAILED, kinds.CHILD_CANCELED}
)


class Child(NamedTuple):
    """Who it is. ``session_id`` is None for a child that has no session of its own."""

    id: str
    session_id: str | None = None

    def requested(
        self,
        agent_id: str,
        mode: str,
        task: str,
        *,
        context: str | None = None,
        lease: str | None = None,
        metadata: Dict | None = None,
    ) -> Fact:
        """It is asked for. ``lease`` is the key of the lease that it holds until its end."""
        asked = {"agent_id": agent_id, "mode": mode, "task": task}
        return self._fact(
            kinds.CHILD_REQUESTED, **asked, context=context, lease=lease, metadata=metadata or None
        )

    def started(self, agent_id: str, metadata: Dict | None = None) -> Fact:
        return self._fact(kinds.CHILD_STARTED, agent_id=agent_id, metadata=metadata or None)

    def progressed(
        self, message: str | None = None, status: str | None = None, metadata: Dict | None = None
    ) -> Fact:
        return self._fact(kinds.CHILD_PROGRESSED, status=status, message=message, metadata=metadata or None)

    def blocked(self, reason: str, metadata: Dict | None = None) -> Fact:
        """It waits for something outside."""
        return self._fact(kinds.CHILD_BLOCKED, reason=reason, metadata=metadata or None)

    def completed(
        self,
        summary: str | None = None,
        artifact_ids: list[str] | None = None,
        *,
        usage: Dict | None = None,
        metadata: Dict | None = None,
    ) -> Fact:
        return self._fact(
            kinds.CHILD_COMPLETED,
            summary=summary,
            artifact_ids=artifact_ids or None,
            usage=usage,
            metadata=metadata or None,
        )

    def failed(self, error: str, metadata: Dict | None = None) -> Fact:
        return self._fact(kinds.CHILD_FAILED, error=error, metadata=metadata or None)

    def canceled(self, reason: str | None = None, metadata: Dict | None = None) -> Fact:
        return self._fact(kinds.CHILD_CANCELED, reason=reason, metadata=metadata or None)

    def merged(
        self,
        artifact_ids: list[str] | None = None,
        note: str | None = None,
        metadata: Dict | None = None,
    ) -> Fact:
        """Somebody has taken in its outcome."""
        return self._fact(
            kinds.CHILD_MERGED, artifact_ids=artifact_ids or None, note=note, metadata=metadata or None
        )

    def _fact(self, type: str, **said: Any) -> Fact:
        who = {"child_id": self.id, "child_session_id": self.session_id}
        return type, {key: value for key, value in {**who, **said}.items() if value is not None}
