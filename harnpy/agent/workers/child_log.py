"""What a worker's parent has of it in its session's log. Spec: 10 §A1.15, §C16.1.

A sub-agent writes its beginnings and ends itself (`SubAgent`); of it, this is the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.workers.worker import DELEGATED_STAGE, RUNNING, SUB_AGENT
from harnpy.session.children.facts import FRESH, Child
from harnpy.session.turns.artifacts import recorded

if TYPE_CHECKING:
    from harnpy.agent.workers.worker import Worker
    from harnpy.reading.dicts import Dict
    from harnpy.session.children.facts import Fact

    Facts = list[Fact]


def requested(worker: Worker) -> Facts:
    """Return the facts of a worker that is asked for; only the stage that waits for one ends with it."""
    if worker.mode == SUB_AGENT:
        return []
    metadata: Dict = {"worker": worker.mode}
    if worker.mode != DELEGATED_STAGE:
        metadata["detached"] = True
    return [_child(worker).requested(worker.name, FRESH, worker.task, metadata=metadata)]


def progressed(worker: Worker) -> Facts:
    """Return the facts of a worker that got another task."""
    return [] if worker.mode == SUB_AGENT else [_child(worker).progressed(worker.task, RUNNING)]


def started(worker: Worker) -> Facts:
    return [] if worker.mode == SUB_AGENT else [_child(worker).started(worker.name)]


def blocked(worker: Worker) -> Facts:
    return [_child(worker).blocked("awaiting a trigger")]


def completed(worker: Worker) -> Facts:
    if worker.mode == SUB_AGENT:
        return []
    child = _child(worker)
    kept = recorded(worker.artifacts, worker.session_id or "", child.id)
    return [*kept, child.completed(_summary(worker.result or {}), _artifact_ids(worker))]


def failed(worker: Worker) -> Facts:
    return [] if worker.mode == SUB_AGENT else [_child(worker).failed(worker.error or "")]


def canceled(worker: Worker, reason: str) -> Facts:
    return [_child(worker).canceled(reason)]


def merged(worker: Worker) -> Facts:
    """Return the facts of a worker whose outcome somebody has taken."""
    return [_child(worker).merged(_artifact_ids(worker))]


def _child(worker: Worker) -> Child:
    """Return who it is: a sub-agent is its session, a whole graph has none of its own."""
    if worker.mode == SUB_AGENT and worker.session_id is not None:
        return Child(worker.session_id, worker.session_id)
    return Child(worker.id, worker.session_id)


def _artifact_ids(worker: Worker) -> list[str]:
    return [artifact["id"] for artifact in worker.artifacts]


def _summary(result: Dict) -> str:
    """Return what a worker has to say: its stage's text, or its workflow's."""
    inner: Any = result.get("result")
    said = inner if isinstance(inner, dict) else result
    return str(said.get("visible_text") or said.get("text") or "")
