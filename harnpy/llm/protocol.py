"""The tagged reply format: top-level blocks of prose, answers, calls and the done marker. Spec: 07 §6.6.

Without tools no call is known, so a ``<tool_call>`` block is always an error here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from harnpy.llm.messages import compact_json
from harnpy.llm.visible import without_thoughts

TAGS = ("<assistant_prose>", "<user_response>", "<done>", "<tool_call>")

_BLOCK = re.compile(r"<(tool_call|assistant_prose|user_response|done)>(.*?)</\1>", re.DOTALL)
_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\(")
_PREVIEW = 120

_UNKNOWN_TAG = (
    "Unknown top-level tag {}. Use <tool_call>, <assistant_prose>, <user_response>, or <done> — no other "
    "tags are accepted at the top level."
)
_UNCLOSED_TAG = (
    "Unclosed tag starting at {}. Close it or remove it; only <tool_call>, <assistant_prose>, "
    "<user_response>, and <done> are accepted."
)
_STRAY_TEXT = (
    "Stray text outside response tags: {}. Wrap all prose in <assistant_prose>...</assistant_prose> or "
    "<user_response>...</user_response>, and every tool call in <tool_call>...</tool_call>."
)
_EMPTY_DONE = (
    "<done> block is empty. Emit the configured done sentinel (default `##DONE##`) inside the block."
)
_NO_BLOCK = (
    "Response contained no <tool_call>, <assistant_prose>, <user_response>, or <done> block. Every response "
    "must be composed of these tags only."
)


@dataclass(slots=True)
class Parsed:
    """A reply taken apart. ``canonical`` is its accepted blocks, written again."""

    prose_blocks: list[str] = field(default_factory=list)
    responses: list[str] = field(default_factory=list)
    done_marker: str | None = None
    rendered: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    @property
    def prose(self) -> str:
        """The answers, or else the prose."""
        return "\n\n".join(self.responses or self.prose_blocks)

    @property
    def canonical(self) -> str:
        return "\n\n".join(self.rendered)


def parse_reply(text: str) -> Parsed:
    """Take a reply apart. Never raises: what doesn't fit is a violation."""
    text = without_thoughts(text)
    parsed = Parsed()
    position = 0
    while position < len(text):
        position = _next(text, position, parsed)
    if text.strip() and not (parsed.rendered or parsed.errors or parsed.violations):
        parsed.violations.append(_NO_BLOCK)
    return parsed


def _next(text: str, position: int, parsed: Parsed) -> int:
    """Read one block, tag or stretch of text; where the next one begins."""
    block = _BLOCK.match(text, position)
    if block is not None:
        _add_block(block[1], block[2].strip(), parsed)
        return block.end()
    if text[position] != "<":
        end = text.find("<", position)
        end = len(text) if end < 0 else end
        stray = text[position:end].strip()
        if stray:
            parsed.violations.append(_STRAY_TEXT.format(_quoted(stray, _PREVIEW, "…")))
        return end
    line_end = text.find("\n", position)
    line_end = len(text) if line_end < 0 else line_end
    close = text.find(">", position, line_end)
    end = line_end if close < 0 else close + 1
    sentence = _UNCLOSED_TAG if close < 0 else _UNKNOWN_TAG
    parsed.violations.append(sentence.format(_quoted(text[position:end], 40)))
    return end


def _add_block(tag: str, body: str, parsed: Parsed) -> None:
    if tag == "tool_call":
        parsed.errors.append(_call_error(body))
    elif tag == "done":
        if not body:
            parsed.violations.append(_EMPTY_DONE)
            return
        parsed.done_marker = body
        parsed.rendered.append(f"<done>{body}</done>")
    elif body:
        (parsed.responses if tag == "user_response" else parsed.prose_blocks).append(body)
        parsed.rendered.append(f"<{tag}>\n{body}\n</{tag}>")


def _call_error(body: str) -> str:
    call = _CALL.match(body)
    if call is not None:
        return f"Unknown tool '{call[1]}'. Available tools: []"
    quoted = _quoted(body, _PREVIEW)
    return f"<tool_call> body did not contain a bare `name({{ ... }})` expression. Got: {quoted}"


def _quoted(text: str, limit: int, ellipsis: str = "") -> str:
    """A string literal of the first ``limit`` characters."""
    return compact_json(text[:limit] + (ellipsis if len(text) > limit else ""))
