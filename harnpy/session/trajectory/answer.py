"""One answer of a model: what it was given, what it said, which tools it called with what result.

Spec: 10 §A1.16, §C10.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harnpy.session import events as kinds
from harnpy.session.transfer.shapes import shape_of

if TYPE_CHECKING:
    from harnpy.session.events import Event
    from harnpy.session.shown.entries import HistoryEntry

    Message = dict[str, Any]


@dataclass(frozen=True)
class RunTurn:
    """``input`` is what was added since the answer before, ``input_entries`` the same with event ids and
    context marks. ``tool_calls`` and ``tool_results`` have the shapes of 10 §A1.3. ``cost`` is in USD,
    ``metrics`` the tokens used, by name."""

    turn_id: str
    timestamp: str
    input: list[Message]
    input_entries: list[dict[str, Any]]
    output: Message
    tool_calls: list[Message] = field(default_factory=list)
    tool_results: list[Message] = field(default_factory=list)
    cost: float = 0.0
    metrics: dict[str, Any] | None = None

    def data(self) -> dict[str, Any]:
        """Return it as JSON."""
        optional = {
            "tool_calls": self.tool_calls,
            "tool_results": self.tool_results,
            "metrics": self.metrics,
        }
        return {
            "turn_id": self.turn_id,
            "timestamp": self.timestamp,
            "input": self.input,
            "input_entries": self.input_entries,
            "output": self.output,
            "cost": self.cost,
            **{key: value for key, value in optional.items() if value},
        }


class Answer:
    """An answer while the log is read: what comes behind it may belong to it."""

    def __init__(
        self, output: HistoryEntry, given: list[HistoryEntry], event: Event, steps: list[Event]
    ) -> None:
        self.steps = steps
        self._output = output
        self._given = given
        self._event = event
        self._results: list[Message] = []
        self._begun: list[Message] = []
        self._ended: list[Message] = []

    def take(self, event: Event) -> None:
        """Take notice of an event behind the answer."""
        if event.type == kinds.MESSAGE_ADDED:
            self._results += [_result(part.id, part.name, part.text) for part in shape_of(event.body).results]
        elif event.type == kinds.TOOL_STARTED:
            data = event.data
            self._begun.append(_call(data.get("id"), data.get("tool", ""), data.get("args", "")))
        elif event.type == kinds.TOOL_COMPLETED:
            data = event.data
            text = data["error"] if "error" in data else data.get("output", "")
            self._ended.append(_result(data.get("id"), data.get("tool", ""), text))

    def turn(self) -> RunTurn:
        """Return what is known of it now. Calls and results that are text are those that were logged."""
        message = self._output.message
        calls = [_call(*part) for part in shape_of(message).calls]
        used: Counter[str] = Counter()
        for step in self.steps:
            used.update(step.data.get("usage") or {})
        return RunTurn(
            turn_id=self._event.id,
            timestamp=self._event.timestamp,
            input=[entry.message for entry in self._given],
            input_entries=[entry.shown() for entry in self._given],
            output=message,
            tool_calls=calls or self._begun,
            tool_results=self._results or self._ended,
            cost=float(self._event.cost + sum(step.cost for step in self.steps)),
            metrics=dict(used) or None,
        )


def _call(id: str | None, name: str, arguments: str) -> Message:
    return {"id": id or "", "type": "function", "function": {"name": name, "arguments": arguments}}


def _result(id: str | None, name: str, text: str) -> Message:
    named = {"name": name} if name else {}
    return {"role": "tool", "tool_id": id or "", **named, "content": text}
