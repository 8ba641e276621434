"""What model services require of the conversation in a request. A body that breaks a rule is refused there.

The bodies are those that our own providers send. Spec: 10 §C12.1 a.
"""

from __future__ import annotations

import json
import re
from functools import cache
from types import SimpleNamespace
from typing import Any

from harnpy.llm.request import Request
from harnpy.llm.request_messages import request_messages

Dict = dict[str, Any]

OPENAI, ANTHROPIC, TEXT = "openai", "anthropic", "text"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CALLS = "<tool_call>"
#: How the results of calls that are text begin.
RESULTS = '<runtime_feedback kind="tool_results">'


def assert_accepted(messages: list[Dict], style: str) -> None:
    """Fail unless the service takes a request with these messages: calls and results in the ``style``
    `OPENAI` or `ANTHROPIC`, or as `TEXT`, which every service must take."""
    for each in (OPENAI, ANTHROPIC):
        if style in (each, TEXT):
            assert_body_accepted(_body(messages, each), each)
    if style == TEXT:
        _check_text(messages)


def assert_body_accepted(messages: list[Dict], style: str) -> None:
    """Fail unless the service takes a body with these messages."""
    if style == OPENAI:
        _check_openai(messages)
    else:
        _check_anthropic(messages)


def _body(messages: list[Dict], style: str) -> list[Dict]:
    request = Request(request_messages(messages), None, style, "model")
    body: list[Dict] = _provider(style).body(request)["messages"]
    return body


@cache
def _provider(style: str) -> Any:
    """A provider that is asked for bodies alone; only who asks imports the SDKs, which takes seconds."""
    from harnpy.llm.providers.anthropic import AnthropicProvider
    from harnpy.llm.providers.openai_compatible import OpenAIProvider

    kind: Any = AnthropicProvider if style == ANTHROPIC else OpenAIProvider
    return kind(SimpleNamespace(name=style, base_url="", features=()), None)


def _check_openai(messages: list[Dict]) -> None:
    waiting: list[str] = []
    for message in messages:
        role, content = message["role"], message["content"]
        if role == "tool":
            assert message["tool_call_id"] in waiting, f"{message['tool_call_id']} answers nothing"
            assert isinstance(content, str), "a result is text"
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting, f"unanswered: {waiting}"
        assert role in ("system", "developer", "user", "assistant"), role
        calls = message.get("tool_calls", [])
        assert content or calls, f"an empty message of the {role}"
        waiting = [_openai_call(call) for call in calls]
        assert len(set(waiting)) == len(waiting), "two calls of one id"
    assert not waiting, f"unanswered: {waiting}"


def _openai_call(call: Dict) -> str:
    assert call["type"] == "function"
    assert _NAME.fullmatch(call["function"]["name"])
    assert isinstance(json.loads(call["function"]["arguments"]), dict)
    id: str = call["id"]
    assert id, "a call without an id"
    return id


def _check_anthropic(messages: list[Dict]) -> None:
    waiting: list[str] = []
    for number, message in enumerate(messages):
        role, blocks = message["role"], message["content"]
        assert role == ("user", "assistant")[number % 2], "roles alternate, and the user begins"
        assert blocks, f"an empty message of the {role}"
        results = [block for block in blocks if block["type"] == "tool_result"]
        assert blocks[: len(results)] == results, "results come first"
        found = [result["tool_use_id"] for result in results]
        assert sorted(found) == sorted(waiting), f"{waiting} were called, {found} are answered"
        waiting = [_anthropic_call(block) for block in blocks if block["type"] == "tool_use"]
        assert not waiting or role == "assistant", "only an assistant calls"
        assert len(set(waiting)) == len(waiting), "two calls of one id"
        for block in blocks:
            assert block["type"] != "text" or block["text"].strip(), "blank text"
    assert not waiting, f"unanswered: {waiting}"


def _anthropic_call(block: Dict) -> str:
    id: str = block["id"]
    assert _NAME.fullmatch(id)
    assert _NAME.fullmatch(block["name"])
    assert isinstance(block["input"], dict)
    return id


def _check_text(messages: list[Dict]) -> None:
    """Results stand right behind the calls that they are of. Calls without results are only text: none of
    them was begun."""
    before = ""
    for message in messages:
        content = str(message.get("content"))
        if content.startswith(RESULTS):
            assert before.count(_CALLS), f"results of no calls, behind {before[:80]!r}"
        before = content if message["role"] == "assistant" else ""
