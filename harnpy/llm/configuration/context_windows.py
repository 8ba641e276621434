"""How many tokens a model takes in, as far as is known. Spec: 07 §7.3."""

from __future__ import annotations

#: Prefixes of model names, the more specific ones first.
_WINDOWS = (
    ("claude-", 200_000),
    ("gpt-4o", 128_000),
    ("gpt-4.1", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4", 8_192),
    ("gpt-3.5-turbo", 16_385),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4", 200_000),
    ("gemini-2", 1_000_000),
    ("gemini-1.5", 1_000_000),
    ("gemini", 128_000),
)


def context_window(model: str) -> int | None:
    """The context window of a model in tokens, None when it isn't known."""
    name = model.lower().rpartition("/")[2]
    return next((size for prefix, size in _WINDOWS if name.startswith(prefix)), None)
