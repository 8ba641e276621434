"""What a user sees of a reply: its text without protocol, thoughts and plans. Spec: 07 §1.4.

Takes time in proportion to the text, whatever is in it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from harnpy.llm.text_format.heredocs import Heredocs
from harnpy.llm.text_format.written_literals import LiteralError, LiteralReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_THOUGHTS = re.compile(r"<think>.*?</think>|<think>.*", re.DOTALL)
_PROTOCOL = re.compile(
    r"<(?P<tag>(?:\|tool_call\||tool_call|done)(?=>)|tool_result(?=[^<>]*>))|\[result of [^\[\]]*\]"
)
_PROTOCOL_ENDS = {
    tag: re.compile(re.escape(f"</{tag}>")) for tag in ("|tool_call|", "tool_call", "done", "tool_result")
} | {None: re.compile(r"\[end of [^\[\]]*\]")}
_RESPONSE = re.compile("<user_response>")
_RESPONSE_END = re.compile("</user_response>")
_PROSE = re.compile("<assistant_prose>")
_PROSE_END = re.compile("</assistant_prose>")
_SENTINEL_LINES = re.compile(r"^[ \t]*(?:##DONE##|DONE|PLAN_READY)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_JSON_FENCE = re.compile(r"```json[^\S\n]*\n(.*?)```", re.DOTALL)
_INLINE_PLAN = re.compile(r'\{\s*"mode"\s*:\s*"(?:fast_execute|plan_then_execute|ask_user)"')

_PLAN_MODES = ("fast_execute", "plan_then_execute", "ask_user")
_PLAN_KEYS = frozenset(
    "plan steps tool_calls tool_name verification execution_mode required_outputs files_to_edit next_action"
    " reasoning direction targets tasks unknowns".split()
)


def without_thoughts(text: str) -> str:
    """Without ``<think>`` blocks, an unclosed one included."""
    return _THOUGHTS.sub("", text) if "<think>" in text else text


def visible_text(text: str) -> str:
    """``text`` as a user should see it."""
    text = without_thoughts(text)
    text = _replaced(text, _blocks(text, _PROTOCOL, lambda opening: _PROTOCOL_ENDS[opening["tag"]]))
    text = _SENTINEL_LINES.sub("", text)
    bodies = [body.strip() for _, body, _ in _blocks(text, _RESPONSE, lambda _: _RESPONSE_END)]
    if any(bodies):
        text = "\n\n".join(filter(None, bodies))
    else:
        text = _replaced(text, _blocks(text, _PROSE, lambda _: _PROSE_END), str.strip)
    text = _without_plans(text)
    return text.replace("\r\n", "\n").replace("\n\n\n", "\n\n").strip()


def _blocks(
    text: str, opening: re.Pattern[str], closing: Callable[[re.Match[str]], re.Pattern[str]]
) -> Iterator[tuple[int, str, int]]:
    """Where each block begins, its body, and where it ends. A missing closing tag is searched for once."""
    missing = set()
    at = 0
    while begin := opening.search(text, at):
        at = begin.end()
        wanted = closing(begin)
        end = None if wanted in missing else wanted.search(text, at)
        if end is None:
            missing.add(wanted)
        else:
            yield begin.start(), text[at : end.start()], end.end()
            at = end.end()


def _replaced(
    text: str, blocks: Iterator[tuple[int, str, int]], replace: Callable[[str], str] = lambda body: ""
) -> str:
    """``text`` with each block replaced by a part of its body, or by nothing."""
    pieces, at = [], 0
    for start, body, end in blocks:
        pieces += [text[at:start], replace(body)]
        at = end
    return "".join([*pieces, text[at:]])


def _without_plans(text: str) -> str:
    text = _JSON_FENCE.sub(lambda match: "" if _is_plan(match[1]) else match[0], text)
    reader = LiteralReader(text, Heredocs(text))
    pieces, at = [], 0
    while found := _INLINE_PLAN.search(text, at):
        reader.at = found.start()
        try:
            reader.value()
        except LiteralError:
            break
        pieces.append(text[at : found.start()])
        at = reader.at
    return "".join([*pieces, text[at:]])


def _is_plan(body: str) -> bool:
    reader = LiteralReader(body, Heredocs(body))
    try:
        value = reader.value()
    except LiteralError:
        return False
    whole = isinstance(value, dict) and not reader.peek()
    return whole and (value.get("mode") in _PLAN_MODES or _has_plan_key(value))


def _has_plan_key(value: Any) -> bool:
    if isinstance(value, dict):
        return not _PLAN_KEYS.isdisjoint(value) or any(map(_has_plan_key, value.values()))
    return isinstance(value, list) and any(map(_has_plan_key, value))
