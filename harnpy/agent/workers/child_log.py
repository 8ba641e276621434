"""What a worker's parent has of it in its session's log. Spec: 10 §A1.15, §C16.1.

A sub-agent writes its beginnings and ends itself (`SubAgent`); of it, this is the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.workers.worker import DELEGATED_STAGE, RUNNING, SUB_AGENT
from harnpy.session import events as kinds
from harnpy.session.turns.artifacts import recorded

if TYPE_CHECKING:
    from harnpy.agent.workers.worker import Worker
    from harnpy.reading.dicts import Dict

    Facts = list[tuple[str, Dict]]


def requested(worker: Worker) -> Facts:
    """Return the facts of a worker that is asked for; only the stage that waits for one ends with it."""
    if worker.mode == SUB_AGENT:
        return []
    metadata: Dict = {"worker": worker.mode}
    if worker.mode != DELEGATED_STAGE:
        metadata["detached"] = True
    asked = {"agent_id": worker.name, "mode": "fresh", "task": worker.task, "metadata": metadata}
    return [(kinds.CHILD_REQUESTED, _child(worker) | asked)]


def progressed(worker: Worker) -> Facts:
    """Return the facts of a worker that got another task."""
    if worker.mode == SUB_AGENT:
        return []
    return [(kinds.CHILD_PROGRESSED, _child(worker) | {"status": RUNNING, "message": worker.task})]


def started(worker: Worker) -> Facts:
    if worker.mode == SUB_AGENT:
        return []
    return [(kinds.CHILD_STARTED, _child(worker) | {"agent_id": worker.name})]


def blocked(worker: Worker) -> Facts:
    return [(kinds.CHILD_BLOCKED, _child(worker) | {"reason": "awaiting a trigger"})]


def completed(worker: Worker) -> Facts:
    if worker.mode == SUB_AGENT:
        return []
    child = _child(worker)
    kept = recorded(worker.artifacts, worker.session_id or "", child["child_id"])
    ended = child | {"summary": _summary(worker.result or {}), **_artifact_ids(worker)}
    return [*kept, (kinds.CHILD_COMPLETED, ended)]


def failed(worker: Worker) -> Facts:
    if worker.mode == SUB_AGENT:
        return []
    return [(kinds.CHILD_FAILED, _child(worker) | {"error": worker.error or ""})]


def canceled(worker: Worker, reason: str) -> Facts:
    return [(kinds.CHILD_CANCELED, _child(worker) | {"reason": reason})]


def merged(worker: Worker) -> Facts:
    """Return the facts of a worker whose outcome somebody has taken."""
    return [(kinds.CHILD_MERGED, _child(worker) | _artifact_ids(worker))]


def _child(worker: Worker) -> Dict:
    """Return who it is: a sub-agent is its session, a whole graph has none of its own."""
    if worker.session_id is None:
        return {"child_id": worker.id}
    id = worker.session_id if worker.mode == SUB_AGENT else worker.id
    return {"child_id": id, "child_session_id": worker.session_id}


def _artifact_ids(worker: Worker) -> Dict:
    ids = [artifact["id"] for artifact in worker.artifacts]
    return {"artifact_ids": ids} if ids else {}


def _summary(result: Dict) -> str:
    """Return what a worker has to say: its stage's text, or its workflow's."""
    inner: Any = result.get("result")
    said = inner if isinstance(inner, dict) else result
    return str(said.get("visible_text") or said.get("text") or "")
