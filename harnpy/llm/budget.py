"""Budgets: how many tokens and USD a call may use. Spec: 07 §1.12."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from harnpy.faults import OptionError

if TYPE_CHECKING:
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
