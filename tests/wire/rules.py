"""What each dialect's service takes: by the official SDK's types, and by rules that these can't say.

Nothing of harnpy reads a request here.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Container
from functools import cache
from typing import Any

from tests.llm.wire import ANTHROPIC, DEEPSEEK, GEMINI, MISTRAL, OLLAMA, OPENAI, RESPONSES

Body = dict[str, Any]

_NAME = {OPENAI: r"[a-zA-Z0-9_-]{1,64}", ANTHROPIC: r"[a-zA-Z0-9_-]{1,128}"}


def check_request(dialect: str, body: Body, own: Container[str] = ()) -> None:
    """Fail unless the dialect's services take the request; ``own`` are ids of calls that this one gave."""
    _CHECKS[dialect](body, own)


@cache
def _adapter(dialect: str) -> Any:
    from pydantic import TypeAdapter

    if dialect == ANTHROPIC:
        from anthropic.types import MessageParam

        return TypeAdapter(list[MessageParam])
    if dialect == RESPONSES:
        from openai.types.responses.response_input_param import ResponseInputItemParam

        return TypeAdapter(list[ResponseInputItemParam])
    from openai.types.chat import ChatCompletionMessageParam

    return TypeAdapter(list[ChatCompletionMessageParam])


def _check_types(dialect: str, messages: list[Any]) -> None:
    # What the types call an iterable is read lazily, without being checked: look at each.
    for message in _adapter(dialect).validate_python(messages):
        for value in message.values():
            if hasattr(value, "__next__"):
                list(value)


def _check_chat(body: Body, own: Container[str]) -> None:
    _check_types(OPENAI, body["messages"])
    _check_pairs(body, own)


def _check_deepseek(body: Body, own: Container[str]) -> None:
    _check_chat(body, own)
    said = [message for message in body["messages"] if message["role"] == "assistant"]
    assert all("reasoning_content" in message for message in said)


#: The keys that Mistral takes: it refuses any other. By role, those of messages.
_MISTRALS = {
    *("model", "messages", "max_tokens", "stream", "tools", "tool_choice", "temperature", "top_p", "top_k"),
    *("stop", "random_seed", "response_format", "presence_penalty", "frequency_penalty", "reasoning_effort"),
}
_MISTRALS_OF = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "prefix"},
    "tool": {"role", "content", "tool_call_id", "name"},
}
#: Which roles it takes behind which.
_BEHIND = {
    "": ("system", "user"),
    "system": ("user", "assistant"),
    "user": ("assistant", "user"),
    "assistant": ("assistant", "user", "tool"),
    "tool": ("assistant", "tool"),
}


def _check_mistral(body: Body, own: Container[str]) -> None:
    assert body.keys() <= _MISTRALS
    before = ""
    for message in body["messages"]:
        assert message.keys() <= _MISTRALS_OF[message["role"]]
        assert message["role"] in _BEHIND[before], f"{message['role']} after {before}"
        before = message["role"]
        ids = [call["id"] for call in message.get("tool_calls", ())]
        assert all(re.fullmatch("[a-zA-Z0-9]{9}", id) for id in ids)
        assert isinstance(message["content"], str) or message["content"]
    assert before in ("user", "tool")
    _check_pairs(body, own)


def _check_ollama(body: Body, own: Container[str]) -> None:
    assert body.keys() <= {"model", "messages", "options", "stream", "tools", "truncate", "shift"}
    for message in body["messages"]:
        assert message["role"] in ("system", "user", "assistant", "tool")
        assert isinstance(message["content"], str)
        for image in message.get("images", ()):
            assert b64decode(image, validate=True)
        for call in message.get("tool_calls", ()):
            assert isinstance(call["function"]["arguments"], dict)
        assert message["role"] != "tool" or re.fullmatch(_NAME[OPENAI], message["tool_name"])
    _check_pairs(body, own)


def _check_pairs(body: Body, own: Container[str]) -> None:
    """Check names, ids, and that each call has its result behind it."""
    _check_names([tool["function"]["name"] for tool in body.get("tools", ()) if "function" in tool], OPENAI)
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting, "a call without its result"
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        assert len(set(waiting)) == len(waiting)
        assert all(id in own or re.fullmatch("[a-zA-Z0-9_-]{1,40}", id) for id in waiting)
        assert message["role"] != "assistant" or message.get("content") or waiting
    assert not waiting


def _check_messages(body: Body, own: Container[str]) -> None:
    _check_types(ANTHROPIC, body["messages"])
    _check_names([tool["name"] for tool in body.get("tools", ()) if "name" in tool], ANTHROPIC)
    assert body["messages"][0]["role"] == "user"
    waiting: list[str] = []
    role = ""
    for message in body["messages"]:
        assert message["role"] != role, "the roles alternate"
        role = message["role"]
        assert message["content"]
        results = [block for block in message["content"] if block["type"] == "tool_result"]
        assert message["content"][: len(results)] == results, "results come first"
        assert sorted(block["tool_use_id"] for block in results) == sorted(waiting)
        waiting = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]+", id) for id in waiting)
        assert len(set(waiting)) == len(waiting)
        for block in message["content"]:
            assert block["type"] != "text" or block["text"].strip()
            assert block["type"] != "thinking" or block["signature"]
    assert not waiting


def _check_responses(body: Body, own: Container[str]) -> None:
    _check_types(RESPONSES, body["input"])
    _check_names([tool["name"] for tool in body.get("tools", ()) if "name" in tool], OPENAI)
    calls: list[str] = []
    for item in body["input"]:
        if item["type"] == "function_call":
            assert item["call_id"] not in calls
            calls.append(item["call_id"])
        elif item["type"] == "function_call_output":
            calls.remove(item["call_id"])
        elif item.get("role") not in (None, "assistant"):
            assert not calls, "a call without its output"
    assert not calls


def _check_gemini(body: Body, own: Container[str]) -> None:
    assert body["contents"][0]["role"] == "user"
    waiting: list[str] = []
    role = ""
    for content in body["contents"]:
        assert content["role"] in ("user", "model")
        assert content["role"] != role, "the roles alternate"
        role = content["role"]
        assert content["parts"]
        results = [
            part["functionResponse"]["name"] for part in content["parts"] if "functionResponse" in part
        ]
        assert sorted(results) == sorted(waiting)
        waiting = [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]
        for part in content["parts"]:
            kinds = part.keys() - {"thought", "thoughtSignature"}
            assert len(kinds) == 1
            assert kinds <= {
                *("text", "inlineData", "fileData", "functionCall", "functionResponse"),
                *("executableCode", "codeExecutionResult"),
            }
    assert not waiting


def _check_names(names: list[str], dialect: str) -> None:
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(_NAME[dialect], name) for name in names)


_CHECKS = {
    OPENAI: _check_chat,
    MISTRAL: _check_mistral,
    DEEPSEEK: _check_deepseek,
    OLLAMA: _check_ollama,
    ANTHROPIC: _check_messages,
    RESPONSES: _check_responses,
    GEMINI: _check_gemini,
}
