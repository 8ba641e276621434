"""The children of a session and what became of them, from its log alone. Spec: 10 §A1.15, §C10."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harnpy.session import events as kinds
from harnpy.session.artifacts.artifact import Artifact
from harnpy.session.children.facts import MERGED, REQUESTED, STATUS_AFTER
from harnpy.session.parts.arguments import check_session

if TYPE_CHECKING:
    from harnpy.session.events import Event
    from harnpy.session.log import Session

_TYPES: Final = frozenset({*STATUS_AFTER, kinds.CHILD_PROGRESSED, kinds.ARTIFACT_RECORDED})


@dataclass
class ChildRun:
    """A child as its parent's log has it. What nobody has said is empty.

    ``status`` is ``requested``, ``running``, ``blocked``, ``completed``, ``failed``, ``canceled`` or
    ``merged``; ``reason`` says why it is blocked or was cancelled, ``progress`` what it last reported.
    """

    child_id: str
    session_id: str = ""
    agent_id: str = ""
    mode: str = ""
    status: str = REQUESTED
    task: str = ""
    context: str = ""
    progress: str = ""
    reason: str = ""
    error: str = ""
    summary: str = ""
    note: str = ""
    usage: dict[str, Any] | None = None
    artifacts: list[Artifact] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """Return it as JSON: what is known."""
        shown = {**asdict(self), "artifacts": [artifact.data() for artifact in self.artifacts]}
        return {key: value for key, value in shown.items() if value not in ("", None, [], {})}

    def take(self, event: Event) -> None:
        """Take notice of an event about this child. What was said of an end before no longer counts."""
        data = event.data
        if event.type == kinds.ARTIFACT_RECORDED:
            self.artifacts.append(Artifact.of(data["artifact"]))
            return
        if event.type == kinds.CHILD_PROGRESSED:
            self.progress = data.get("message") or data.get("status") or self.progress
        else:
            self.status = STATUS_AFTER[event.type]
            if self.status != MERGED:
                self.reason = self.error = self.summary = ""
        self.session_id = data.get("child_session_id") or self.session_id
        self.metadata = {**self.metadata, **(data.get("metadata") or {})}
        for key in ("agent_id", "mode", "task", "context", "reason", "error", "summary", "note", "usage"):
            if data.get(key):
                setattr(self, key, data[key])


def child_runs(session: Session) -> list[ChildRun]:
    """Return the children that the session has asked for, in that order; of a fork, its own ones.

    The last event about a child decides on its status.
    """
    check_session(session)
    found: dict[str, ChildRun] = {}
    for event in session.stream.read(session.origin.shared, types=_TYPES):
        data = event.data
        id = data.get("child_id") if isinstance(data, dict) else None
        if not isinstance(id, str) or (event.type == kinds.ARTIFACT_RECORDED and id not in found):
            continue
        found.setdefault(id, ChildRun(id)).take(event)
    return list(found.values())


def child_run(session: Session, child_id: str) -> ChildRun | None:
    """Return one of the children; None where the log knows of none."""
    return next((run for run in child_runs(session) if run.child_id == child_id), None)
