"""What a session's log has of a refused call that a callback may still allow. Spec: 10 §A1.18, §C16.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.session import events as kinds

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.reading.dicts import Dict

    Record = Callable[[list[tuple[str, Dict]]], None]

#: The kind of these approvals.
PERMISSION = "permission"


class ApprovalLog:
    """``record`` appends facts to the log of the session; ``new_id`` mints the id of a request."""

    def __init__(self, session_id: str, record: Record, new_id: Callable[[], str]) -> None:
        self._session_id = session_id
        self._record = record
        self._new_id = new_id

    def asked(self, tool: str, arguments: Dict, reason: str) -> str:
        """Record that the callback is asked; ``reason`` is why the rules refuse. Return the request's id."""
        id = f"approval_{self._new_id()}"
        asked = {"id": id, "session_id": self._session_id, "tool": tool, "args": arguments}
        metadata = {"reason": reason}
        self._record([(kinds.APPROVAL_REQUESTED, {**asked, "kind": PERMISSION, "metadata": metadata})])
        return id

    def resolved(self, id: str, granted: bool, reason: str) -> None:
        decision = "allow" if granted else "deny"
        resolved = {"id": id, "decision": decision, "reason": reason, "automated": True}
        self._record([(kinds.APPROVAL_RESOLVED, resolved)])

    def canceled(self, id: str, tool: str, reason: str) -> None:
        self._record([(kinds.APPROVAL_CANCELED, {"id": id, "tool": tool, "reason": reason})])
