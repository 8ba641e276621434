"""The error category that a message suggests. Pure: knows neither Vm nor provider. Spec: 02 §19.8."""

from __future__ import annotations

import re

from harnpy.llm.categories import GENERIC

_STATUS = re.compile(r"(?<![0-9])[45][0-9][0-9](?![0-9])")
_BY_STATUS = {
    "401": "auth",
    "403": "auth",
    "404": "not_found",
    "410": "not_found",
    "408": "timeout",
    "504": "timeout",
    "522": "timeout",
    "524": "timeout",
    "429": "rate_limit",
    "503": "overloaded",
    "529": "overloaded",
    "500": "server_error",
    "502": "server_error",
}
_BY_WORDS = {
    "Deadline exceeded": "timeout",
    "context deadline exceeded": "timeout",
    "overloaded_error": "overloaded",
    "api_error": "server_error",
    "insufficient_quota": "rate_limit",
    "billing_hard_limit_reached": "rate_limit",
    "invalid_api_key": "auth",
    "authentication_error": "auth",
    "not_found_error": "not_found",
    "model_not_found": "not_found",
    "circuit_open": "circuit_open",
}
_NETWORK = (
    "connection reset",
    "connection refused",
    "connection closed",
    "broken pipe",
    "dns error",
    "stream error",
    "unexpected eof",
)


def classify(message: str) -> str:
    """The category of an error message: by HTTP status, then by known words, else `generic`."""
    for status in _STATUS.findall(message):
        if status in _BY_STATUS:
            return _BY_STATUS[status]
    for words, category in _BY_WORDS.items():
        if words in message:
            return category
    lowered = message.lower()
    return "transient_network" if any(words in lowered for words in _NETWORK) else GENERIC
