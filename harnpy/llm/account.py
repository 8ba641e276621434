"""`Account`: what the calls of one program cost together, projected before a call, traced after it.

Spec: 07 §1.12, §9.4.
"""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harnpy.faults import OptionError
from harnpy.formats.text_size import json_tokens, text_tokens
from harnpy.llm.call_options import Budget
from harnpy.llm.errors import BudgetExceeded, BudgetSpent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.llm.reply import Reply
    from harnpy.llm.request import Request

# What the calls and loops of one program did, and what they add up to. Spec: 07 §9.4.
#
# | event                    | fields                                                                   |
# |--------------------------|--------------------------------------------------------------------------|
# | `llm_call`               | `record_call`                                                            |
# | `loop_complete`          | `record_loop`                                                            |
# | `tool_execution`         | tool_name, tool_use_id, duration_ms, status, classification, iteration   |
# | `tool_rejected`          | tool_name, reason, iteration                                             |
# | `loop_intervention`      | tool_name, kind (`warn`, `block` or `skip`), count, iteration            |
# | `context_compaction`     | archived_messages, new_summary_len, iteration                            |
# | `phase_change`           | from_phase, to_phase, iteration                                          |
# | `schema_retry`           | attempt, errors, nudge_used, correction_prompt                           |
# | `native_tool_fallback`   | iteration, accepted, policy, fallback_index, tool_call_count             |
# | `empty_completion_retry` | iteration, attempt, error                                                |


#: Keys of a summary that are about the last finished loop; the others are sums.
_OF_LAST_LOOP = ("status", "iterations", "total_duration_ms", "tools_used")


#: A program that runs for months, a web service, keeps the newest ones; sums are of all.
MOST_EVENTS = 10_000


class Trace:
    """The newest events, oldest first, and the sums of all, kept as they come."""

    def __init__(self) -> None:
        self.events: deque[dict[str, Any]] = deque(maxlen=MOST_EVENTS)
        self.counts: Counter[str] = Counter()
        self.input_tokens = 0
        self.output_tokens = 0
        self.llm_ms = 0
        self.tool_ms = 0
        self.fallback_rejections = 0
        #: USD, without the calls of models whose price is unknown: so many.
        self.cost = 0.0
        self.unpriced = 0
        #: Notified of every event, once it is counted.
        self.observers: list[Callable[[dict[str, Any]], None]] = []
        self._calls = 0
        self._last: dict[str, Any] = {}

    def record(self, type: str, **fields: Any) -> None:
        """Add an event of one of the types above, with its fields."""
        if type == "tool_execution":
            self.tool_ms += fields["duration_ms"]
        elif type == "native_tool_fallback" and not fields["accepted"]:
            self.fallback_rejections += 1
        event = {"type": type, **fields}
        self.events.append(event)
        self.counts[type] += 1
        for observe in self.observers:
            observe(event)

    def new_call_id(self) -> str:
        """The id of a call that is about to be made."""
        self._calls += 1
        return f"llm_call_{self._calls}"

    def record_call(self, reply: Reply, call_id: str, ms: int, iteration: int | None) -> None:
        """Add a model call that succeeded; ``iteration`` is the loop's."""
        self.input_tokens += reply.input_tokens
        self.output_tokens += reply.output_tokens
        self.llm_ms += ms
        cost = reply.cost
        self.cost += cost or 0.0
        self.unpriced += cost is None
        self.record(
            "llm_call",
            call_id=call_id,
            model=reply.model,
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
            cache_tokens=reply.cache_read_tokens,
            duration_ms=ms,
            iteration=iteration,
        )

    def record_loop(
        self,
        status: str,
        iterations: int,
        ms: int,
        tools_used: Sequence[str] = (),
        successful: Sequence[str] = (),
    ) -> None:
        """Add a loop that has ended."""
        ended = {"status": status, "iterations": iterations, "total_duration_ms": ms}
        self._last = {**ended, "tools_used": list(tools_used)}
        self.record("loop_complete", **self._last, successful_tools=list(successful))

    def summary(self) -> dict[str, Any]:
        """``status``, ``iterations`` and ``total_duration_ms`` are those of the last finished loop."""
        counts = self.counts
        return {
            "status": self._last.get("status", "unknown"),
            "iterations": self._last.get("iterations", 0),
            "total_duration_ms": self._last.get("total_duration_ms", 0),
            "llm_calls": counts["llm_call"],
            "tool_executions": counts["tool_execution"],
            "tool_rejections": counts["tool_rejected"],
            "interventions": counts["loop_intervention"],
            "compactions": counts["context_compaction"],
            "native_text_tool_fallbacks": counts["native_tool_fallback"],
            "native_text_tool_fallback_rejections": self.fallback_rejections,
            "empty_completion_retries": counts["empty_completion_retry"],
            "total_input_tokens": self.input_tokens,
            "total_output_tokens": self.output_tokens,
            "total_llm_duration_ms": self.llm_ms,
            "total_tool_duration_ms": self.tool_ms,
            "tools_used": self._last.get("tools_used", []),
        }

    def summary_since(self, before: dict[str, Any]) -> dict[str, Any]:
        """The summary of what has been added since another one was made."""
        return {
            key: value if key in _OF_LAST_LOOP else value - before[key]
            for key, value in self.summary().items()
        }


