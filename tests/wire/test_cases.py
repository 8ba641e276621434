"""Recorded exchanges, streamed and whole, by `llm_call`, `agent_loop` and `SessionRuntime`.

Spec: 07 §1.17, §1.18.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harnpy import AgentDef, LoopFactory, Vm, World, runtime, tool
from harnpy.session import Session
from tests.llm.test_real_calls import WireHost, environment
from tests.llm.wire import ANTHROPIC, DEEPSEEK, GEMINI, MISTRAL, OLLAMA, OPENAI, RESPONSES, Say, Wire
from tests.support import ROOT
from tests.wire.exchanges import Case, cases, forms
from tests.wire.test_requests import request_cases

EITHER_FORM = pytest.mark.parametrize(("case", "streamed"), forms())

TOOLS = """
var tools = tool_define(tool_registry(), "weather", "The weather", {
  parameters: {city: "string"}, handler: { args -> println(json_stringify(["weather", args])); "rain" } })
tools = tool_define(tools, "wipe", "Wipes the disk, or a part", {
  parameters: {only: {type: "string", required: false}},
  handler: { args -> println(json_stringify(["wipe", args])); "wiped" } })
tools = tool_define(tools, "clock", "The time", {
  parameters: {}, handler: { args -> println(json_stringify(["clock", args])); "noon" } })
