"""What a call will use at most, estimated before it is made and held against a budget. Spec: 07 §1.12."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harnpy.llm.errors import BudgetExceeded

if TYPE_CHECKING:
    from harnpy.llm.budget import Budget
    from harnpy.llm.request import Request


@dataclass(frozen=True, slots=True)
class Projection:
    """The most that a call can use, and what was spent before it."""

    input_tokens: int
    output_tokens: int
    cost: float
    spent: float

    def check(self, budget: Budget, request: Request) -> None:
        """Raise `BudgetExceeded` for the first limit that the call would pass."""
        cases = (
            ("max_input_tokens", self.input_tokens, f"input tokens {self.input_tokens}"),
            ("max_output_tokens", self.output_tokens, f"output tokens {self.output_tokens}"),
            ("max_cost_usd", self.cost, f"cost ${self.cost:.6f}"),
            ("total_budget_usd", self.spent + self.cost, f"session cost ${self.spent + self.cost:.6f}"),
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
    tokens = _quarter(request.system or "") + json_tokens(request.messages)
    if request.tools:
        tokens += json_tokens(request.tools)
    cost = request.price.cost(tokens, request.max_tokens)
    return Projection(tokens, request.max_tokens, cost, spent)


def json_tokens(value: Any) -> int:
    """Estimate tokens: a quarter of each string's bytes, keys included, and one for every other scalar."""
    if isinstance(value, str):
        return _quarter(value)
    if isinstance(value, dict):
        return sum(_quarter(key) + json_tokens(item) for key, item in value.items())
    if isinstance(value, list):
        return sum(json_tokens(item) for item in value)
    return 1


def _quarter(text: str) -> int:
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)