# What a call will use at most, estimated before it is made and held against a budget. Spec: 07 §1.12.


@dataclass(frozen=True, slots=True)
class Projection:
    """The most that a call can use, and what was spent before it. ``cost`` is None when it isn't known."""

    input_tokens: int
    output_tokens: int
    cost: float | None
    spent: float

    def check(self, budget: Budget, request: Request) -> None:
        """Raise `BudgetExceeded` for the first limit that the call would pass, `OptionError` for one in USD
        when the price is unknown."""
        limited = budget.max_cost_usd is not None or budget.total_budget_usd is not None
        if self.cost is None and limited:
            raise OptionError(_unknown_price(request.model, request.provider))
        cost = self.cost or 0.0
        cases = (
            ("max_input_tokens", self.input_tokens, f"input tokens {self.input_tokens}"),
            ("max_output_tokens", self.output_tokens, f"output tokens {self.output_tokens}"),
            ("max_cost_usd", cost, f"cost ${cost:.6f}"),
            ("total_budget_usd", self.spent + cost, f"session cost ${self.spent + cost:.6f}"),
        )
        for limit, projected, text in cases:
            value = getattr(budget, limit)
            if value is not None and projected > value:
                message = f"LLM budget exceeded before provider call: projected {text} would exceed {limit}"
                raise BudgetExceeded(message, self._details(limit, value, request))

    def _details(self, limit: str, value: float, request: Request) -> dict[str, Any]:
        return {
            "limit": limit,
            "limit_value": float(value),
            "projected_cost_usd": self.cost,
            "session_cost_usd": self.spent,
            "projected_input_tokens": self.input_tokens,
            "projected_output_tokens": self.output_tokens,
            "provider": request.provider,
            "model": request.model,
        }


def project(request: Request, spent: float) -> Projection:
    """Estimate a call; ``spent`` is what the program's calls have cost so far, in USD."""
    tokens = text_tokens(request.system or "") + json_tokens(request.messages)
    if request.tools:
        tokens += json_tokens(request.tools)
    cost = None if request.price is None else request.price.cost(tokens, request.max_tokens)
    return Projection(tokens, request.max_tokens, cost, spent)


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def _unknown_price(model: str, provider: str) -> str:
    # A key of TOML, whose quoted ones have the escapes of JSON.
    key = model if _BARE.fullmatch(model) else json.dumps(model, ensure_ascii=False)
    return (
        f"budget: the price of the model \"{model}\" (provider '{provider}') is unknown; "
        f"set [llm.models.{key}] pricing = {{input_per_mtok = …, output_per_mtok = …}} in harn.toml, in USD"
    )


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
        """Return what the calls have used so far; all zero unless the host traces them."""
        trace = self.trace if self._tracing else Trace()
        calls = trace.counts["llm_call"]
        return {
            "input_tokens": trace.input_tokens,
            "output_tokens": trace.output_tokens,
            "call_count": calls,
            "total_calls": calls,
            "total_duration_ms": trace.llm_ms,
        }
