"""Compaction: where to cut a conversation, and what replaces what is cut. Pure. Spec: 08 §4.1–4.5, 10 §A2.4.

Nothing here writes: `resize` and the verbs apply what is decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.formats.display import display
from harnpy.formats.text_size import byte_length, cut_bytes, tokens_of
from harnpy.formats.tool_messages import RESULT_ROLES
from harnpy.session.errors import ResizeError
from harnpy.session.pairs import Pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harnpy.formats.dicts import Dict

    Message = dict[str, Any]

# What a compaction is asked to do and what it decides: `CompactPolicy`, `Compaction`. Spec: 08 §4.2.


STRATEGIES = ("llm", "truncate", "custom", "observation_mask")

KEEP_LAST = 12
TOKEN_THRESHOLD = 48000
TOOL_OUTPUT_MAX_CHARS = 16000


class CompactPolicy(NamedTuple):
    """The options of a compaction: 08 §4.2. Limits are estimated tokens, ``tool_output_max_chars`` bytes.

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

    @classmethod
    def of(cls, **given: Any) -> CompactPolicy:
        """Return the policy with these settings; None is the default, `custom` where a compactor is given."""
        known = {key: value for key, value in given.items() if value is not None}
        if "custom_compactor" in known:
            known.setdefault("strategy", "custom")
        return cls(**known)

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


# How long messages are, in printed characters, and messages with less text. Spec: 10 §A2.4, §C8.


_CALLS = ("tool_use", "tool_call")


def printed_length(message: Message) -> int:
    """Return the characters of the message's Python text, role and content first."""
    return len(str({"role": message.get("role"), "content": message.get("content"), **message}))


def length_of(messages: Iterable[Message]) -> int:
    return sum(map(printed_length, messages))


def last_text(message: Message, room: int) -> tuple[Message, int]:
    """Return the message with the last ``room`` characters of its text, and the room that is left then.

    Parts of a content list that are neither text nor a call nor a result go. A message whose text fits is
    returned as it is.
    """
    content, left = _last_of(message.get("content"), room)
    return (message if content == message.get("content") else {**message, "content": content}), left


def _last_of(content: Any, room: int) -> tuple[Any, int]:
    if content is None:
        return None, room
    if not isinstance(content, list):
        text = content if isinstance(content, str) else str(content)
        kept = text[max(0, len(text) - room) :]
        return kept, room - len(kept)
    if _text_length(content) <= room:
        return content, room - _text_length(content)
    parts: list[Any] = []
    for part in reversed(content):
        cut, room = _last_of_part(part, room)
        if cut is not None:
            parts.append(cut)
    return parts[::-1] or "", room


def _last_of_part(part: Any, room: int) -> tuple[Any, int]:
    """Return what stays of a part, None for nothing, and the room that is left."""
    if isinstance(part, str):
        text, room = _last_of(part, room)
        return text or None, room
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in _CALLS:
        return part, room
    key = {"text": "text", "tool_result": "content"}.get(str(kind))
    if key is None:
        return None, room
    cut, room = _last_of(part.get(key), room)
    return ({**part, key: cut} if cut or kind == "tool_result" else None), room


def _text_length(content: list[Any]) -> int:
    total = 0
    for part in content:
        inner = part.get("text", part.get("content")) if isinstance(part, dict) else part
        if isinstance(inner, list):
            total += _text_length(inner)
        elif isinstance(inner, str):
            total += len(inner)
    return total


# The strategies: what replaces archived messages. Spec: 08 §4.4, §4.5.
#
# Lengths are UTF-8 bytes; cuts move back to the start of a character.


LONG = 500
_LINES_SHOWN = 15
_PREVIEW = 120

_PROMPT = (
    "Write a summary of the archived messages below that lets another agent take over: keep goals, limits, "
    "decisions, finished tool work, open problems and next steps. Answer with the summary alone."
)


def write(
    strategy: str, archived: list[Message], count: int, policy: CompactPolicy, *, masks: bool = True
) -> str:
    """Return the summary of ``archived``, which stand for ``count`` messages. ``masks``: ask the callback."""
    if strategy == "truncate":
        return _truncated(archived, count, f"[auto-compacted {count} older messages via truncate strategy]")
    if strategy == "observation_mask":
        return _masked(archived, count, policy, masks)
    if strategy == "llm":
        return _asked(archived, count, policy)
    return _custom(archived, count, policy)


def conversation_lines(messages: Sequence[Any], only_text: bool = False) -> str:
    """Return ``ROLE: CONTENT`` of every message, for a model to read.

    ``only_text``: content that isn't text is left out.
    """
    lines = []
    for message in messages:
        if isinstance(message, dict):
            content = message.get("content")
            other = "" if only_text or content is None else display(content)
            lines.append(f"{_role(message).upper()}: {content if isinstance(content, str) else other}")
    return "\n".join(lines)


def _truncated(archived: list[Message], count: int, header: str) -> str:
    lines = [
        f"[{message['role']}] {_cut(message['content'])}"
        for message in archived
        if isinstance(message.get("role"), str) and _content(message)
    ]
    text = "\n".join([header, *lines[:_LINES_SHOWN]])
    return text if count <= _LINES_SHOWN else f"{text}\n... and {count - _LINES_SHOWN} more"


