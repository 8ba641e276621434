"""The workflow that a task works for: what programs see of it, what its loops inherit, who keeps its record.

Spec: 08 §7.2. The executor makes one; here stands what the agents' room knows of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.agent.people.requests import Question
    from harnpy.reading.dicts import Dict


class ToolCall(NamedTuple):
    """A tool call of a loop as it ended, with the text that the model got."""

    name: str
    id: str | None
    arguments: Any
    text: str
    rejected: bool
    ms: int
    iteration: int


class Recorder(Protocol):
    """Who keeps a run's record."""

    def tool_called(self, call: ToolCall) -> None: ...

    def asked(self, question: Question) -> None:
        """A person was asked: `{request_id, prompt, agent, trace_id, asked_at}`."""


@dataclass(frozen=True, slots=True)
class WorkflowScope:
    """``skills`` and ``skill_match`` are for loops that have none of their own; ``mutation`` is the mutation
    session; ``recorders`` are those of this run and then of the runs around it."""

    workflow_id: str
    run_id: str
    mutation: Dict
    recorders: Sequence[Recorder]
    stage_id: str | None = None
    skills: Any = None
    skill_match: Any = None

    def inside(self, outer: WorkflowScope | None) -> WorkflowScope:
        """The scope in a run that another one's stage has started: that one hears of it, too, and its skills
        are for loops that would have none."""
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
        """A question is this run's alone."""
        self.recorders[0].asked(question)
