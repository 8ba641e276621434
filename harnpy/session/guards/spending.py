"""Whether a turn may go on, by what it has taken so far. Spec: 10 §A1.17."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.errors import BudgetExceeded
from harnpy.session.turns.closing import Fact, usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.session.agents.definition import Budget
    from harnpy.session.events import Event


def check_budget(budget: Budget, events: Sequence[Event], steps: int, seconds: float, now: float) -> None:
    """Raise `BudgetExceeded` if a turn of these events can't have another step.

    It has had ``steps``, and has taken ``seconds``; ``now`` is in seconds since 1970.
    """
    cost = float(sum(event.cost for event in events))
    tokens = _tokens(usage(Fact(event.type, event.body) for event in events) or {})
    problem = None
    if budget.max_cost is not None and cost >= budget.max_cost:
        problem = f"budget exceeded: {cost:.4f} >= {budget.max_cost:.4f}"
    elif budget.max_tokens is not None and tokens > budget.max_tokens:
        problem = f"token budget exceeded: {tokens} > {budget.max_tokens}"
    elif budget.max_steps is not None and steps >= budget.max_steps:
        problem = f"step budget exceeded: {steps} >= {budget.max_steps}"
    elif budget.max_seconds is not None and seconds >= budget.max_seconds:
        problem = f"time budget exceeded: {seconds:.1f}s >= {budget.max_seconds:g}s"
    elif budget.is_past(now):
        problem = f"time budget exceeded: the deadline was {budget.deadline}"
    if problem is not None:
        raise BudgetExceeded(problem, events[0].session_id if events else None)


def _tokens(used: dict[str, Any]) -> int:
    total = used.get("total_tokens")
    if total is None:
        total = used.get("input_tokens", 0) + used.get("output_tokens", 0)
    return int(total)
