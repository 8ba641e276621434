"""Making a conversation shorter: the one engine behind every compaction. Spec: 08 §4.1–4.5.

Older messages give way to one user message that sums them up; the newest stay as they are, and so may the
first. Pure but for what it is handed: a model to ask, callbacks to call. Whoever runs the engine applies
its `Compaction` to a message list or a session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.session.errors import ResizeError
from harnpy.session.resize import summaries
from harnpy.session.resize.pairs import Pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.reading.dicts import Dict

    Message = dict[str, Any]

STRATEGIES = ("llm", "truncate", "custom", "observation_mask")

KEEP_LAST = 12
TOKEN_THRESHOLD = 48000
TOOL_OUTPUT_MAX_CHARS = 16000


class ResizePolicy(NamedTuple):
    """How to compact: 08 §4.2. Limits are estimated tokens, ``tool_output_max_chars`` bytes.

    ``summarize(prompt)`` asks a model; ``prompt(lines, count)`` writes what it is asked instead of the
    default; ``show`` is the display of a value, ``pretty`` its JSON.
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
    show: Callable[[Any], str] = str
    pretty: Callable[[Any], str] = repr

    def check(self) -> None:
        """Raise `ResizeError` for a strategy that isn't one, or that lacks its closure."""
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
    """``text`` takes the place of the messages from number ``start`` up to ``split``.

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
        """The number of messages that were summed up."""
        return self.split - self.start

    @property
    def message(self) -> Message:
        return {"role": "user", "content": self.text}

    def applied(self, messages: Sequence[Message]) -> list[Message]:
        return [*messages[: self.start], self.message, *messages[self.split :]]

    def report(self) -> Dict:
        """The numbers, as events show them."""
        return {
            "strategy": self.strategy,
            "archived_messages": self.archived,
            "estimated_tokens_before": self.tokens_before,
            "estimated_tokens_after": self.tokens_after,
        }


def compact(messages: Sequence[Message], policy: ResizePolicy) -> Compaction | None:
    """What to put in the place of what; None when there is nothing to do.

    Raises `ResizeError` for a policy that can't be carried out, and whatever the model or the custom
    compactor raises.
    """
    policy.check()
    cut = boundaries(messages, policy.keep_first, policy.keep_last)
    if cut is None:
        return None
    start, split = cut
    archived = list(messages[start:split])
    rest = [*messages[:start], *messages[split:]]
    text = summaries.write(policy.strategy, archived, len(archived), policy)
    limit = policy.hard_limit_tokens
    if limit is not None and _tokens(text, rest) > limit:
        again = [{"role": "user", "content": text}]
        text = summaries.write(policy.hard_limit_strategy, again, len(archived), policy, masks=False)
    return Compaction(start, split, text, policy.strategy, estimate_tokens(messages), _tokens(text, rest))


def boundaries(messages: Sequence[Message], keep_first: int, keep_last: int) -> tuple[int, int] | None:
    """The numbers of the first message to archive and of the first one behind them that stays (08 §4.3).

    A call and its result never part, even when no user message begins their turn.
    """
    count = len(messages)
    if count <= keep_first + keep_last:
        return None
    pairs = Pairs(messages)
    start = pairs.open_cut(min(keep_first, count))
    split = _turn_cut(messages, start, max(0, count - keep_last))
    return (start, pairs.whole_cut(split, start)) if split > start else None


def _turn_cut(messages: Sequence[Message], start: int, wanted: int) -> int:
    """The cut moved to where a user's turn begins, if that archives anything."""
    count, split = len(messages), wanted
    while start < split < count and messages[split].get("role") != "user":
        split -= 1
    if split <= start:
        split = wanted
    working = next((i for i in range(split, count) if _is_working(messages[i])), None)
    if working is None:
        return split
    return next((i for i in range(working - 1, start, -1) if messages[i].get("role") == "user"), split)


def _is_working(message: Message) -> bool:
    """Whether the message belongs to a turn with tools or reasoning."""
    return message.get("role") == "tool" or "tool_calls" in message or message.get("reasoning") is not None


def estimate_tokens(messages: Sequence[Any]) -> int:
    """A quarter of the bytes of all contents that are strings (08 §4.1)."""
    return content_bytes(messages) // 4


def content_bytes(messages: Sequence[Any]) -> int:
    """The UTF-8 length of all contents that are strings."""
    return sum(map(message_bytes, messages))


def message_bytes(message: Any) -> int:
    """The UTF-8 length of a message's content, 0 when that is no string."""
    content = message.get("content") if isinstance(message, dict) else None
    return summaries.byte_length(content) if isinstance(content, str) else 0


def _tokens(summary: str, rest: Sequence[Message]) -> int:
    return (summaries.byte_length(summary) + content_bytes(rest)) // 4


def merged_summary(old: str | None, new: str) -> str | None:
    """A transcript's summary after another compaction (08 §4.7)."""
    if not new.strip():
        return old
    if old is None or not old.strip():
        return new
    return old if old.strip() == new.strip() else f"{old}\n\n{new}"
