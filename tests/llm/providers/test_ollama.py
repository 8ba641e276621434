"""Ollama's own API: what goes out. Spec: 07 §1.18, §1.19."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm
from harnpy.faults import OptionError
from harnpy.llm.call_options import JSON_OBJECT, JSON_SCHEMA, Output
from tests.llm.providers.test_providers import ask, request, sent
from tests.llm.test_real_calls import WireHost
from tests.llm.wire import OLLAMA, Call, Say, Wire

TOOL = {"type": "function", "function": {"name": "look", "description": "Looks", "parameters": {}}}
DOT = {"type": "image", "base64": "QUJD", "media_type": "image/gif"}
AWAY = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


def test_options_stand_apart_from_the_request() -> None:
    given = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 4,
        "seed": 7,
        "stop": ["END"],
        "presence_penalty": 0.5,
    }
    asked = request(max_tokens=9, sampling=given, system="Be brief.", prefill="Well,", stream=False)
    body = sent(OLLAMA, asked)
    assert body == {
        "model": "m-1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "Well,"},
        ],
        "options": {"num_predict": 9, **given},
        "truncate": False,
        "shift": False,
        "stream": False,
    }


@pytest.mark.parametrize(
    ("thinking", "think"),
    [
        ({"mode": "disabled"}, None),
        ({"mode": "enabled", "budget_tokens": None}, True),
        ({"mode": "adaptive"}, True),
        ({"mode": "effort", "level": "high"}, "high"),
    ],
)
def test_thinking(thinking: dict[str, Any], think: bool | str | None) -> None:
    assert sent(OLLAMA, request(thinking=thinking)).get("think") == think


def test_formats() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    assert sent(OLLAMA, request(output=Output(kind=JSON_OBJECT)))["format"] == "json"
    assert sent(OLLAMA, request(output=Output(kind=JSON_SCHEMA, schema=schema)))["format"] == schema


def test_the_configuration_adds_to_the_body() -> None:
    more = {"keep_alive": "30m", "shift": True, "options": {"num_ctx": 32768, "num_predict": 1}}
    body = sent(OLLAMA, request(max_tokens=9), extra_body=more)
    assert (body["keep_alive"], body["truncate"], body["shift"]) == ("30m", False, True)
    assert body["options"] == {"num_ctx": 32768, "num_predict": 9}


def test_where_it_is_asked() -> None:
    with Wire(OLLAMA, Say("ok")) as wire:
        ask(wire, base_url=f"http://127.0.0.1:{wire.port}", auth_style="none", chat_endpoint="/v1/x")
        assert wire.requests[0].path == "/api/chat"
        assert "authorization" not in wire.requests[0].headers


def test_a_provider_of_the_configuration(tmp_path: Path) -> None:
    with Wire(OLLAMA, Say("Fine.")) as wire:
        entry = f'[providers.ollama]\nbase_url = "{wire.url}"\nprotocol = "ollama"\n'
        more = 'extra_body = { keep_alive = "30m", options = { num_ctx = 32768 } }\n'
        (tmp_path / "providers.toml").write_text(entry + more, encoding="utf-8")
        host = WireHost({"HARN_PROVIDERS_CONFIG": str(tmp_path / "providers.toml")})
        Vm(world=host).run_source(
            'println(llm_call("Go.", nil, {model: "ollama:qwen3:8b", max_tokens: 9}).text)'
        )
        (asked,) = wire.requests
    assert host.out.getvalue() == "Fine.\n"
    assert (asked.path, asked.body["model"], asked.body["keep_alive"]) == ("/api/chat", "qwen3:8b", "30m")
    assert asked.body["options"] == {"num_ctx": 32768, "num_predict": 9}


def test_ids_go_back_whatever_the_provider_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    calls = (Call("look", "{}", "functions.look:0"), Call("look", "{}", "functions.look:1"))
    with Wire(OLLAMA, Say(calls=calls), Say("Fine.")) as wire:
        entry = f'[providers.ollama]\nbase_url = "{wire.url}"\nprotocol = "ollama"\n'
        (tmp_path / "providers.toml").write_text(entry, encoding="utf-8")
        host = WireHost({"HARN_PROVIDERS_CONFIG": str(tmp_path / "providers.toml")})
        tools = 'tool_define(tool_registry(), "look", "Looks", {parameters: {}, handler: { a -> "a dot" }})'
        options = f'{{model: "ollama:qwen3:8b", tools: {tools}, tool_format: "native"}}'
        Vm(world=host).run_source(f'agent_loop("Go.", nil, {options})', directory=str(tmp_path))
        said, *results = wire.requests[1].body["messages"][2:]
    ids = ["functions.look:0", "functions.look:1"]
    assert [call["id"] for call in said["tool_calls"]] == ids
    assert [result["tool_call_id"] for result in results] == ids


def test_tools_and_the_choice_of_them() -> None:
    (told,) = sent(OLLAMA, request(tools=[TOOL]))["tools"]
    assert told["function"]["name"] == "look"
    assert "tools" in sent(OLLAMA, request(tools=[TOOL], tool_choice="auto"))
    assert "tools" not in sent(OLLAMA, request(tools=[TOOL], tool_choice="none"))
    with pytest.raises(OptionError, match=r"tool_choice: Ollama has"):
        sent(OLLAMA, request(tools=[TOOL], tool_choice="look"))
    with pytest.raises(OptionError, match="'web_search' is a tool that services have themselves"):
        sent(OLLAMA, request(tools=[{"type": "web_search"}]))


def test_images_are_bare_base64() -> None:
    inline = {"type": "image_url", "image_url": {"url": "data:image/png;base64,REVG"}}
    said = {"role": "user", "content": [{"type": "text", "text": "Look."}, DOT, inline, AWAY]}
    (told,) = sent(OLLAMA, request(said))["messages"]
    assert told["images"] == ["QUJD", "REVG"]
    assert told["content"].startswith("Look.\n[image: https://example.org/a.png, left out")


def test_a_result_has_the_name_of_its_tool_and_its_images() -> None:
    call = {"type": "tool_use", "id": "functions.look:0", "name": "shop.look", "input": {"at": 1}}
    result = {
        "type": "tool_result",
        "tool_use_id": "functions.look:0",
        "content": [{"type": "text", "text": "A dot."}, DOT],
    }
    talk = (
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]},
        {"role": "user", "content": [result, {"type": "text", "text": "And?"}]},
    )
    _, said, told, asked = sent(OLLAMA, request(*talk))["messages"]
    (sent_call,) = said["tool_calls"]
    assert sent_call["function"]["arguments"] == {"at": 1}
    assert told["tool_call_id"] == sent_call["id"]
    assert told["tool_name"] == sent_call["function"]["name"]
    assert (told["role"], told["content"], told["images"]) == ("tool", "A dot.", ["QUJD"])
    assert asked == {"role": "user", "content": "And?"}