"""


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project whose model calls tools natively."""
    table = '[[capabilities.provider.acme]]\nmodel_match = "*"\nnative_tools = true\n'
    (tmp_path / "harn.toml").write_text(table, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def test_each_kind_has_cases() -> None:
    assert len(cases()) >= 72
    assert len({case.stream for case in cases()}) == len(cases())


def run(wire: Wire, case: Case, directory: Path, source: str, streamed: bool) -> list[Any]:
    """Return what the program printed, a JSON value a line."""
    env = environment(wire, directory, HARN_LLM_STREAM="1" if streamed else "0")
    host = WireHost(env)
    Vm(world=host).run_source(TOOLS + source, directory=str(directory))
    return [json.loads(line) for line in host.out.getvalue().split("\n") if line]


@EITHER_FORM
def test_a_call(case: Case, streamed: bool, tmp_path: Path) -> None:
    expected = case.expected
    source = """
    let r = llm_call("Go.", nil, {tools: tools, tool_format: "native"})
    let tokens = [r.input_tokens, r.output_tokens, r.cache_read_tokens, r.cache_write_tokens]
    println(json_stringify([r.text, r.tool_calls ?? [], r.thinking, r.stop_reason, r.refusal, ...tokens]))
    """
    with Wire(case.dialect, case.answer(streamed=streamed)) as wire:
        ((text, calls, thinking, reason, refusal, *tokens),) = run(wire, case, tmp_path, source, streamed)
    assert text == expected.get("text", "")
    assert thinking == expected.get("thinking")
    assert reason == expected["finish_reason"]
    assert refusal == expected.get("refusal")
    whole = [[call["name"], call["arguments"]] for call in calls if "__parse_error" not in call["arguments"]]
    broken = [[call["name"], call["arguments"]["__parse_error"]] for call in calls if "written" in call]
    assert whole[: len(expected.get("calls", []))] == expected.get("calls", [])
    for (name, why), (known, word) in zip(broken, expected.get("unrun", broken), strict=False):
        assert name == known
        assert word in why
    assert len({call["id"] for call in calls}) == len(calls)
    if "tokens" in expected:
        assert tokens[: len(expected["tokens"])] == expected["tokens"]


@EITHER_FORM
def test_a_loop(case: Case, streamed: bool, tmp_path: Path) -> None:
    expected = case.expected
    source = """
    let id = agent_session_open("s")
    let r = agent_loop("Go.", nil, {session_id: id, tools: tools, tool_format: "native", max_iterations: 2})
    println(json_stringify(["END", r.status, r.finish_reason]))
    """
    with Wire(case.dialect, case.answer(streamed=streamed), Say("ok")) as wire:
        *made, end = run(wire, case, tmp_path, source, streamed)
        bodies = [request.body for request in wire.requests]
    assert made == expected.get("calls", [])
    goes_on = bool(made or expected.get("unrun")) and "status" not in expected
    status = expected.get("status", "done")
    reason = _last_word(case) if goes_on else expected["finish_reason"]
    assert end == ["END", status, reason]
    assert len(bodies) == 1 + goes_on
    if goes_on:
        _check_next_request(case, bodies[1])


@EITHER_FORM
def test_a_turn_of_a_session(case: Case, streamed: bool, tmp_path: Path) -> None:
    expected = case.expected
    made: list[Any] = []

    @tool
    def weather(city: str) -> str:
        """The weather."""
        made.append(["weather", {"city": city}])
        return "rain"

    @tool
    def wipe(only: str = "") -> str:
        """Wipes the disk, or a part."""
        made.append(["wipe", {"only": only}])
        return "wiped"

    @tool
    def clock() -> str:
        """The time."""
        made.append(["clock", {}])
        return "noon"

    with Wire(case.dialect, case.answer(streamed=streamed), Say("ok")) as wire:
        env = environment(wire, tmp_path, HARN_LLM_STREAM="1" if streamed else "0")
        world = World(environment=WireHost(env).environment)
        factory = LoopFactory(tools=[weather, wipe, clock], host=world)
        with runtime("memory:", agents=factory) as desk:
            session = desk.create(AgentDef("a", model="acme/m-1"), id="s")
            result = desk.send("s", "Go.")
            _check_pairs(session)
        bodies = [request.body for request in wire.requests]
    assert made == expected.get("calls", [])
    goes_on = bool(made or expected.get("unrun")) and "status" not in expected
    assert result.stop_reason == expected.get("status", "completed")
    assert result.finish_reason == (_last_word(case) if goes_on else expected["finish_reason"])
    assert result.text == ("ok" if goes_on else expected.get("text", ""))
    if goes_on:
        _check_next_request(case, bodies[1])


_LAST_WORDS = {
    **dict.fromkeys((OPENAI, MISTRAL, DEEPSEEK, OLLAMA), "stop"),
    ANTHROPIC: "end_turn",
    RESPONSES: "completed",
    GEMINI: "STOP",
}


def _last_word(case: Case) -> str:
    """Return why the reply `Say("ok")` ends, in the dialect's word."""
    return _LAST_WORDS[case.dialect]


def _check_next_request(case: Case, body: dict[str, Any]) -> None:
    said, ids, results = _READERS[case.dialect](body)
    if "goes_back" in case.expected:
        assert said == case.expected["goes_back"]
    assert [id for id, _ in results] == ids
    for (_, text), (_, word) in zip(results, case.expected.get("unrun", ()), strict=False):
        assert word in text


#: What the assistant said last, the ids of its calls, and the ids and texts of their results.
Said = tuple[Any, list[Any], list[tuple[Any, str]]]


def _of_chat(body: dict[str, Any]) -> Said:
    messages = body["messages"]
    results = [message for message in messages if message["role"] == "tool"]
    said = messages[-1 - len(results)]
    assert said["role"] == "assistant"
    return said, _call_ids(said), [(result["tool_call_id"], result["content"]) for result in results]


def _of_messages(body: dict[str, Any]) -> Said:
    said, last = body["messages"][-2:]
    results = [(block["tool_use_id"], block["content"]) for block in last["content"]]
    return said, _call_ids(said), results


def _of_responses(body: dict[str, Any]) -> Said:
    items = [item for item in body["input"] if item.get("role") not in ("user", "system")]
    said = [item for item in items if item["type"] != "function_call_output"]
    results = [item for item in items if item["type"] == "function_call_output"]
    assert items == said + results
    ids = [item["call_id"] for item in said if item["type"] == "function_call"]
    return said, ids, [(item["call_id"], item["output"]) for item in results]


def _of_contents(body: dict[str, Any]) -> Said:
    said, last = body["contents"][-2:]
    calls = [part["functionCall"] for part in said["parts"] if "functionCall" in part]
    results = [part["functionResponse"] for part in last["parts"]]
    assert (said["role"], last["role"]) == ("model", "user")
    told = [((result["name"], result.get("id")), result["response"]["output"]) for result in results]
    return said, [(call["name"], call.get("id")) for call in calls], told


_READERS = {
    **dict.fromkeys((OPENAI, MISTRAL, DEEPSEEK, OLLAMA), _of_chat),
    ANTHROPIC: _of_messages,
    RESPONSES: _of_responses,
    GEMINI: _of_contents,
}


def _call_ids(message: dict[str, Any]) -> list[str]:
    blocks = message["content"] if isinstance(message["content"], list) else []
    calls = [*message.get("tool_calls", ()), *(block for block in blocks if block["type"] == "tool_use")]
    return [call["id"] for call in calls]


def _check_pairs(session: Session) -> None:
    """Check that each call has its result right behind it, whatever became of the turn."""
    waiting: list[str] = []
    for message in session.messages():
        if message["role"] == "assistant":
            assert not waiting
            waiting = _call_ids(message)
            continue
        for id in _answered(message):
            waiting.remove(id)
    assert not waiting


def _answered(message: dict[str, Any]) -> list[str]:
    if message["role"] == "tool":
        return [message["tool_call_id"]]
    blocks = message["content"] if isinstance(message["content"], list) else []
    return [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]


def test_the_documented_cases_exist() -> None:
    page = (ROOT / "docs" / "providers.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:chat|mistral|ollama|responses|message|gemini)_\w+)`", page))
    assert named <= {case.name for case in (*cases(), *request_cases())}
    assert len(named) >= 40
