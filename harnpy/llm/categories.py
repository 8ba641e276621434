"""What went wrong in a call, and whether another try may help. Pure. Spec: 07 §1.7, 02 §19.8."""

from __future__ import annotations

import re
from typing import NamedTuple

GENERIC = "generic"
#: The request may not be sent; the reason of such a failure has the same name.
BLOCKED = "egress_blocked"

CATEGORIES = frozenset(
    {
        "timeout",
        "auth",
        "rate_limit",
        "overloaded",
        "server_error",
        "transient_network",
        "schema_validation",
        "tool_error",
        "tool_rejected",
        BLOCKED,
        "cancelled",
        "not_found",
        "circuit_open",
        "budget_exceeded",
        GENERIC,
    }
)

#: Categories of errors that another try may cure.
TRANSIENT = frozenset({"timeout", "rate_limit", "overloaded", "server_error", "transient_network"})


class Cause(NamedTuple):
    """``kind`` is ``transient`` or ``terminal``."""

    kind: str
    reason: str


_UNKNOWN = Cause("terminal", "unknown")

#: Phrases of a lower-cased message, in the order in which they are tried; ``&`` asks for both sides.
_BY_MESSAGE = (
    (
        "context length|context_overflow|context & exceed|max_tokens & exceed",
        Cause("terminal", "context_overflow"),
    ),
    (
        "prompt is too long|prompt_tokens_exceeded|exceeds the maximum",
        Cause("terminal", "context_overflow"),
    ),
    (
        "content_policy|content policy|safety policy|moderation|responsible_ai_policy|blocked by policy",
        Cause("terminal", "content_policy"),
    ),
    (
        "invalid_api_key|authentication_error|auth_failure|unauthorized|forbidden",
        Cause("terminal", "auth_failure"),
    ),
    (
        "model_not_found|not_found_error|model unavailable|model is unavailable|model not found",
        Cause("terminal", "model_unavailable"),
    ),
    (
        "[rate_limited]|too many requests|insufficient_quota|billing_hard_limit_reached",
        Cause("transient", "rate_limit"),
    ),
    (
        "[http_error]|bad gateway|service unavailable|overloaded|api_error",
        Cause("transient", "server_error"),
    ),
    ("timed out|timeout", Cause("transient", "timeout")),
    (
        "connection reset|connection refused|connection closed|broken pipe|dns error|stream error|eof",
        Cause("transient", "network_error"),
    ),
    ("invalid_request|bad request", Cause("terminal", "invalid_request")),
)

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
    """Why a call failed: the message says it, else the category. What was blocked may say anything."""
    if category == BLOCKED:
        return Cause("terminal", BLOCKED)
    text = message.lower()
    if "kind" in text and "transient" in text:
        for word, reason in _TRANSIENT_WORDS:
            if word in text:
                return Cause("transient", reason)
    for phrases, found in _BY_MESSAGE:
        if any(all(word in text for word in phrase.split(" & ")) for phrase in phrases.split("|")):
            return found
    return _BY_CATEGORY.get(category, _UNKNOWN)


def retryable(category: str, message: str) -> bool:
    """Whether a transport retry makes sense (07 §1.8)."""
    found = cause(category, message)
    return found.kind == "transient" or (found.reason == "unknown" and category in TRANSIENT)


def retry_after_ms(message: str, now: float) -> int | None:
    """The milliseconds that a ``retry-after:`` line asks for, within 0…60000; None without a usable one.

    The value is float seconds or an HTTP date; ``now`` is in epoch seconds.
    """
    found = re.search(r"retry-after:[ \t]*([^\r\n]*)", message, re.IGNORECASE)
    if found is None:
        return None
    seconds = _seconds(found[1].strip(), now)
    return None if seconds is None else round(min(max(seconds, 0.0), 60.0) * 1000)


def _seconds(text: str, now: float) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        return float(text)
    except ValueError:
        pass
    try:
        return parsedate_to_datetime(text).timestamp() - now
    except ValueError:
        return None
