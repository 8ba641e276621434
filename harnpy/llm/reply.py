"""A model's reply. Spec: 07 §1.3."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harnpy.llm.configuration.prices import Price

if TYPE_CHECKING:
    from collections.abc import Callable

#: The services' words for a reply that was cut off by a limit of tokens, in small letters.
CUT = ("length", "model_length", "max_tokens", "max_output_tokens", "model_context_window_exceeded")
#: Their words for a reply that an error of theirs ended; the last ones are Gemini's.
BROKEN = (
    *("error", "failed", "cancelled", "abort", "network_error", "insufficient_system_resource"),
    *("malformed_function_call", "unexpected_tool_call", "malformed_response"),
)
#: The services' words for a reply that the model, or a filter of the service, refused.
_REFUSED = (
    *("refusal", "content_filter", "sensitive", "safety", "prohibited_content", "blocklist"),
    *("spii", "recitation", "image_safety", "image_prohibited_content", "image_recitation", "model_armor"),
)


@dataclass(slots=True)
class Reply:
    """``tool_calls`` are ``{id, name, arguments, …}``; ``price`` is the requested model's, None when unknown.

    ``parts`` are the content blocks as the service sent them, in its order, where they are more than a text
    and calls behind it; ``more`` are further keys of its message. Both go back to ``origin``, the service and
    the model that wrote them, and to no other. ``given_blocks`` are those of a mock's reply.
    ``cache_hour_tokens`` are those of ``cache_write_tokens`` that are kept for an hour.
    ``cached_beside``: whether cached tokens are counted beside ``input_tokens``, as Anthropic does, rather
    than among them; None for where they wouldn't fit among them. ``refusal`` is what the service says of a
    refusal beside its word for it.
    """

    text: str
    model: str
    provider: str
    requested_model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_hour_tokens: int = 0
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    thinking: str | None = None
    thinking_summary: str | None = None
    stop_reason: str | None = None
    price: Price | None = None
    parts: list[dict[str, Any]] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)
    origin: dict[str, str] | None = None
    given_blocks: list[dict[str, Any]] | None = None
    cached_beside: bool | None = None
    refusal: str | None = None

    @property
    def is_cut(self) -> bool:
        """Whether the reply was cut off by a limit of tokens."""
        return (self.stop_reason or "").lower() in CUT

    @property
    def refused(self) -> str | None:
        """Why no answer was given: the words of the refusal, else the service's; None for an answer."""
        word = self.stop_reason or ""
        return self.refusal or (word if word.lower() in _REFUSED else None)

    @property
    def prompt_tokens(self) -> int:
        """All tokens of the prompt, cached or not."""
        cached = self.cache_read_tokens + self.cache_write_tokens
        beside = self.cached_beside
        if beside is None:
            beside = cached > self.input_tokens
        return self.input_tokens + cached if beside else self.input_tokens

    @property
    def cost(self) -> float | None:
        """USD, None when the price is unknown."""
        if self.price is None:
            return None
        return self.price.cost(self.prompt_tokens, self.output_tokens) - (self.cache_savings or 0.0)

    @property
    def cache_savings(self) -> float | None:
        """USD that the cache saved, None when it was used and the price is unknown."""
        read, written = self.cache_read_tokens, self.cache_write_tokens
        if not read and not written:
            return 0.0
        if self.price is None:
            return None
        return self.price.cache_savings(self.prompt_tokens, read, written, self.cache_hour_tokens)

    def identify(self, new_id: Callable[[], str]) -> None:
        """Give each call an id that no other has, here and in the parts: results name theirs."""
        if not self.tool_calls:
            return
        ids = {call.get("id") or None for call in self.tool_calls}
        if len(ids) == len(self.tool_calls) and None not in ids:
            return
        seen: set[str] = set()
        calls = []
        for call in self.tool_calls:
            id = call.get("id")
            if not id or id in seen:
                id = f"call_{new_id()}"
            seen.add(id)
            calls.append({**call, "id": id})
        self.tool_calls = calls
        named = iter(calls)
        self.parts = [
            {**part, "id": next(named)["id"]} if part.get("type") == "tool_use" else part
            for part in self.parts
        ]

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
            "cache_hit_ratio": read / (self.prompt_tokens or 1),
            "cache_savings_usd": self.cache_savings,
        }
