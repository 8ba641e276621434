"""What a model replied. Spec: 07 §1.3."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harnpy.llm.configuration.prices import FREE, Price, cache_hit_ratio


@dataclass(slots=True)
class Reply:
    """``tool_calls`` are ``{id, name, arguments, …}``; ``price`` is the requested model's.

    ``thinking_blocks`` must go back to Anthropic before the calls that they led to;
    ``given_blocks`` are the content blocks of a reply that aren't just its text and its calls.
    """

    text: str
    model: str
    provider: str
    requested_model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    thinking: str | None = None
    thinking_summary: str | None = None
    stop_reason: str | None = None
    price: Price = FREE
    thinking_blocks: list[dict[str, Any]] = field(default_factory=list)
    given_blocks: list[dict[str, Any]] | None = None

    @property
    def cost(self) -> float:
        """USD."""
        return self.price.cost(self.input_tokens, self.output_tokens)

    def blocks(self) -> list[dict[str, Any]]:
        """The reply as content blocks."""
        if self.given_blocks is not None:
            return self.given_blocks
        text = {"type": "output_text", "text": self.text, "visibility": "public"}
        calls = [
            {
                "type": "tool_call",
                "id": call["id"],
                "name": call["name"],
                "arguments": call["arguments"],
                "visibility": "internal",
            }
            for call in self.tool_calls
        ]
        return [text, *calls] if self.text else calls

    def usage(self) -> dict[str, Any]:
        read, written = self.cache_read_tokens, self.cache_write_tokens
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cache_read_tokens": read,
            "cache_write_tokens": written,
            "cache_creation_input_tokens": written,
            "cache_hit_ratio": cache_hit_ratio(self.input_tokens, read, written),
            "cache_savings_usd": self.price.cache_savings(read, written),
        }
