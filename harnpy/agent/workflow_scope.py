"""The workflow that a task works for: what programs see of it, what its loops inherit, who records it.

Spec: 08 §7.2. The executor makes one; this is what the agents' room knows of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.agent.people.requests import Question
    from harnpy.reading.dicts import Dict


class ToolCall(NamedTuple):
    """A loop's tool call as it ended, with the text that the model read."""

    name: str
    id: str | None
    arguments: Any
    text: str
    rejected: bool
    ms: int
    iteration: int


class Recorder(Protocol):
    """Whatever keeps a run's record."""

    def tool_called(self, call: ToolCall) -> None: ...

    def asked(self, question: Question) -> None:
        """Record that a person was asked: `{request_id, prompt, agent, trace_id, asked_at}`."""

    def hitl(self, entry: Dict) -> None:
        """Record a request to a person as it stands (`people.history.entry`), instead of its former entry."""


@dataclass(frozen=True, slots=True)
class WorkflowScope:
    """``skills`` and ``skill_match`` are for loops that have none of their own; ``mutation`` is the mutation
    session; ``recorders`` are those of this run, followed by those of the runs around it."""

    workflow_id: str
    run_id: str
    mutation: Dict
    recorders: Sequence[Recorder]
    stage_id: str | None = None
    skills: Any = None
    skill_match: Any = None

    def inside(self, outer: WorkflowScope | None) -> WorkflowScope:
        """Return the scope of a run started by a stage of ``outer``, which records its calls too; ``outer``'s
        skills are for loops that would have none."""
        if outer is None:
            return self
        return replace(
            self,
            recorders=(*self.recorders, *outer.recorders),
            skills=outer.skills if self.skills is None else self.skills,
            skill_match=outer.skill_match if self.skill_match is None else self.skill_match,
        )

    def tool_called(self, call: ToolCall) -> None:
        for recorder in self.recorders:
            recorder.tool_called(call)

    def asked(self, question: Question) -> None:
        """Record a question, in this run's record only."""
        self.recorders[0].asked(question)

    def hitl(self, entry: Dict) -> None:
        """Record a request to a person, in this run's record only."""
        self.recorders[0].hitl(entry)
