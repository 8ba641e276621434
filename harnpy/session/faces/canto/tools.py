"""What a log knows of tools and artifacts, and what it tells of a run. Spec: 10 §A1.13, §A1.14, §A1.16."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypedDict

from harnpy.session.artifacts.artifact import Artifact
from harnpy.session.faces.canto.events import Event
from harnpy.session.faces.canto.kinds import ARTIFACT_KIND_WORKSPACE_FILE_REF
from harnpy.session.trajectory import run_log, run_tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.session.artifacts.artifact import ArtifactStore, Body
    from harnpy.session.drafting import payload_types as types
    from harnpy.session.faces.canto.sessions import Session
    from harnpy.session.trajectory.run_log import RunLog

ArtifactRef = Artifact


class PromptCacheData(TypedDict, total=False):
    """What later requests share with a step's."""

    prefix_hash: str
    tool_schema_hash: str


class ToolHistory(TypedDict, total=False):
    """What is known of the call that a message answers."""

    id: str
    name: str
    args: str
    idempotency_key: str
    is_error: bool
    error: str


class EpisodeCall(TypedDict):
    """A call of an episode."""

    tool: str
    args: str
    result: str


class ToolExecutionRecord(NamedTuple):
    """What is known last of a call: its end, or else its begin."""

    started: types.ToolStarted | None
    completed: types.ToolCompleted | None


def find_tool_execution_by_key(session: Session, idempotency_key: str) -> ToolExecutionRecord | None:
    """Return what the log knows of the call with that key; None for nothing."""
    found = session.log.find_tool(idempotency_key)
    if found is None:
        return None
    started = None if found.started is None else Event.of(found.started).tool_started_data()
    completed = None if found.completed is None else Event.of(found.completed).tool_completed_data()
    return ToolExecutionRecord(started, completed)


def record_artifact(session: Session, data: types.ArtifactRecorded) -> ArtifactRef:
    """Record an artifact that is kept somewhere. Return its descriptor."""
    return session.log.record_artifact(ArtifactRef.of(data.artifact), data.child_id)


def store_artifact(
    session: Session, store: ArtifactStore, data: types.ArtifactRecorded, body: bytes | Body
) -> ArtifactRef:
    """Keep a body in ``store``, then record it. Return its descriptor."""
    return session.log.store_artifact(store, ArtifactRef.of(data.artifact), body, data.child_id)


def is_workspace_file_reference_artifact(ref: ArtifactRef) -> bool:
    """Whether a descriptor is a note about a file of the workspace, which no one is shown."""
    return ref.kind == ARTIFACT_KIND_WORKSPACE_FILE_REF


def export_run(session: Session) -> RunLog:
    """Return what a session did, answer by answer."""
    return run_log.export_run(session.log)


def export_run_tree(session: Session, load: Callable[[str], Session | None]) -> RunLog:
    """Return `export_run` with those of its children, and theirs; ``load(id)`` returns their sessions."""

    def found(session_id: str) -> object:
        child = load(session_id)
        return None if child is None or not child.events() else child.log

    return run_tree.export_run_tree(session.log, found)  # type: ignore[arg-type]
