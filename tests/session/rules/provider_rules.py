"""What model services require of the conversation in a request. A body that breaks a rule is refused there.

The bodies are those that our own providers send. Spec: 10 §C12.1 a.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from harnpy.llm.configuration.known_providers import ProviderConfig
from harnpy.llm.providers import make_provider
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request
from harnpy.llm.request_messages import request_messages
from harnpy.world.http import RealHttp
from tests.llm.wire import ANTHROPIC, DEEPSEEK, GEMINI, MISTRAL, OLLAMA, OPENAI, RESPONSES
from tests.wire.rules import check_request

Dict = dict[str, Any]

#: The calls of a session are text, or as a dialect has them.
TEXT = "text"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CALLS = "<tool_call>"
#: How the results of calls that are text begin.
RESULTS = '<runtime_feedback kind="tool_results">'


def assert_accepted(messages: list[Dict], style: str) -> None:
    """Fail unless each service takes a request with these messages, whose calls and results are in that
    ``style``: also those that the session may move to."""
    for dialect in (OPENAI, ANTHROPIC):
        assert_body_accepted(_body(messages, dialect)["messages"], dialect)
    if not messages or messages[-1]["role"] == "assistant":
        messages = [*messages, {"role": "user", "content": "go on"}]  # else nobody would ask
    for dialect in (RESPONSES, GEMINI, DEEPSEEK, MISTRAL, OLLAMA):
        check_request(dialect, _body(messages, dialect))
    if style == TEXT:
        _check_text(messages)


def assert_body_accepted(messages: list[Dict], style: str) -> None:
    """Fail unless the service takes a body with these messages."""
    if style == OPENAI:
        _check_openai(messages)
    else:
        _check_anthropic(messages)


def _body(messages: list[Dict], dialect: str) -> Dict:
    body: Dict = _provider(dialect).body(Request(request_messages(messages), None, dialect, MODEL))
    return body


#: The model of all requests.
MODEL = "model"


@cache
def _provider(dialect: str) -> Any:
    """A provider that is asked for bodies alone; only who asks imports the SDKs, which takes seconds."""
    config = ProviderConfig(name=dialect, base_url="", auth_style="none", protocol=dialect)
    return make_provider(config, RealHttp())


def written(reply: Reply, style: str) -> Reply:
    """Return a reply as that dialect's service writes it: with thinking, and blocks that are kept for it."""
    if style not in (RESPONSES, GEMINI):
        return reply
    answer = _provider(style).new_answer()
    answer.take((_response if style == RESPONSES else _generated)(reply))
    made: Reply = _provider(style).reply_so_far(answer, Request([], None, style, MODEL))
    return made


def _response(reply: Reply) -> Dict:
    thought = {"type": "reasoning", "id": "rs_1", "encrypted_content": "S", "summary": []}
    content = [{"type": "output_text", "text": reply.text, "annotations": []}]
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    calls = [
        {"type": "function_call", "id": f"fc_{number}", "call_id": call["id"], "name": call["name"]}
        | {"arguments": json.dumps(call["arguments"]), "status": "completed"}
        for number, call in enumerate(reply.tool_calls)
    ]
    return {"status": "completed", "output": [thought, {**message, "content": content}, *calls]}


def _generated(reply: Reply) -> Dict:
    thought = {"text": "Which one?", "thought": True}
    calls = [
        {"functionCall": {"name": call["name"], "args": call["arguments"]}, "thoughtSignature": "S"}
        for call in reply.tool_calls
    ]
    parts = [thought, {"text": reply.text}, *calls]
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}


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
