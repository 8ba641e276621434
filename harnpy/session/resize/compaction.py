"""What a compaction is asked to do and what it decides: `CompactPolicy`, `Compaction`. Spec: 08 §4.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.session.errors import ResizeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.reading.dicts import Dict

    Message = dict[str, Any]

STRATEGIES = ("llm", "truncate", "custom", "observation_mask")

KEEP_LAST = 12
TOKEN_THRESHOLD = 48000
TOOL_OUTPUT_MAX_CHARS = 16000


class CompactPolicy(NamedTuple):
    """How to compact: 08 §4.2. Limits are estimated tokens, ``tool_output_max_chars`` bytes.

    ``summarize(prompt)`` asks a model; ``prompt(lines, count)`` replaces the default prompt; ``pretty`` is
    the JSON of a value.
    """

    keep_first: int = 0
    keep_last: int = KEEP_LAST
    strategy: str = "observation_mask"
    hard_limit_tokens: int | None = None
    hard_limit_strategy: str = "llm"
    tool_output_max_chars: int = TOOL_OUTPUT_MAX_CHARS
    custom_compactor: Callable[[list[Message]], Any] | None = None
    mask_callback: Callable[[list[Message]], Any] | None = None
    compress_callback: Callable[[Dict], Any] | None = None
    summarize: Callable[[str], str] | None = None
    prompt: Callable[[str, int], str] | None = None
    pretty: Callable[[Any], str] = repr

    def check(self) -> None:
        """Raise `ResizeError` for an unknown strategy, or one that lacks its closure."""
        for strategy in (self.strategy, self.hard_limit_strategy):
            if strategy not in STRATEGIES:
                raise ResizeError(
                    f"unknown compact_strategy '{strategy}' "
                    "(expected 'llm', 'truncate', 'custom', or 'observation_mask')"
                )
        if "custom" in (self.strategy, self.hard_limit_strategy):
            if self.custom_compactor is None:
                raise ResizeError("compact_callback is required when compact_strategy is 'custom'")
            if not callable(self.custom_compactor):
                raise ResizeError("compact_callback must be a closure when compact_strategy is 'custom'")


class Compaction(NamedTuple):
    """``text`` replaces the messages from number ``start`` up to ``split``.

    ``tokens_before`` and ``tokens_after`` are estimates of the whole list.
    """

    start: int
    split: int
    text: str
    strategy: str
    tokens_before: int
    tokens_after: int

    @property
    def archived(self) -> int:
        """The number of messages that were summarised."""
        return self.split - self.start

    @property
    def message(self) -> Message:
        return {"role": "user", "content": self.text}

    def applied(self, messages: Sequence[Message]) -> list[Message]:
        return [*messages[: self.start], self.message, *messages[self.split :]]

    def report(self) -> Dict:
        """Return the numbers as events show them."""
        return {
            "strategy": self.strategy,
            "archived_messages": self.archived,
            "estimated_tokens_before": self.tokens_before,
            "estimated_tokens_after": self.tokens_after,
        }
