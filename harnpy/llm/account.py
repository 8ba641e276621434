"""What the calls of one program cost together, and how much that may be. Spec: 07 §1.12."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.llm.budget import Budget
from harnpy.llm.errors import BudgetSpent
from harnpy.llm.projection import project
from harnpy.llm.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.llm.reply import Reply
    from harnpy.llm.request import Request


class Account:
    """``limit`` is in USD, None for none; ``tracing`` lets the program see its `usage`."""

    def __init__(self, tracing: bool = False) -> None:
        self.trace = Trace()
        self.limit: float | None = None
        #: Notified of every reply, with the ms that it took.
        self.observers: list[Callable[[Reply, int], None]] = []
        self._tracing = tracing

    @property
    def remaining(self) -> float | None:
        return None if self.limit is None else self.limit - self.trace.cost

    def check(self, request: Request) -> None:
        """Raises `BudgetExceeded` when a call may cost too much: by its own budget, or by the limit."""
        limit = None if self.limit is None else Budget(total_budget_usd=self.limit)
        for budget in filter(None, (request.budget, limit)):
            project(request, self.trace.cost).check(budget, request)

    def charge(self, reply: Reply, call_id: str, ms: int, iteration: int | None = None) -> None:
        """Record a call that was made. Raises `BudgetSpent` when it exceeded the limit."""
        self.trace.record_call(reply, call_id, ms, iteration)
        for observe in self.observers:
            observe(reply, ms)
        if self.limit is not None and self.trace.cost > self.limit:
            raise BudgetSpent(self.trace.cost, self.limit)

    def usage(self) -> dict[str, int]:
        """What the calls have used so far; all zero unless the host traces them."""
        trace = self.trace if self._tracing else Trace()
        calls = trace.counts["llm_call"]
        return {
            "input_tokens": trace.input_tokens,
            "output_tokens": trace.output_tokens,
            "call_count": calls,
            "total_calls": calls,
            "total_duration_ms": trace.llm_ms,
        }
