"""Children of a session as its log tells of them: facts, outcomes, records. Spec: 10 §A1.15, §C10."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from harnpy.faults import is_cancelled
from harnpy.session import events as kinds
from harnpy.session.agents import AgentDef
from harnpy.session.arguments import check_session, items, mapping, text
from harnpy.session.artifacts import Artifact
from harnpy.session.errors import ExecutionTimeout, InvalidArgument
from harnpy.session.info import (
    BLOCKED,
    CANCELED,
    COMPLETED,
    FAILED,
    FORK,
    FRESH,
    HANDOFF,
    MERGED,
    REQUESTED,
    STATUS_AFTER,
    Child,
)
from harnpy.session.send import check_agent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from harnpy.session.agents import TurnResult
    from harnpy.session.events import Event
    from harnpy.session.info import Fact
    from harnpy.session.log import Session
    from harnpy.session.worktree import Worktree

    Message = dict[str, Any]

# The children of a session and what became of them, from its log alone. Spec: 10 §A1.15, §C10.


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


# What whoever spawns a child says of it, and what they get. Spec: 10 §A1.15, §C10.


@dataclass(frozen=True)
class ChildSpec:
    """The task of a child, and how it runs.

    ``mode`` is ``handoff`` (it begins with ``task`` and ``context``, unless ``messages`` are given), ``fork``
    (with what its parent's log has) or ``fresh`` (with nothing); ``messages`` follow in each of them.
    ``agent`` is what `send` takes. A ``detached`` child goes on when the turn that spawned it is cancelled or
    fails. ``metadata`` stands on the events of the child, and on those about it.
    Without a ``child_id`` it gets a new one; the id of its session is the same unless there is a
    ``session_id``. After ``timeout`` seconds (None: the runtime's limit) its agent is cancelled. ``due_at``
    (epoch seconds or a datetime) is for `schedule_child`. A ``worktree`` is there while it runs; its agent
    finds it as `current_metadata`'s ``workspace_path``.
    """

    mode: str = HANDOFF
    task: str = ""
    context: str = ""
    messages: Iterable[Message] = ()
    agent: Any = None
    detached: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    child_id: str = ""
    session_id: str = ""
    timeout: float | None = None
    due_at: float | datetime | None = None
    worktree: Worktree | None = None

    def check(self) -> None:
        """Raise `InvalidArgument` for text of another type, an unknown mode, and what is no agent."""
        for name in ("task", "context", "child_id", "session_id"):
            text(name, getattr(self, name))
        mapping("metadata", self.metadata)
        items("messages", self.messages)
        if self.mode not in (HANDOFF, FORK, FRESH):
            raise InvalidArgument(f'spawn child: unsupported mode "{self.mode}"')
        if self.agent is None:
            raise InvalidArgument("spawn child: nil agent")
        if not isinstance(self.agent, AgentDef):
            check_agent(self.agent, self.session_id)

    def seed(self) -> list[Message]:
        """Return the messages that the child begins with."""
        messages = list(self.messages)
        if messages or self.mode != HANDOFF:
            return messages
        named = (("Task", self.task), ("Context", self.context))
        lines = [f"{name}: {text}" for name, text in named if text]
        return [{"role": "user", "content": "\n".join(lines)}] if lines else []


@dataclass(frozen=True)
class ChildRef:
    """A child that was asked for."""

    child_id: str
    session_id: str
    parent_id: str


@dataclass(frozen=True)
class ChildResult:
    """The outcome of a child.

    ``status`` is ``completed``, ``blocked`` (``reason`` and ``external_id`` say for what), ``failed``
    (``error`` tells of ``cause``) or ``canceled``. ``result`` is that of its turn, if it has come to an end.
    """

    child_id: str
    session_id: str
    status: str
    summary: str = ""
    reason: str = ""
    error: str = ""
    external_id: str | None = None
    usage: dict[str, Any] | None = None
    artifacts: list[Artifact] = field(default_factory=list)
    result: TurnResult | None = None
    cause: BaseException | None = field(default=None, compare=False)


# How a child ended: what its parent's log says of it, and what whoever waits gets. Spec: 10 §A1.15.


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
    if is_cancelled(error) or isinstance(error, KeyboardInterrupt | GeneratorExit):
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
