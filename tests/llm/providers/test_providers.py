"""What goes over the wire to real services, and what comes back: both protocols, streamed and whole."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest

from harnpy.faults import OptionError
from harnpy.formats.dicts import Options
from harnpy.llm.call_options import Output, Transport, read_output
from harnpy.llm.configuration.known_providers import ProviderConfig
from harnpy.llm.errors import CallError
from harnpy.llm.providers import Connections, make_provider
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request
from harnpy.llm.waiting import Blocking
from harnpy.version import install_command
from harnpy.world.clock import RealClock
from harnpy.world.http import RealHttp
from tests.llm.wire import ANTHROPIC, GEMINI, KEY, OPENAI, RESPONSES, Call, Fail, Raw, Say, Silence, Wire

BOTH = pytest.mark.parametrize("protocol", [OPENAI, ANTHROPIC])
EITHER_WAY = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


def config(wire: Wire, **changes: Any) -> ProviderConfig:
    own: dict[str, Any] = (
        {"auth_style": "header", "auth_header": "x-api-key", "chat_endpoint": "/messages"}
        if wire.protocol == ANTHROPIC
        else {"auth_style": "bearer"}
    )
    fields = {"name": "acme", "base_url": wire.url, "api_key": KEY, "protocol": wire.protocol}
    return ProviderConfig(**{**fields, **own, **changes})


def request(*messages: dict[str, Any], **fields: Any) -> Request:
    said = list(messages) or [{"role": "user", "content": "hi"}]
    wire = {key: fields.pop(key) for key in ("stream", "timeout", "idle_timeout") if key in fields}
    given = {"messages": said, "system": None, "provider": "acme", "model": "m-1"}
    return Request(**{**given, "transport": Transport(**wire), **fields})


def ask(wire: Wire, asked: Request | None = None, **changes: Any) -> Reply:
    waiting = Blocking(RealClock())
    connections = Connections(RealHttp(), waiting)
    try:
        provider = connections.provider(config(wire, **changes))
        return connections.reply(provider.complete(asked or request()))
    finally:
        waiting.wait(connections.aclose())
        waiting.close()


def sent(protocol: str, asked: Request, **changes: Any) -> dict[str, Any]:
    """The body of the request that went out."""
    with Wire(protocol, Say("ok")) as wire:
        ask(wire, asked, **changes)
        return wire.requests[0].body


def failure(wire: Wire, asked: Request | None = None, **changes: Any) -> CallError:
    with pytest.raises(CallError) as caught:
        ask(wire, asked, **changes)
    return caught.value


# --- answers ------------------------------------------------------------------------------------------


@BOTH
@EITHER_WAY
def test_a_text_answer(protocol: str, stream: bool) -> None:
    say = Say(
        "Hello, world", thinking="hm, well", input_tokens=20, output_tokens=5, cache_read=3, cache_write=2
    )
    with Wire(protocol, say) as wire:
        reply = ask(wire, request(stream=stream))
    assert (reply.text, reply.thinking, reply.tool_calls) == ("Hello, world", "hm, well", [])
    assert (reply.model, reply.provider, reply.requested_model) == ("wire-1", "acme", "m-1")
    assert (reply.input_tokens, reply.output_tokens) == (20, 5)
    assert (reply.cache_read_tokens, reply.cache_write_tokens) == (3, 2)
    assert reply.stop_reason == ("stop" if protocol == OPENAI else "end_turn")
    assert wire.requests[0].body["stream"] is stream


@BOTH
@EITHER_WAY
def test_tool_calls_of_one_turn_keep_their_order_and_arguments(protocol: str, stream: bool) -> None:
    calls = (Call("look", '{"path": "a.txt", "n": 1}', "id_1"), Call("done", "{}", "id_2"))
    with Wire(protocol, Say("I look.", calls=calls)) as wire:
        reply = ask(wire, request(stream=stream))
    assert reply.text == "I look."
    assert reply.tool_calls == [
        {"id": "id_1", "type": "tool_call", "name": "look", "arguments": {"path": "a.txt", "n": 1}},
        {"id": "id_2", "type": "tool_call", "name": "done", "arguments": {}},
    ]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            '{"path": ',
            "The arguments of tool 'look' are not valid JSON: EOF while parsing a value at line 1 column 9",
        ),
        ("[1]", "The arguments of tool 'look' are not a JSON object: [1]"),
    ],
)
@BOTH
def test_arguments_that_cannot_be_read_say_so(protocol: str, written: str, message: str) -> None:
    with Wire(protocol, Say(calls=(Call("look", written),))) as wire:
        (call,) = ask(wire).tool_calls
    assert call["arguments"]["__parse_error"].startswith(message)


def test_arguments_that_are_missing_are_none() -> None:
    with Wire(OPENAI, Say(calls=(Call("look", ""),))) as wire:
        assert ask(wire).tool_calls[0]["arguments"] == {}


@BOTH
@pytest.mark.parametrize("size", [1, 3])
def test_characters_may_be_cut_anywhere(protocol: str, size: int) -> None:
    text = "naïve — 日本語 👩‍👩‍👧"
    with Wire(protocol, Say(text, bytes_a_write=size)) as wire:
        assert ask(wire).text == text


@BOTH
def test_a_service_that_numbers_no_calls_and_sends_them_whole(protocol: str) -> None:
    if protocol == ANTHROPIC:
        body = b'{"content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}]}'
    else:
        body = (
            b'{"choices": [{"message": {"tool_calls": ['
            b'{"function": {"name": "f", "arguments": {"a": 1}}}, {"function": {"name": "g"}}]}}]}'
        )
    with Wire(protocol, Raw(body)) as wire:
        reply = ask(wire, request(stream=False))
    made = [(call["name"], call["arguments"]) for call in reply.tool_calls]
    assert made == ([("f", {"a": 1})] if protocol == ANTHROPIC else [("f", {"a": 1}), ("g", {})])
    assert [call["id"] for call in reply.tool_calls] == (["t"] if protocol == ANTHROPIC else ["", ""])
    assert reply.model == "m-1"


def test_anthropic_may_have_nothing_to_add() -> None:
    with Wire(ANTHROPIC, Say("")) as wire:
        assert ask(wire).text == ""


def test_thinking_comes_back_with_its_signature() -> None:
    with Wire(ANTHROPIC, Say("yes", thinking="so, so")) as wire:
        assert ask(wire).parts == [
            {"type": "thinking", "thinking": "so, so", "signature": "sig"},
            {"type": "text", "text": "yes"},
        ]


# --- requests -----------------------------------------------------------------------------------------


def test_the_body_of_a_chat_completion() -> None:
    asked = request(
        system="Be brief.",
        max_tokens=100,
        sampling={"temperature": 0.5, "top_p": 0.9, "top_k": 5, "seed": 7, "stop": ["END"]},
        prefill="Sure,",
    )
    assert sent(OPENAI, asked) == {
        "model": "m-1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "Sure,"},
        ],
        "max_tokens": 100,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 5,
        "seed": 7,
        "stop": ["END"],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert (
        sent(OPENAI, request(max_tokens=9), features=("max_completion_tokens",))["max_completion_tokens"] == 9
    )


def test_the_body_of_an_anthropic_message() -> None:
    asked = request(
        system="Be brief.",
        max_tokens=100,
        sampling={"temperature": 0.5, "top_k": 5, "seed": 7, "stop": ["END"]},
        prefill="Sure, ",
    )
    assert sent(ANTHROPIC, asked) == {
        "model": "m-1",
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "Sure,"}]},
        ],
        "max_tokens": 100,
        "temperature": 0.5,
        "top_k": 5,
        "stop_sequences": ["END"],
        "stream": True,
    }


def test_no_blank_is_at_the_assistants_end_for_anthropic() -> None:
    said = {"role": "assistant", "content": "Once upon \n"}
    talk = ({"role": "user", "content": "Tell."}, said)
    (block,) = sent(ANTHROPIC, request(*talk))["messages"][-1]["content"]
    assert block["text"] == "Once upon"
    (block,) = sent(ANTHROPIC, request(*talk, {"role": "user", "content": "Go on."}))["messages"][1][
        "content"
    ]
    assert block["text"] == "Once upon \n"
    assert sent(OPENAI, request(*talk))["messages"][-1] == said


def test_the_key_goes_where_the_service_looks_for_it() -> None:
    with Wire(OPENAI, Say("ok")) as wire:
        ask(wire)
        ask(wire, auth_style="none", api_key=None)
        ask(wire, auth_style="header", auth_header="api-key", extra_headers={"x-team": "blue"})
        bearer, none, header = (received.headers for received in wire.requests)
    assert bearer["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in none
    assert (header["api-key"], header["x-team"]) == (KEY, "blue")
    assert "authorization" not in header
    assert wire.requests[0].path == "/v1/chat/completions"
    with Wire(ANTHROPIC, Say("ok")) as wire:
        ask(wire)
        received = wire.requests[0]
    assert (received.path, received.headers["x-api-key"]) == ("/v1/messages", KEY)
    assert received.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in received.headers


#: What the SDKs would use, or send, if they found it in the environment of the process.
AMBIENT = """
ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN ANTHROPIC_BASE_URL ANTHROPIC_BEDROCK_BASE_URL ANTHROPIC_CUSTOM_HEADERS
ANTHROPIC_VERTEX_BASE_URL AWS_BEARER_TOKEN_BEDROCK AWS_BEDROCK_BASE_URL AWS_SESSION_TOKEN
AZURE_OPENAI_AD_TOKEN AZURE_OPENAI_API_KEY OPENAI_ADMIN_KEY OPENAI_API_KEY OPENAI_BASE_URL
OPENAI_CUSTOM_HEADERS OPENAI_ORG_ID OPENAI_PROJECT_ID
""".split()


def test_what_is_in_the_environment_stays_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in AMBIENT:
        monkeypatch.setenv(name, "x-ambient: found")
    for protocol in (OPENAI, ANTHROPIC):
        with Wire(protocol, Say("ok")) as wire:
            ask(wire, auth_style="none", api_key=None)
            assert not re.search("ambient|found", str(wire.requests[0].headers))


TALK: dict[str, list[dict[str, Any]]] = {
    "of OpenAI": [
        {"role": "user", "content": "look"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"n":1}'}},
                {"id": "b", "type": "function", "function": {"name": "look", "arguments": '{"n":2}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
    ],
    "of Anthropic": [
        {"role": "user", "content": "look"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "a", "name": "look", "input": {"n": 1}},
                {"type": "tool_use", "id": "b", "name": "look", "input": {"n": 2}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "one"}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "two"}]}
            ],
        },
    ],
    "of Ollama": [
        {"role": "user", "content": "look"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"function": {"name": "look", "arguments": {"n": 1}}},
                {"function": {"name": "look", "arguments": {"n": 2}}},
            ],
        },
        {"role": "tool", "tool_name": "look", "content": "one"},
        {"role": "tool", "tool_name": "look", "content": "two"},
    ],
}


@pytest.mark.parametrize("talk", TALK.values(), ids=TALK)
def test_tool_talk_of_any_shape_reaches_both_protocols(talk: list[dict[str, Any]]) -> None:
    user, assistant, first, second = sent(OPENAI, request(*talk))["messages"]
    assert user == {"role": "user", "content": "look"}
    assert (assistant["role"], assistant["content"]) == ("assistant", "I look.")
    made = [(call["function"]["name"], call["function"]["arguments"]) for call in assistant["tool_calls"]]
    assert made == [("look", '{"n":1}'), ("look", '{"n":2}')]
    ids = [call["id"] for call in assistant["tool_calls"]]
    assert [first, second] == [
        {"role": "tool", "tool_call_id": ids[0], "content": "one"},
        {"role": "tool", "tool_call_id": ids[1], "content": "two"},
    ]
    user, assistant, results = sent(ANTHROPIC, request(*talk))["messages"]
    text, *calls = assistant["content"]
    assert text == {"type": "text", "text": "I look."}
    assert [(call["type"], call["input"]) for call in calls] == [
        ("tool_use", {"n": 1}),
        ("tool_use", {"n": 2}),
    ]
    assert [(block["tool_use_id"], block["content"]) for block in results["content"]] == [
        (calls[0]["id"], "one"),
        (calls[1]["id"], "two"),
    ]


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}}
#: Results with a picture in them, as harnpy stores them, as Anthropic has them and as MCP does.
PICTURES: dict[str, dict[str, Any]] = {
    "of a loop": {
        "role": "tool",
        "tool_call_id": "a",
        "is_error": True,
        "content": [
            {"type": "text", "text": "seen:"},
            {"type": "image", "base64": "iVBORw==", "media_type": "image/png"},
            {"type": "text", "text": ""},
        ],
    },
    "of Anthropic": {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "a",
                "is_error": True,
                "content": [{"type": "text", "text": "seen:"}, PICTURE],
            }
        ],
    },
    "of MCP": {
        "role": "tool",
        "tool_call_id": "a",
        "is_error": True,
        "content": ["seen:", {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}],
    },
}


@pytest.mark.parametrize("result", PICTURES.values(), ids=PICTURES)
def test_a_picture_in_a_result_is_a_picture_where_the_protocol_has_it(result: dict[str, Any]) -> None:
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "name": "f", "arguments": {}}]}
    talk = ({"role": "user", "content": "go"}, call, result)
    body = sent(ANTHROPIC, request(*talk))
    assert body["messages"][-1]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "a",
            "content": [{"type": "text", "text": "seen:"}, PICTURE],
            "is_error": True,
        }
    ]
    told = sent(OPENAI, request(*talk))["messages"][-1]
    marker = "[image: image/png, 4 bytes, left out: chat completions have only text in a tool's result]"
    assert (told["role"], told["content"].strip()) == ("tool", f"Error:\nseen:\n{marker}")
    assert "is_error" not in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no such line", "Error: no such line"),
        ("errors: none", "Error: errors: none"),
        ("ERROR: no such line", None),
        ('{\n  "error": "permission_denied"\n}', None),
    ],
)
def test_a_failure_is_told_in_words_where_the_protocol_has_no_mark(text: str, told: str | None) -> None:
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "name": "f", "arguments": {}}]}
    result = {"role": "tool", "tool_call_id": "a", "content": text}
    for failed in (True, False):
        talk = ({"role": "user", "content": "go"}, call, {**result, "is_error": failed})
        expected = told if failed and told else text
        assert sent(OPENAI, request(*talk))["messages"][-1]["content"] == expected
        assert sent(RESPONSES, request(*talk))["input"][-1]["output"] == expected


@pytest.mark.parametrize("result", PICTURES.values(), ids=PICTURES)
def test_a_picture_in_a_result_is_behind_the_results_for_gemini(result: dict[str, Any]) -> None:
    calls = [{"id": id, "name": name, "arguments": {}} for id, name in (("a", "f"), ("b", "g"))]
    other = {"role": "tool", "tool_call_id": "b", "content": "fine"}
    talk = ({"role": "user", "content": "go"}, {"role": "assistant", "content": "", "tool_calls": calls})
    contents = sent(GEMINI, request(*talk, result, other, {"role": "user", "content": "Well?"}))["contents"]
    first, second, *rest = contents[-1]["parts"]
    marker = "[image: image/png, 4 bytes, left out here: it is behind the results]"
    assert first["functionResponse"]["response"]["error"].strip() == f"seen:\n{marker}"
    assert second["functionResponse"]["response"] == {"output": "fine"}
    assert rest == [{"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}, {"text": "Well?"}]


def test_no_media_in_a_result_is_sent_as_text() -> None:
    data = "QUJD" * 1000
    parts = [
        {"type": "audio", "data": data, "mimeType": "audio/wav"},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": data}},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        {"type": "image", "url": "https://example.org/a.png"},
        {"type": "row", "data": 1},
    ]
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "name": "f", "arguments": {}}]}
    talk = ({"role": "user", "content": "go"}, call, {"role": "tool", "tool_call_id": "a", "content": parts})
    lines = sent(OPENAI, request(*talk))["messages"][-1]["content"].split("\n")
    assert [line.partition(", left out")[0] for line in lines] == [
        "[audio: audio/wav, 3000 bytes",
        "[document: application/pdf, 3000 bytes",
        "[image: image/png, 3000 bytes",
        "[image: https://example.org/a.png",
        '{"data":1,"type":"row"}',
    ]


def test_results_come_first_in_their_turn_and_empty_text_is_left_out() -> None:
    body = sent(
        ANTHROPIC,
        request(
            {"role": "system", "content": "Rules."},
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "name": "f", "arguments": {}}]},
            {"role": "user", "content": "by the way"},
            {"role": "tool", "tool_call_id": "a", "content": "one"},
        ),
    )
    assert body["system"] == [{"type": "text", "text": "Rules."}]
    assert [[block["type"] for block in message["content"]] for message in body["messages"]] == [
        ["text"],
        ["tool_use"],
        ["tool_result", "text"],
    ]


def test_a_conversation_begins_with_a_users_message() -> None:
    said = [{"role": "assistant", "content": "and so on"}, {"role": "user", "content": "go on"}]
    with Wire(ANTHROPIC, Say("hi")) as wire:
        ask(wire, request(*said))
        sent = wire.requests[0].body["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert sent[0]["content"] == [{"type": "text", "text": "(earlier messages are left out)"}]


def test_images() -> None:
    picture = {"type": "image", "base64": "QUJD", "media_type": "image/gif", "detail": "low"}
    linked = {"type": "image", "url": "https://example.org/a.png"}
    asked = request({"role": "user", "content": [{"type": "text", "text": "see"}, picture, linked]})
    assert sent(OPENAI, asked)["messages"][0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/gif;base64,QUJD", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    ]
    assert sent(ANTHROPIC, asked)["messages"][0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "QUJD"}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
    ]
    for block in ({"type": "image"}, {"type": "image", "base64": "QUJD", "url": "x"}):
        with Wire(OPENAI, Say("ok")) as wire, pytest.raises(OptionError, match="exactly one of"):
            ask(wire, request({"role": "user", "content": [block]}))


OPENAI_TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Looks.",
        "parameters": {"type": "object", "properties": {}},
        "x-harn-output-schema": {"type": "string"},
    },
    "defer_loading": True,
}
ANTHROPIC_TOOL = {
    "name": "look",
    "description": "Looks.",
    "input_schema": {"type": "object", "properties": {}},
    "x-harn-output-schema": {"type": "string"},
    "defer_loading": True,
}


@pytest.mark.parametrize("tool", [OPENAI_TOOL, ANTHROPIC_TOOL], ids=["openai", "anthropic"])
def test_tools_of_either_style_reach_both_protocols_without_what_is_ours(tool: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {}}
    asked = request(tools=[tool], tool_choice="required")
    body = sent(OPENAI, asked)
    function = {"name": "look", "description": "Looks.", "parameters": schema}
    assert body["tools"] == [{"type": "function", "function": function, "defer_loading": True}]
    assert body["tool_choice"] == "required"
    body = sent(ANTHROPIC, asked)
    assert body["tools"] == [
        {"name": "look", "description": "Looks.", "input_schema": schema, "defer_loading": True}
    ]
    assert body["tool_choice"] == {"type": "any"}


@pytest.mark.parametrize(
    ("given", "openai", "anthropic"),
    [
        ("auto", "auto", {"type": "auto"}),
        ("none", "none", {"type": "none"}),
        ("any", "required", {"type": "any"}),
        ({"type": "any"}, "required", {"type": "any"}),
        ("look", {"type": "function", "function": {"name": "look"}}, {"type": "tool", "name": "look"}),
        (
            {"type": "function", "function": {"name": "look"}},
            {"type": "function", "function": {"name": "look"}},
            {"type": "tool", "name": "look"},
        ),
        (
            {"type": "tool", "name": "look"},
            {"type": "function", "function": {"name": "look"}},
            {"type": "tool", "name": "look"},
        ),
    ],
)
def test_tool_choice(given: Any, openai: Any, anthropic: Any) -> None:
    asked = request(tools=[OPENAI_TOOL], tool_choice=given)
    assert sent(OPENAI, asked)["tool_choice"] == openai
    assert sent(ANTHROPIC, asked)["tool_choice"] == anthropic


@pytest.mark.parametrize(
    ("thinking", "openai", "openrouter", "anthropic"),
    [
        ({"mode": "disabled"}, {}, {}, {}),
        (
            {"mode": "effort", "level": "high"},
            {"reasoning_effort": "high"},
            {"reasoning": {"effort": "high"}},
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
        ),
        (
            {"mode": "enabled", "budget_tokens": 2000},
            {"reasoning_effort": "medium"},
            {"reasoning": {"max_tokens": 2000}},
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
        ),
        (
            {"mode": "enabled", "budget_tokens": None},
            {"reasoning_effort": "medium"},
            {"reasoning": {"enabled": True}},
            {"thinking": {"type": "enabled", "budget_tokens": 8192}},
        ),
        (
            {"mode": "adaptive"},
            {},
            {"reasoning": {"enabled": True}},
            {"thinking": {"type": "adaptive"}},
        ),
    ],
)
def test_thinking(thinking: Any, openai: Any, openrouter: Any, anthropic: Any) -> None:
    def about_thinking(body: dict[str, Any]) -> dict[str, Any]:
        keys = ("reasoning_effort", "reasoning", "thinking", "output_config")
        return {key: body[key] for key in keys if key in body}

    asked = request(thinking=thinking)
    assert about_thinking(sent(OPENAI, asked)) == openai
    assert about_thinking(sent(OPENAI, asked, features=("reasoning",))) == openrouter
    assert about_thinking(sent(ANTHROPIC, asked)) == anthropic
    if thinking["mode"] == "enabled":
        newer = replace(asked, model="claude-opus-4-7")
        assert about_thinking(sent(ANTHROPIC, newer)) == {"thinking": {"type": "adaptive"}}


def test_a_service_that_forgot_its_thoughts_is_not_asked_to_think_on() -> None:
    enabled = {"mode": "enabled", "budget_tokens": 2000}
    call = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}
    thought = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    without = request({"role": "assistant", "content": [call]}, result, thinking=enabled)
    with_it = request({"role": "assistant", "content": [thought, call]}, result, thinking=enabled)
    assert "thinking" not in sent(ANTHROPIC, without)
    body = sent(ANTHROPIC, with_it)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert body["messages"][1]["content"][0] == thought
    assert sent(OPENAI, with_it)["messages"][0]["content"] == ""


def test_cache_marks_the_end_of_tools_system_prompt_and_conversation() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    asked = request(
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
        system="S",
        tools=[ANTHROPIC_TOOL, ANTHROPIC_TOOL],
        cache=True,
    )
    body = sent(ANTHROPIC, asked)
    assert ["cache_control" in tool for tool in body["tools"]] == [False, True]
    assert body["system"] == [{"type": "text", "text": "S", **mark}]
    assert body["messages"][-1]["content"] == [{"type": "text", "text": "three", **mark}]
    assert str(body).count("cache_control") == 3
    assert "cache_control" not in str(sent(OPENAI, asked))
    assert "cache_control" not in str(ANTHROPIC_TOOL)


def test_marks_of_messages_blocks_and_tools_are_passed_on() -> None:
    hour = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    thought = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    asked = request(
        {"role": "system", "content": "S", **hour},
        {"role": "user", "content": [{"type": "text", "text": "a", **hour}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "c"}, thought], **hour},
        tools=[{**OPENAI_TOOL, **hour}, ANTHROPIC_TOOL],
    )
    body = sent(ANTHROPIC, asked)
    assert ["cache_control" in tool for tool in body["tools"]] == [True, False]
    assert body["system"] == [{"type": "text", "text": "S", **hour}]
    said, answered = (message["content"] for message in body["messages"])
    assert said == [{"type": "text", "text": "a", **hour}, {"type": "text", "text": "b"}]
    assert answered == [{"type": "text", "text": "c", **hour}, thought]
    assert "cache_control" not in str(sent(OPENAI, asked))
    # What a message says with its calls and results bears its mark, too.
    results = request(
        {"role": "assistant", "content": "", "tool_calls": [call], **hour},
        {"role": "tool", "tool_call_id": "c1", "content": "r", **hour},
        {"role": "user", "content": [{"type": "image", "base64": "AA==", **hour}]},
    )
    blocks = [block for message in sent(ANTHROPIC, results)["messages"] for block in message["content"]]
    marked = [block["type"] for block in blocks if "cache_control" in block]
    assert marked == ["tool_use", "tool_result", "image"]
    with pytest.raises(OptionError, match="cache_control: expected a dict"):
        sent(ANTHROPIC, request({"role": "user", "content": "x", "cache_control": True}))


def test_no_more_marks_are_sent_than_are_taken() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    messages = [{"role": ("user", "assistant")[i % 2], "content": str(i), **mark} for i in range(5)]
    body = sent(ANTHROPIC, request(*messages, system="S", tools=[ANTHROPIC_TOOL], cache=True))
    blocks = [block for message in body["messages"] for block in message["content"]]
    assert [block["text"] for block in blocks if "cache_control" in block] == ["1", "2", "3", "4"]
    assert str(body).count("cache_control") == 4
    assert all("cache_control" in message for message in messages)


def test_openrouter_passes_marks_on_to_anthropic() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    asked = request(
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two", **mark},
        {"role": "user", "content": "three"},
        {"role": "tool", "tool_call_id": "c1", "content": "r"},
        system="S",
        model="anthropic/claude-sonnet-4.6",
        cache=True,
    )
    system, one, two, three, result = sent(OPENAI, asked, features=("cache_control",))["messages"]
    assert system["content"] == [{"type": "text", "text": "S", **mark}]
    assert (one["content"], result["content"]) == ("one", "r")
    assert two["content"] == [{"type": "text", "text": "two", **mark}]
    assert three["content"] == [{"type": "text", "text": "three", **mark}]
    other = replace(asked, model="qwen/qwen3")
    assert "cache_control" not in str(sent(OPENAI, other, features=("cache_control",)))


def output(**options: Any) -> Output:
    return read_output(Options(options))


def test_structured_output() -> None:
    strict = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    loose = {"type": "dict", "properties": {"n": {"type": "int", "nullable": True}}}
    asked = sent(OPENAI, request(output=output(json_schema=strict)))["response_format"]
    assert asked == {
        "type": "json_schema",
        "json_schema": {"name": "output", "schema": strict, "strict": True},
    }
    asked = sent(OPENAI, request(output=output(json_schema=loose)))["response_format"]["json_schema"]
    nullable = {"type": ["integer", "null"]}
    assert asked["schema"] == {"type": "object", "properties": {"n": nullable}}
    assert asked["strict"] is False
    body = sent(OPENAI, request(output=output(response_format="json")))
    assert body["response_format"] == {"type": "json_object"}
    (block,) = sent(ANTHROPIC, request(system="S", output=output(json_schema=strict)))["system"]
    assert block["text"].startswith("S\n\nAnswer with one JSON value and nothing else")
    assert '"properties":{"n":{"type":"integer"}}' in block["text"]


def test_what_has_no_utf_8_is_sent_as_a_question_mark() -> None:
    assert sent(OPENAI, request({"role": "user", "content": "a\ud800b"}))["messages"][0]["content"] == "a?b"


# --- failures -----------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("answer", "category", "kind", "reason", "part"),
    [
        (Fail(400, message="bad thing"), "generic", "terminal", "invalid_request", "HTTP 400 Bad Request"),
        (
            Fail(400, message="prompt is too long: 9 tokens"),
            "generic",
            "terminal",
            "context_overflow",
            "prompt is too long",
        ),
        (Fail(401, message="bad key {key}"), "auth", "terminal", "auth_failure", "bad key [redacted]"),
        (Fail(403), "auth", "terminal", "auth_failure", "HTTP 403 Forbidden"),
        (Fail(404), "not_found", "terminal", "model_unavailable", "HTTP 404 Not Found"),
        (Fail(408), "timeout", "transient", "timeout", "HTTP 408"),
        (Fail(429), "rate_limit", "transient", "rate_limit", "HTTP 429 Too Many Requests (some_error): no"),
        (Fail(500), "server_error", "transient", "server_error", "HTTP 500"),
        (Fail(502), "server_error", "transient", "server_error", "HTTP 502"),
        (Fail(503), "overloaded", "transient", "server_error", "HTTP 503"),
        (Fail(504), "timeout", "transient", "timeout", "HTTP 504"),
        (Fail(529, message="Overloaded"), "overloaded", "transient", "server_error", "HTTP 529"),
        (Fail(418), "generic", "terminal", "unknown", "HTTP 418"),
    ],
)
def test_the_service_refuses(
    protocol: str, answer: Fail, category: str, kind: str, reason: str, part: str
) -> None:
    with Wire(protocol, answer) as wire:
        error = failure(wire)
        assert len(wire.requests) == 1, "the SDK tried again by itself"
    assert (error.category, error.kind, error.reason) == (category, kind, reason)
    assert error.message.startswith("acme: ")
    assert part in error.message
    assert KEY not in repr(error)


@BOTH
@EITHER_WAY
@pytest.mark.parametrize("body", [
        b'{"choices": [', b"<html>oops</html>", b"[1, 2]", b'"text"', b"{}", b"", b"[" * 100_000,
        b'{"choices": 5}', b'{"choices": {"a": 1}}', b'{"choices": [{"message": {"tool_calls": 5}}]}',
        b'{"content": 5}', b'{"content": [5]}',
    ])  # fmt: skip
def test_a_body_that_is_no_answer(protocol: str, stream: bool, body: bytes) -> None:
    with Wire(protocol, Raw(body)) as wire:
        error = failure(wire, request(stream=stream))
    assert (error.category, error.kind) == ("server_error", "transient")
    assert error.message.startswith("acme: malformed response: ")


@BOTH
@pytest.mark.parametrize("data", [b"{not json", b"[1]", b"3"])
def test_a_chunk_that_is_none(protocol: str, data: bytes) -> None:
    body = b"event: message_start\ndata: " + data + b"\n\n"
    with Wire(protocol, Raw(body, "text/event-stream")) as wire:
        error = failure(wire)
    assert (error.category, error.kind) == ("server_error", "transient")
    assert error.message.startswith("acme: malformed response")


@BOTH
def test_a_stream_that_breaks(protocol: str) -> None:
    with Wire(protocol, Say("Hello, world", cut_after=4)) as wire:
        error = failure(wire)
    assert (error.category, error.kind, error.reason) == ("transient_network", "transient", "network_error")


@BOTH
@pytest.mark.parametrize(
    ("type", "category"),
    [("overloaded_error", "overloaded"), ("rate_limit_error", "rate_limit"), ("api_error", "server_error")],
)
def test_an_error_in_the_middle_of_a_stream(protocol: str, type: str, category: str) -> None:
    body = {"error": {"type": type, "message": f"for {KEY}"}}
    with Wire(protocol, Say("Hello, world", cut_after=4, error_after=body)) as wire:
        error = failure(wire)
    assert (error.category, error.kind) == (category, "transient")
    assert error.message == f"acme: error ({type}): for [redacted]"


def test_an_error_in_place_of_a_completion() -> None:
    body = b'{"error": {"code": 429, "message": "slow down"}}'
    with Wire(OPENAI, Raw(body)) as wire:
        error = failure(wire, request(stream=False))
    assert (error.category, error.message) == ("rate_limit", "acme: HTTP 429 Too Many Requests: slow down")


@BOTH
def test_an_answer_without_content(protocol: str) -> None:
    with Wire(protocol, Say("", thinking="much", output_tokens=40, stop="length")) as wire:
        error = failure(wire)
    assert error.kind == "transient"
    assert "delivered no content (completion_tokens=40, stop reason length)" in error.message


@pytest.mark.parametrize(("protocol", "stop"), [(OPENAI, "content_filter"), (ANTHROPIC, "refusal")])
def test_a_model_that_may_not_answer(protocol: str, stop: str) -> None:
    with Wire(protocol, Say("", stop=stop)) as wire:
        assert ask(wire).refused == stop
        assert len(wire.requests) == 1


@BOTH
@pytest.mark.parametrize("answer", [Silence(), Say("Hello, world", pause=0.2)], ids=["silence", "slowness"])
def test_timeout_is_for_the_whole_call(protocol: str, answer: Say | Silence) -> None:
    with Wire(protocol, answer) as wire:
        error = failure(wire, request(timeout=0.5))
    assert (error.category, error.kind, error.reason) == ("timeout", "transient", "timeout")
    assert error.message == "acme: timed out after 0.5 s"


@BOTH
def test_idle_timeout_is_for_silence(protocol: str) -> None:
    """All the pauses together are longer than the service may be silent."""
    with Wire(protocol, Say("Hello, world", piece=1, pause=0.1), Silence()) as wire:
        started = time.monotonic()
        assert ask(wire, request(idle_timeout=1.0)).text == "Hello, world"
        assert time.monotonic() - started > 1.0
        assert failure(wire, request(idle_timeout=0.3)).category == "timeout"
        assert failure(wire, timeout=0.3).category == "timeout"


@BOTH
def test_nobody_listens(protocol: str) -> None:
    with Wire(protocol, Say("ok")) as wire:
        gone = config(wire)
    provider = make_provider(gone, RealHttp())
    with pytest.raises(CallError) as caught:
        asyncio.run(_complete(provider))
    error = caught.value
    assert (error.category, error.reason) == ("transient_network", "network_error")
    assert error.message == f"acme: connection refused by 127.0.0.1:{wire.port}: no server is running there"
    assert error.is_final  # waiting for it would take long, and end the same


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("piece", [1, 4, 100])
@pytest.mark.parametrize(
    ("said", "thinking", "text"),
    [
        ("<think>\nhm, a < b</think>\n\nYes.", "\nhm, a < b", "Yes."),
        (" \n<think></think>Yes. </think>", None, "Yes. </think>"),
        ("a <think>b</think>", None, "a <think>b</think>"),
        ("<thi", None, "<thi"),
        ("<b>Yes</b>", None, "<b>Yes</b>"),
    ],
)
def test_reasoning_in_the_text_is_told_apart(
    said: str, thinking: str | None, text: str, piece: int, stream: bool
) -> None:
    with Wire(OPENAI, Say(said, piece=piece)) as wire:
        reply = ask(wire, request(stream=stream))
    assert (reply.text, reply.thinking) == (text, thinking)


async def _complete(provider: Any) -> Reply:
    try:
        reply: Reply = await provider.complete(request())
        return reply
    finally:
        await provider.aclose()


def test_a_name_that_nobody_knows() -> None:
    unknown = ProviderConfig("acme", "http://nowhere.invalid/v1", "bearer", KEY)
    with pytest.raises(CallError) as caught:
        asyncio.run(_complete(make_provider(unknown, RealHttp())))
    assert (caught.value.category, caught.value.reason) == ("transient_network", "network_error")


@BOTH
@pytest.mark.parametrize("key", [KEY + "\n", KEY + "…", " " + KEY])
def test_a_key_that_no_header_can_carry(protocol: str, key: str) -> None:
    with Wire(protocol, Say("ok")) as wire:
        error = failure(wire, api_key=key)
        assert wire.requests == []
    assert (error.category, error.reason) == ("auth", "auth_failure")
    assert error.message == "acme: the API key holds blanks or characters that no key has"


def test_nothing_of_the_sdk_hangs_on_the_error() -> None:
    """Its errors hold the request, and so the key."""
    with Wire(OPENAI, Fail(401, message="{key}")) as wire:
        error: BaseException | None = failure(wire)
    while error is not None:
        assert isinstance(error, CallError)
        error = error.__cause__ or error.__context__


# --- connections --------------------------------------------------------------------------------------


def test_calls_share_a_connection_until_the_end() -> None:
    with Wire(OPENAI, Say("ok")) as wire:
        waiting = Blocking(RealClock())
        connections = Connections(RealHttp(), waiting)
        provider = connections.provider(config(wire))
        for _ in range(3):
            assert connections.reply(provider.complete(request())).text == "ok"
            assert connections.provider(config(wire)) is provider
        assert connections.provider(replace(config(wire), api_key="other")) is not provider
        client: Any = provider
        assert client._client is not None
        waiting.wait(connections.aclose())
        waiting.close()
        assert client._client is None


@BOTH
def test_a_stream_in_pieces(protocol: str) -> None:
    async def collect(provider: Any) -> list[str]:
        try:
            pieces: AsyncIterator[str] = provider.stream(request())
            return [piece async for piece in pieces]
        finally:
            await provider.aclose()

    with Wire(protocol, Say("abcdefghij", thinking="hm"), Fail(500)) as wire:
        assert asyncio.run(collect(make_provider(config(wire), RealHttp()))) == ["abcd", "efgh", "ij"]
        with pytest.raises(CallError):
            asyncio.run(collect(make_provider(config(wire), RealHttp())))
    with Wire(protocol, Say("", stop="refusal")) as wire, pytest.raises(CallError) as caught:
        asyncio.run(collect(make_provider(config(wire), RealHttp())))
    assert caught.value.reason == "content_policy"


@BOTH
def test_who_stops_listening_ends_the_call(protocol: str) -> None:
    async def first(provider: Any) -> str:
        pieces = provider.stream(request())
        piece: str = await anext(pieces)
        await pieces.aclose()
        await provider.aclose()
        return piece

    with Wire(protocol, Say("abcd" * 1000, pause=0.02)) as wire:
        assert asyncio.run(first(make_provider(config(wire), RealHttp()))) == "abcd"
        assert wire.hung_up.wait(10)


def test_a_protocol_that_nobody_speaks() -> None:
    with pytest.raises(OptionError, match="unknown protocol 'gopher'; known are openai, deepseek, mist"):
        make_provider(ProviderConfig("x", "http://x", "bearer", KEY, protocol="gopher"), RealHttp())


@BOTH
def test_a_missing_package_is_named(
    protocol: str, monkeypatch: pytest.MonkeyPatch, forget: Callable[[str], None]
) -> None:
    monkeypatch.setitem(sys.modules, protocol, None)
    forget(f"harnpy.llm.providers.{'anthropic' if protocol == ANTHROPIC else 'openai_compatible'}")
    with pytest.raises(OptionError) as caught:
        make_provider(ProviderConfig("acme", "http://x", "bearer", KEY, protocol=protocol), RealHttp())
    text = f"provider 'acme' needs the '{protocol}' package: {install_command(protocol)}"
    assert caught.value.message == text


@pytest.fixture
def forget(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Have a module imported again."""
    return lambda name: monkeypatch.delitem(sys.modules, name, raising=False)
