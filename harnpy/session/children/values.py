"""What whoever spawns a child says of it, and what they get. Spec: 10 §A1.15, §C10."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harnpy.session.agents.definition import AgentDef
from harnpy.session.agents.running import check_agent
from harnpy.session.children.facts import FORK, FRESH, HANDOFF
from harnpy.session.errors import InvalidArgument
from harnpy.session.parts.arguments import items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from harnpy.session.agents.values import TurnResult
    from harnpy.session.artifacts.artifact import Artifact
    from harnpy.session.children.worktree import Worktree

    Message = dict[str, Any]


@dataclass(frozen=True)
class ChildSpec:
    """What to have a child do.

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
    """What became of a child.

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
