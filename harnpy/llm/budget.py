"""Budgets: what a call may cost, checked before it is made. Spec: 07 §1.12."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from harnpy.faults import OptionError
from harnpy.llm.errors import BudgetExceeded

if TYPE_CHECKING:
    from harnpy.llm.request import Request
    from harnpy.reading.lenient import Options

_USD = ("max_cost_usd", "total_budget_usd")
_TOKENS = ("max_input_tokens", "max_output_tokens")


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits; None is no limit. Reaching one exactly is allowed."""

    max_cost_usd: float | None = None
    total_budget_usd: float | None = None
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Projection:
    """What a call would use at most, and what was spent before it."""

    input_tokens: int
    output_tokens: int
    cost: float
    spent: float

    def check(self, budget: Budget, request: Request) -> None:
        """Raises `BudgetExceeded` for the first limit that the call would pass."""
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


def read_budget(options: Options) -> Budget | None:
    """The ``budget`` option and the four keys beside it, None when there is none of them."""
    given = options.value("budget")
    if given is not None and not isinstance(given, dict):
        raise OptionError(f"budget: expected a dict {{{'?, '.join(_USD + _TOKENS)}?}}")
    limits: dict[str, Any] = {}
    for source in (given or {}, options.given):
        limits |= {key: _usd(key, source[key]) for key in _USD if key in source}
        limits |= {key: _tokens(key, source[key]) for key in _TOKENS if key in source}
    return Budget(**limits) if limits else None


def project(request: Request, spent: float) -> Projection:
    """``spent`` is what the program's calls cost so far, in USD."""
    tokens = _quarter(request.system or "") + json_tokens(request.messages)
    if request.tools:
        tokens += json_tokens(request.tools)
    cost = request.price.cost(tokens, request.max_tokens)
    return Projection(tokens, request.max_tokens, cost, spent)


def _usd(key: str, value: Any) -> float:
    if type(value) not in (int, float) or value < 0:
        raise OptionError(f"budget.{key}: expected a non-negative number")
    if not isfinite(value):
        raise OptionError(f"budget.{key}: expected a non-negative finite number")
    return float(value)


def _tokens(key: str, value: Any) -> int:
    whole = type(value) is int or (type(value) is float and isfinite(value) and value == int(value))
    if not whole or value < 0:
        raise OptionError(f"budget.{key}: expected a non-negative integer")
    return int(value)


def json_tokens(value: Any) -> int:
    """A quarter of each string's bytes, keys included; one for every other scalar."""
    if isinstance(value, str):
        return _quarter(value)
    if isinstance(value, dict):
        return sum(_quarter(key) + json_tokens(item) for key, item in value.items())
    if isinstance(value, list):
        return sum(json_tokens(item) for item in value)
    return 1


def _quarter(text: str) -> int:
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)
