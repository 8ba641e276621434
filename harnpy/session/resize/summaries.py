"""The strategies: what replaces archived messages. Spec: 08 §4.4, §4.5.

Lengths are UTF-8 bytes; cuts move back to the start of a character.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.errors import ResizeError
from harnpy.session.transcript import RESULT_ROLES
from harnpy.text.display import display

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.session.resize.compaction import CompactPolicy

    Message = dict[str, Any]

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


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def cut_bytes(text: str, limit: int) -> str:
    """Return as much of the beginning as fits into ``limit`` bytes."""
    if text.isascii():
        return text[:limit]
    return text.encode("utf-8", "surrogatepass")[:limit].decode("utf-8", "ignore")
