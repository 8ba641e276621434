"""The prices of models, in USD per million tokens, and how many tokens they take in. Spec: 07 §1.12, §7.3."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens; a missing cache price is the input price."""

    input_per_mtok: float
    output_per_mtok: float
    cache_read_per_mtok: float | None = None
    cache_write_per_mtok: float | None = None

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        """Return what a call costs without a cache; ``input_tokens`` are all of the prompt's."""
        return (input_tokens * self.input_per_mtok + output_tokens * self.output_per_mtok) / 1_000_000

    def cache_savings(self, read: int, written: int) -> float:
        """Return what the cache saves of `cost`; negative where writing it costs more than it saves."""
        base = self.input_per_mtok
        read_price = base if self.cache_read_per_mtok is None else self.cache_read_per_mtok
        write_price = base if self.cache_write_per_mtok is None else self.cache_write_per_mtok
        return (read * (base - read_price) + written * (base - write_price)) / 1_000_000


FREE = Price(0.0, 0.0)

#: Patterns searched in the model id, in this order.
_TABLE = (
    (r"claude-3-5-haiku|claude-haiku-4", Price(0.80, 4.0)),
    (r"claude-3-5-sonnet|claude-sonnet-4", Price(3.0, 15.0)),
    (r"claude-3-opus|claude-opus-4", Price(15.0, 75.0)),
    (r"gpt-4o-mini", Price(0.15, 0.60)),
    (r"gpt-4o", Price(2.5, 10.0)),
    (r"gpt-4-turbo", Price(10.0, 30.0)),
    (r"o1-mini", Price(3.0, 12.0)),
    (r"o1|o3", Price(15.0, 60.0)),
    (r"llama.*70b", Price(0.59, 0.79)),
    (r"llama.*8b", Price(0.05, 0.08)),
    (r"mistral-large", Price(2.0, 6.0)),
    (r"mistral-small", Price(0.2, 0.6)),
    (r"gemini-2.*flash", Price(0.1, 0.4)),
    (r"gemini-2.*pro", Price(1.25, 5.0)),
)


def price_of(model: str) -> Price:
    """Return the price by the model's name, free for an unknown one. A configured price takes precedence."""
    return next((price for pattern, price in _TABLE if re.search(pattern, model)), FREE)


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
