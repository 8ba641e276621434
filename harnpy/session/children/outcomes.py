"""How a child ended: what its parent's log says of it, and what whoever waits gets. Spec: 10 §A1.15."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harnpy.session import events as kinds
from harnpy.session.artifacts.artifact import Artifact
from harnpy.session.children.facts import BLOCKED, CANCELED, COMPLETED, FAILED, Child
from harnpy.session.children.values import ChildResult
from harnpy.session.errors import ExecutionTimeout

if TYPE_CHECKING:
    from harnpy.session.agents.values import TurnResult
    from harnpy.session.children.facts import Fact
    from harnpy.session.log import Session

_WAITING = "waiting"


def of_turn(child: Child, session_id: str, turn: TurnResult) -> ChildResult:
    """Return what the end of its turn makes of a child."""
    result = ChildResult(child.id, session_id, COMPLETED, turn.text, usage=turn.usage, result=turn)
    if turn.status == _WAITING:
        wait = _last(turn.session, kinds.WAIT_STARTED)
        reason, external_id = wait.get("reason") or _WAITING, wait.get("external_id")
        return replace(result, status=BLOCKED, reason=reason, external_id=external_id)
    if turn.status == FAILED:
        return replace(result, status=FAILED, error=turn.stop_reason)
    return result


def of_error(child: Child, session_id: str, error: BaseException, reason: str) -> ChildResult:
    """Return what an error makes of a child: a cancellation, for that ``reason``, or a failure."""
    result = ChildResult(child.id, session_id, CANCELED, reason=reason, cause=error)
    if isinstance(error, ExecutionTimeout):
        return replace(result, reason=str(error))
    if isinstance(error, asyncio.CancelledError | KeyboardInterrupt | GeneratorExit):
        return result
    return replace(result, status=FAILED, reason="", error=str(error) or type(error).__name__)


def facts_of(child: Child, result: ChildResult, metadata: dict[str, Any]) -> list[Fact]:
    """Return what the parent's log says of a child's end, its artifacts first."""
    made = [artifact.data() for artifact in result.artifacts]
    recorded: list[Fact] = [
        (kinds.ARTIFACT_RECORDED, {"child_id": child.id, "artifact": data}) for data in made
    ]
    if result.status == BLOCKED:
        where = {} if result.external_id is None else {"external_id": result.external_id}
        end = child.blocked(result.reason, {**metadata, **where})
    elif result.status == FAILED:
        end = child.failed(result.error, metadata)
    elif result.status == CANCELED:
        end = child.canceled(result.reason, metadata)
    else:
        ids = [artifact.id for artifact in result.artifacts if artifact.id]
        end = child.completed(result.summary, ids, usage=result.usage, metadata=metadata)
    return [*recorded, end]


def artifacts_of(session: Session) -> list[Artifact]:
    """Return the artifacts that a child has recorded itself, each as it was last described."""
    found: dict[str | int, Artifact] = {}
    for event in session.stream.read(session.origin.shared, types=frozenset({kinds.ARTIFACT_RECORDED})):
        artifact = Artifact.of(event.data["artifact"])
        if not artifact.internal:
            found[artifact.id or event.seq] = artifact
    return list(found.values())


def _last(session: Session, type: str) -> dict[str, Any]:
    event = next(session.stream.read(types=frozenset({type}), reverse=True, limit=1), None)
    return {} if event is None else event.data
