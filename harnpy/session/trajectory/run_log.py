"""A run as what was read and what was said to it, answer by answer. Spec: 10 §A1.16, §C10.

It is read from the log alone, in its order, whatever windows have shown since. What was taken back is left
out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harnpy.session import events as kinds
from harnpy.session.cuts import Cut
from harnpy.session.parts.arguments import check_session
from harnpy.session.shown.entries import entry_of
from harnpy.session.shown.message_parts import results_of
from harnpy.session.shown.rewinding import active
from harnpy.session.trajectory.answer import Answer, RunTurn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.session.artifacts.artifact import Artifact
    from harnpy.session.events import Event
    from harnpy.session.log import Session
    from harnpy.session.shown.entries import HistoryEntry


@dataclass(frozen=True)
class RunLog:
    """What a session did. Times are RFC 3339, of its first and last event; ``total_cost`` is in USD.

    ``child_runs`` is None unless a tree was asked for (`export_run_tree`).
    """

    session_id: str
    agent_id: str
    start_time: str
    end_time: str
    turns: list[RunTurn]
    total_cost: float = 0.0
    metadata: dict[str, Any] = field(default_factory=dict)
    child_runs: list[ChildLog] | None = None

    def data(self) -> dict[str, Any]:
        """Return it as JSON."""
        shown: dict[str, Any] = {
            "session_id": self.session_id,
            "agent_id": self.agent_id,
            "start_time": self.start_time,
            "end_time": self.end_time,
            "turns": [turn.data() for turn in self.turns],
            "total_cost": self.total_cost,
        }
        if self.metadata:
            shown["metadata"] = self.metadata
        if self.child_runs is not None:
            shown["child_runs"] = [child.data() for child in self.child_runs]
        return shown


@dataclass(frozen=True)
class ChildLog:
    """A child in its parent's tree. ``run`` is None where there is no log of it, or it stands above."""

    child_id: str
    session_id: str
    agent_id: str
    mode: str
    status: str
    summary: str = ""
    artifacts: list[Artifact] = field(default_factory=list)
    run: RunLog | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """Return it as JSON."""
        known = {key: getattr(self, key) for key in ("child_id", "session_id", "agent_id", "mode", "status")}
        optional = {
            "summary": self.summary,
            "artifacts": [artifact.data() for artifact in self.artifacts],
            "run": None if self.run is None else self.run.data(),
            "metadata": self.metadata,
        }
        return {**known, **{key: value for key, value in optional.items() if value}}


def export_run(session: Session) -> RunLog:
    """Return what a session did: a turn for each answer of a model."""
    check_session(session)
    events = session.events()
    return RunLog(
        session_id=session.id,
        agent_id=_agent(session, events),
        start_time=events[0].timestamp,
        end_time=events[-1].timestamp,
        turns=list(_turns(active(events, 0))),
        total_cost=float(sum(event.cost for event in events)),
        metadata=session.metadata,
    )


def _agent(session: Session, events: list[Event]) -> str:
    """Return the session's agent, or the one that first had a turn."""
    name: str | None = session.agent_facts().get("agent_name")
    began = (event.data.get("agent_id") for event in events if event.type == kinds.TURN_STARTED)
    return name or next(filter(None, began), "")


def _turns(events: list[Event]) -> Iterator[RunTurn]:
    gathered: list[HistoryEntry] = []
    steps = _Steps()
    answer: Answer | None = None
    for event in _with_brought(events):
        steps.take(event, answer)
        if answer is not None:
            answer.take(event)
        entry = entry_of(event) if event.type in _SAID else None
        if entry is None:
            continue
        if entry.message.get("role") == "assistant":
            if answer is not None:
                yield answer.turn()
            answer = Answer(entry, gathered, event, steps.waiting)
            gathered, steps.waiting = [], []
        elif answer is not None or results_of(entry.message) is None:
            gathered.append(entry)
    if answer is not None:
        yield answer.turn()


_SAID = frozenset({kinds.MESSAGE_ADDED, kinds.CONTEXT_ADDED, kinds.BRANCH_SUMMARY})


def _with_brought(events: list[Event]) -> Iterator[Event]:
    """Give the events, and those that a fork onto the session brought from another log."""
    for event in events:
        if isinstance(event.body, Cut) and event.body.parent_id is not None:
            yield from event.body.window.history()
        else:
            yield event


class _Steps:
    """Which answer a model call belongs to: the last one within it, else the next one of its turn."""

    def __init__(self) -> None:
        self.waiting: list[Event] = []
        self._has_answered = False

    def take(self, event: Event, answer: Answer | None) -> None:
        if event.type == kinds.STEP_STARTED:
            self._has_answered = False
        elif event.type == kinds.MESSAGE_ADDED and event.body.get("role") == "assistant":
            self._has_answered = True
        elif event.type == kinds.STEP_COMPLETED and "purpose" not in event.data:
            if answer is not None and self._has_answered:
                answer.steps.append(event)
            else:
                self.waiting.append(event)
        elif event.type == kinds.TURN_COMPLETED:
            self.waiting = []
