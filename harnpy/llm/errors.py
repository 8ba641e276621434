"""What can go wrong between a dict of options and a reply. Spec: 07 §1.7.

Fault
├─ OptionError           the options make no request
│  └─ BudgetSpent        the program's calls have cost more than `llm_budget` allows
├─ FixtureError          a file of fixtures can't be used
└─ CategorizedError
   └─ CallError          the call failed: `.category`, `.kind`, `.reason`, `.as_dict()`
      ├─ BudgetExceeded  the budget forbids the call: nothing was sent
      └─ CallBlocked     the egress policy forbids it likewise
"""

from __future__ import annotations

from typing import Any

from harnpy.faults import CategorizedError, Fault, OptionError
from harnpy.llm.categories import BLOCKED, cause, retry_after_ms

#: The reason of a call whose request is too long for the model.
OVERFLOW = "context_overflow"


class BudgetSpent(OptionError):
    def __init__(self, spent: float, budget: float) -> None:
        super().__init__(f"LLM budget exceeded: spent ${spent:.4f} of ${budget:.4f} budget")
        self.spent, self.budget = spent, budget

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.spent, self.budget)


class FixtureError(Fault):
    """A file of fixtures can't be used; the message says which and why."""


class CallError(CategorizedError):
    def __init__(self, category: str, message: str) -> None:
        super().__init__(category, message)
        self.kind, self.reason = cause(category, message)

    def as_dict(self, provider: str, model: str, now: float) -> dict[str, Any]:
        """What `llm_call` throws."""
        error = {
            "category": self.category,
            "kind": self.kind,
            "reason": self.reason,
            "message": self.message,
            "provider": provider,
            "model": model,
        }
        after = retry_after_ms(self.message, now)
        return error if after is None else {**error, "retry_after_ms": after}


class BudgetExceeded(CallError):
    """``details`` are the further keys of the error dict (07 §1.12)."""

    def __init__(self, message: str, details: dict[str, Any]) -> None:
        super().__init__("budget_exceeded", message)
        self.kind, self.reason = "terminal", "budget_exceeded"
        self.details = details

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.details)

    def as_dict(self, provider: str, model: str, now: float) -> dict[str, Any]:
        return {**super().as_dict(provider, model, now), **self.details}


class CallBlocked(CallError):
    """The service may not be reached. ``place`` are the keys of 04 §21.4: surface, url, host, port."""

    def __init__(self, message: str, place: dict[str, Any]) -> None:
        super().__init__(BLOCKED, message)
        self.place = place

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.place)

    def as_dict(self, provider: str, model: str, now: float) -> dict[str, Any]:
        return {**self.place, **super().as_dict(provider, model, now), "type": "EgressBlocked"}
