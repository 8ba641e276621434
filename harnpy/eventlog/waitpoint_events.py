"""What the topic of a waitpoint says: the waitpoint, and who waits for it. Spec: 10 §C18.

created {id, metadata, at}
completed {value, by, at}    cancelled {reason, by, at}
wait_started {wait_id, waitpoint_ids, at, deadline_at, run_id?, session_id?}
wait_resolved {wait_id, status, at}

Each is appended right behind what its writer has read, so that of two only one can be the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.eventlog.folding import TopicFold
from harnpy.eventlog.waitpoint_records import CANCELLED, COMPLETED, OPEN, Waitpoint, topic_of

if TYPE_CHECKING:
    from harnpy.eventlog.contract import EventLog

FAMILY = "waitpoint"
CREATED, WAIT_STARTED, WAIT_RESOLVED = "created", "wait_started", "wait_resolved"


class Wait(NamedTuple):
    """One wait, as the topic of one of its waitpoints has it. It is open while ``status`` is None."""

    waitpoint_ids: tuple[str, ...]
    started_at: str
    deadline_at: str | None
    status: str | None = None
    resolved_at: str | None = None
    run_id: str | None = None
    session_id: str | None = None


class Point(TopicFold):
    """The topic of one waitpoint. ``record`` has no ``created_at`` as long as nobody has created it."""

    about = "waitpoint"

    def __init__(self, log: EventLog, id: str, topic: str | None = None) -> None:
        super().__init__(log, topic_of(FAMILY, id) if topic is None else topic)
        self.record = Waitpoint(id)
        self.waits: dict[str, Wait] = {}

    @property
    def is_known(self) -> bool:
        return self.record.created_at is not None

    def _fold(self, number: int, kind: str, payload: Any) -> None:
        record = self.record
        if kind == CREATED and not self.is_known:
            known = {"id": payload["id"], "created_at": payload["at"], "metadata": payload["metadata"]}
            self.record = record._replace(**known)
        elif kind == COMPLETED and record.status == OPEN:
            self.record = record._replace(
                status=kind, value=payload["value"], completed_by=payload["by"], completed_at=payload["at"]
            )
        elif kind == CANCELLED and record.status == OPEN:
            self.record = record._replace(
                status=kind, reason=payload["reason"], cancelled_by=payload["by"], cancelled_at=payload["at"]
            )
        elif kind == WAIT_STARTED and payload["wait_id"] not in self.waits:
            self.waits[payload["wait_id"]] = Wait(
                tuple(payload["waitpoint_ids"]),
                payload["at"],
                payload["deadline_at"],
                run_id=payload.get("run_id"),
                session_id=payload.get("session_id"),
            )
        elif kind == WAIT_RESOLVED:
            wait = self.waits.get(payload["wait_id"])
            if wait is not None and wait.status is None:
                ended = wait._replace(status=payload["status"], resolved_at=payload["at"])
                self.waits[payload["wait_id"]] = ended
