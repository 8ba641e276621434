"""The errors of model calls, their categories, and whether another try may help.

    Fault
    ├─ OptionError           the options make no request
    │  └─ BudgetSpent        the program's calls have cost more than `llm_budget` allows
    ├─ FixtureError          a file of fixtures can't be used
    └─ CategorizedError
       └─ CallError          the call failed: `.category`, `.kind`, `.reason`, `.as_dict()`
          ├─ NobodyListens   no server is running at an address of this machine
          ├─ BudgetExceeded  the budget forbids the call: nothing was sent
          └─ CallBlocked     the egress policy forbids it likewise

The language's own errors use the categories too: this module loads nothing. Spec: 07 §1.7, 02 §19.8.
"""

from __future__ import annotations

import re
from math import isfinite, nan
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import CategorizedError, Fault, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

GENERIC = "generic"
#: The request may not be sent; the reason of such a failure has the same name.
BLOCKED = "egress_blocked"

CATEGORIES = frozenset(
    "timeout auth rate_limit overloaded server_error transient_network schema_validation tool_error "
    f"tool_rejected {BLOCKED} cancelled not_found circuit_open budget_exceeded {GENERIC}".split()
)

#: Categories of errors that another try may cure.
TRANSIENT = frozenset({"timeout", "rate_limit", "overloaded", "server_error", "transient_network"})


class Cause(NamedTuple):
    """``kind`` is ``transient`` or ``terminal``."""

    kind: str
    reason: str


_UNKNOWN = Cause("terminal", "unknown")

#: Causes and phrases of a lower-cased message, in the order in which they are tried; ``&`` asks for both.
_BY_MESSAGE = """
terminal context_overflow: context length|context_overflow|context & exceed|max_tokens & exceed
terminal context_overflow: prompt is too long|prompt_tokens_exceeded|exceeds the maximum
terminal content_policy: content_policy|content policy|safety policy|moderation
terminal content_policy: responsible_ai_policy|blocked by policy
terminal auth_failure: invalid_api_key|authentication_error|auth_failure|unauthorized|forbidden
terminal model_unavailable: model_not_found|not_found_error|model unavailable|model is unavailable
terminal model_unavailable: model not found
transient rate_limit: [rate_limited]|too many requests|insufficient_quota|billing_hard_limit_reached
transient server_error: [http_error]|bad gateway|service unavailable|overloaded|api_error
transient timeout: timed out|timeout
transient network_error: connection reset|connection refused|connection closed|broken pipe|dns error
transient network_error: stream error|eof
terminal invalid_request: invalid_request|bad request
"""


def _phrases(table: str) -> Iterator[tuple[list[list[str]], Cause]]:
    for line in table.strip().split("\n"):
        named, _, phrases = line.partition(": ")
        yield [phrase.split(" & ") for phrase in phrases.split("|")], Cause(*named.split())


_CAUSES = tuple(_phrases(_BY_MESSAGE))

_BY_CATEGORY = {
    "rate_limit": Cause("transient", "rate_limit"),
    "timeout": Cause("transient", "timeout"),
    "overloaded": Cause("transient", "server_error"),
    "server_error": Cause("transient", "server_error"),
    "transient_network": Cause("transient", "network_error"),
    "auth": Cause("terminal", "auth_failure"),
    "not_found": Cause("terminal", "model_unavailable"),
}

_TRANSIENT_WORDS = (
    ("rate", "rate_limit"),
    ("time", "timeout"),
    ("network", "network_error"),
    ("server", "server_error"),
)


def cause(category: str, message: str) -> Cause:
    """Return why a call failed: the message says it, else the category. What was blocked may say anything."""
    if category == BLOCKED:
        return Cause("terminal", BLOCKED)
    text = message.lower()
    if "kind" in text and "transient" in text:
        for word, reason in _TRANSIENT_WORDS:
            if word in text:
                return Cause("transient", reason)
    for phrases, found in _CAUSES:
        if any(all(word in text for word in phrase) for phrase in phrases):
            return found
    return _BY_CATEGORY.get(category, _UNKNOWN)


def retryable(category: str, message: str) -> bool:
    """Return True if a transport retry makes sense (07 §1.8)."""
    found = cause(category, message)
    return found.kind == "transient" or (found.reason == "unknown" and category in TRANSIENT)


_LONGEST_PAUSE = 60.0


def _hinted(message: str) -> float | None:
    """Return the seconds that a message has after ``retry-after:``, None without a finite number there."""
    found = re.search(r"retry-after:[ \t]*([^\r\n]*)", message, re.IGNORECASE)
    try:
        seconds = nan if found is None else float(found[1])
    except ValueError:
        return None
    return seconds if isfinite(seconds) else None


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
    """``retry_after``: seconds to wait before another try, at most 60; by default those in the message."""

    #: Whether another try makes no sense, whatever the kind of failure.
    is_final = False

    def __init__(self, category: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(category, message)
        self.kind, self.reason = cause(category, message)
        after = _hinted(message) if retry_after is None else retry_after
        self.retry_after = None if after is None else min(max(after, 0.0), _LONGEST_PAUSE)

    def as_dict(self, provider: str, model: str) -> dict[str, Any]:
        """Return the dict that `llm_call` throws."""
        error = {
            "category": self.category,
            "kind": self.kind,
            "reason": self.reason,
            "message": self.message,
            "provider": provider,
            "model": model,
        }
        after = self.retry_after
        return error if after is None else {**error, "retry_after_ms": round(after * 1000)}


class NobodyListens(CallError):
    """No server is running at an address of this machine: another try soon after finds none either."""

    is_final = True


class BudgetExceeded(CallError):
    """``details`` are the further keys of the error dict (07 §1.12)."""

    def __init__(self, message: str, details: dict[str, Any]) -> None:
        super().__init__("budget_exceeded", message)
        self.kind, self.reason = "terminal", "budget_exceeded"
        self.details = details

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.details)

    def as_dict(self, provider: str, model: str) -> dict[str, Any]:
        return {**super().as_dict(provider, model), **self.details}


class CallBlocked(CallError):
    """The service may not be reached. ``place`` are the keys of 04 §21.4: surface, url, host, port."""

    def __init__(self, message: str, place: dict[str, Any]) -> None:
        super().__init__(BLOCKED, message)
        self.place = place

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.place)

    def as_dict(self, provider: str, model: str) -> dict[str, Any]:
        return {**self.place, **super().as_dict(provider, model), "type": "EgressBlocked"}
