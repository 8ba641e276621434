"""The workflow that a task works for: what programs see of it, what its loops inherit, who keeps its record.

Spec: 08 §7.2. The executor makes one; here stands what the agents' room knows of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    Dict = dict[str, Any]


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

    def asked(self, question: Dict) -> None:
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

    def tool_called(self, call: ToolCall) -> None:
        for recorder in self.recorders:
            recorder.tool_called(call)

    def asked(self, question: Dict) -> None:
        """A question is this run's alone."""
        self.recorders[0].asked(question)
