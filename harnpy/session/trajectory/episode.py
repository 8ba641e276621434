"""What is worth remembering of a run: what it came to, and the calls that led there. Spec: 10 §A1.16."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from harnpy.session.transfer.shapes import shape_of
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.session.trajectory.answer import RunTurn
    from harnpy.session.trajectory.run_log import RunLog
    from harnpy.world.ids import Ids


@dataclass(frozen=True)
class Episode:
    """``conclusion`` is the last thing that was said with no call of a tool; ``calls`` are
    ``{"tool", "args", "result"}``, in order. ``total_cost`` is in USD."""

    id: str
    session_id: str
    agent_id: str
    start_time: str
    end_time: str
    conclusion: str = ""
    calls: list[dict[str, str]] = field(default_factory=list)
    total_cost: float = 0.0
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """What a search looks through: the conclusion and the names of the tools."""
        return " ".join([self.conclusion, *(call["tool"] for call in self.calls)])

    def data(self) -> dict[str, Any]:
        """Return it as JSON."""
        shown = asdict(self)
        if not self.metadata:
            del shown["metadata"]
        return shown

    @classmethod
    def of(cls, data: dict[str, Any]) -> Episode:
        """Return the episode that ``data`` gave. Unknown keys are left out."""
        return cls(**{one.name: data[one.name] for one in fields(cls) if one.name in data})


def distill(run: RunLog, *, ids: Ids | None = None) -> Episode:
    """Return the episode of a run, under a new id. Calls without a result are left out."""
    return Episode(
        id=(ids or World().ids).new(),
        session_id=run.session_id,
        agent_id=run.agent_id,
        start_time=run.start_time,
        end_time=run.end_time,
        conclusion=next(filter(None, map(_said, reversed(run.turns))), ""),
        calls=[call for turn in run.turns for call in _calls(turn)],
        total_cost=run.total_cost,
        metadata=dict(run.metadata),
    )


def _said(turn: RunTurn) -> str:
    """Return the text of an answer without calls."""
    text = "" if turn.tool_calls else shape_of(turn.output).text
    return text if text.strip() else ""


def _calls(turn: RunTurn) -> Iterator[dict[str, str]]:
    left = list(turn.tool_results)
    for call in turn.tool_calls:
        result = next((one for one in left if one["tool_id"] == call["id"]), None)
        if result is not None:
            left.remove(result)
            function = call["function"]
            yield {"tool": function["name"], "args": function["arguments"], "result": result["content"]}