def _masked(archived: list[Message], count: int, policy: CompactPolicy, masks: bool) -> str:
    given = policy.mask_callback(archived) if masks and policy.mask_callback else None
    chosen = given if isinstance(given, list) else []
    lines = [f"[auto-compacted {count} older messages via observation masking]"]
    for number, message in enumerate(archived):
        content = _content(message)
        if content:
            mask = chosen[number] if number < len(chosen) else None
            lines.append(_observation(message, content, mask, policy))
    return "\n".join(lines)


def _observation(message: Message, content: str, mask: Any, policy: CompactPolicy) -> str:
    """Return what remains visible of a message."""
    role = _role(message)
    if role == "assistant" or byte_length(content) < LONG:
        return f"[{role}] {content}"
    if isinstance(mask, str):
        return mask
    return f"[{role}] {_compressed(message, content, policy) or _preview(content)}"


def _compressed(message: Message, content: str, policy: CompactPolicy) -> str | None:
    """Return a long tool result as the compress callback shortens it; None if it has nothing or fails
    (08 §4.5)."""
    limit, callback = policy.tool_output_max_chars, policy.compress_callback
    if callback is None or message.get("role") not in RESULT_ROLES or byte_length(content) <= limit:
        return None
    name = message.get("name")
    tool_name = name if isinstance(name, str) else ""
    try:
        text = callback({"tool_name": tool_name, "output": content, "max_chars": limit})
    except Exception:
        return None  # the built-in form takes over
    return text if isinstance(text, str) and text else None


def _preview(content: str) -> str:
    lines = content.replace("\r\n", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    if len(lines) <= 3:
        return content
    length = byte_length(content)
    return f"{cut_bytes(lines[0], _PREVIEW)}... [{len(lines)} lines, {length} chars masked]"


def _asked(archived: list[Message], count: int, policy: CompactPolicy) -> str:
    if policy.summarize is None:
        raise ResizeError("LLM transcript compaction requires active LLM call options")
    lines = conversation_lines(archived, only_text=True)
    prompt = policy.prompt(lines, count) if policy.prompt else _default_prompt(lines, count)
    reply = policy.summarize(prompt).strip()
    if reply:
        return f"[auto-compacted {count} older messages]\n{reply}"
    header = (
        f"[auto-compact fallback: LLM summarizer returned empty; {count} older messages abbreviated to "
        f"~{LONG} chars each]"
    )
    return _truncated(archived, count, header)


def _default_prompt(lines: str, count: int) -> str:
    return f"{_PROMPT}\n\nArchived message count: {count}\n\nConversation:\n{lines}"


def _custom(archived: list[Message], count: int, policy: CompactPolicy) -> str:
    assert policy.custom_compactor is not None, "checked before"
    summary = _summary_in(policy.custom_compactor(archived), policy)
    if summary.strip():
        return f"[auto-compacted {count} older messages]\n{summary}"
    return write("truncate", archived, count, policy)


def _summary_in(value: Any, policy: CompactPolicy) -> str:
    """Return the text that a custom compactor's value stands for."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    for key in ("summary", "text"):
        if isinstance(value, dict) and value.get(key) is not None:
            return display(value[key])
    return policy.pretty(value)


def _role(message: Message) -> str:
    role = message.get("role")
    return role if isinstance(role, str) else "user"


def _content(message: Message) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else ""


def _cut(content: str) -> str:
    length = byte_length(content)
    return content if length <= LONG else f"{cut_bytes(content, LONG)}... [truncated from {length} chars]"


# Making a conversation shorter: the one engine behind every compaction. Spec: 08 §4.1–4.5.
#
# One user message that summarises the older messages replaces them; the newest stay as they are, and
# optionally the first. Pure but for the model and callbacks that it is handed. Callers apply the resulting
# `Compaction` to a message list or a session.


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
    text = write(policy.strategy, archived, len(archived), policy)
    limit = policy.hard_limit_tokens
    if limit is not None and _tokens(text, rest) > limit:
        again = [{"role": "user", "content": text}]
        text = write(policy.hard_limit_strategy, again, len(archived), policy, masks=False)
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
    """Return whether the message belongs to a turn with tools or reasoning."""
    return message.get("role") == "tool" or "tool_calls" in message or message.get("reasoning") is not None


def estimate_tokens(messages: Sequence[Any]) -> int:
    """Estimate the tokens: a quarter of the bytes of all contents that are strings (08 §4.1)."""
    return tokens_of(content_bytes(messages), whole=True)


def content_bytes(messages: Sequence[Any]) -> int:
    """Return the UTF-8 length of all contents that are strings."""
    return sum(map(message_bytes, messages))


def message_bytes(message: Any) -> int:
    """Return the UTF-8 length of a message's content, 0 unless that is a string."""
    content = message.get("content") if isinstance(message, dict) else None
    return byte_length(content) if isinstance(content, str) else 0


def _tokens(summary: str, rest: Sequence[Message]) -> int:
    return tokens_of(byte_length(summary) + content_bytes(rest), whole=True)


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
