"""What a user sees of a reply: its text without protocol, thoughts and plans. Spec: 07 §1.4."""

from __future__ import annotations

import json
import re
from typing import Any

_THOUGHTS = re.compile(r"<think>.*?</think>|<think>.*", re.DOTALL)
_PROTOCOL = re.compile(
    r"<\|tool_call\|>.*?</\|tool_call\|>"
    r"|<tool_call>.*?</tool_call>"
    r"|<done>.*?</done>"
    r"|<tool_result[^>]*>.*?</tool_result>"
    r"|\[result of [^\]]*\].*?\[end of [^\]]*\]",
    re.DOTALL,
)
_SENTINEL_LINES = re.compile(r"^[ \t]*(?:##DONE##|DONE|PLAN_READY)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_RESPONSE = re.compile(r"<user_response>(.*?)</user_response>", re.DOTALL)
_PROSE = re.compile(r"<assistant_prose>(.*?)</assistant_prose>", re.DOTALL)
_JSON_FENCE = re.compile(r"```json\s*\n(.*?)```", re.DOTALL)
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
    text = _PROTOCOL.sub("", without_thoughts(text))
    text = _SENTINEL_LINES.sub("", text)
    bodies = [body.strip() for body in _RESPONSE.findall(text)]
    if any(bodies):
        text = "\n\n".join(filter(None, bodies))
    else:
        text = _PROSE.sub(lambda match: match[1].strip(), text)
    text = _without_plans(text)
    return text.replace("\r\n", "\n").replace("\n\n\n", "\n\n").strip()


def _without_plans(text: str) -> str:
    text = _JSON_FENCE.sub(lambda match: "" if _is_plan(match[1]) else match[0], text)
    while found := _INLINE_PLAN.search(text):
        try:
            _, end = json.JSONDecoder().raw_decode(text, found.start())
        except ValueError:
            break
        text = text[: found.start()] + text[end:]
    return text


def _is_plan(body: str) -> bool:
    try:
        value = json.loads(body)
    except ValueError:
        return False
    return isinstance(value, dict) and (value.get("mode") in _PLAN_MODES or _has_plan_key(value))


def _has_plan_key(value: Any) -> bool:
    if isinstance(value, dict):
        return not _PLAN_KEYS.isdisjoint(value) or any(map(_has_plan_key, value.values()))
    return isinstance(value, list) and any(map(_has_plan_key, value))
