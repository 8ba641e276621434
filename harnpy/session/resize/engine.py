"""Making a conversation shorter: the one engine behind every compaction. Spec: 08 §4.1–4.5.

One user message that summarises the older messages replaces them; the newest stay as they are, and
optionally the first. Pure but for the model and callbacks that it is handed. Callers apply the resulting
`Compaction` to a message list or a session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.resize import summaries
from harnpy.session.resize.compaction import Compaction
from harnpy.session.resize.pairs import Pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.session.resize.compaction import CompactPolicy

    Message = dict[str, Any]


def compact(messages: Sequence[Message], policy: CompactPolicy) -> Compaction | None:
    """Decide which messages to replace, and with what; None when there is nothing to do.

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
    """Return the numbers of the first message to archive and of the first one that stays behind it (08 §4.3).

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
    """Move the cut back to the start of a user's turn, if that still archives anything."""
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
    """Estimate the tokens: a quarter of the bytes of all contents that are strings (08 §4.1)."""
    return content_bytes(messages) // 4


def content_bytes(messages: Sequence[Any]) -> int:
    """Return the UTF-8 length of all contents that are strings."""
    return sum(map(message_bytes, messages))


def message_bytes(message: Any) -> int:
    """Return the UTF-8 length of a message's content, 0 unless that is a string."""
    content = message.get("content") if isinstance(message, dict) else None
    return summaries.byte_length(content) if isinstance(content, str) else 0


def _tokens(summary: str, rest: Sequence[Message]) -> int:
    return (summaries.byte_length(summary) + content_bytes(rest)) // 4


def merged_summary(old: str | None, new: str) -> str | None:
    """Return a transcript's summary after another compaction (08 §4.7)."""
    if not new.strip():
        return old
    if old is None or not old.strip():
        return new
    return old if old.strip() == new.strip() else f"{old}\n\n{new}"


def joined_summaries(texts: list[str]) -> str | None:
    """Return what merging them one after the other gives, if each changes the summary; None of none."""
    if len(texts) > 1 and not texts[0].strip():
        texts = texts[1:]
    return "\n\n".join(texts) if texts else None
