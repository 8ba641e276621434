"""Options of a call that only a service sees: what a program asks for is what goes out. Spec: 07 §1.2.

What the mock provider can show is shown by the programs under conformance/.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm
from tests.llm.test_real_calls import BOTH, WireHost, environment, program
from tests.llm.wire import ANTHROPIC, OPENAI, Fail, Received, Say, Silence, Wire

ABSENT = object()
#: Capabilities for a service that nobody knows: these options are gated.
_CAN = 'provider_capabilities_install("[[provider.acme]]\\nmodel_match = \\"*\\"\\n{}\\n")\n'


def sent(protocol: str, directory: Path, options: str, can: str = "", caller: str = "llm_call") -> Received:
    """What the service receives of a call with ``options``."""
    with Wire(protocol, Say('{"a": 1}')) as wire:
        setup = _CAN.format(can) if can else ""
        program(wire, directory, f'{setup}{caller}("hi", nil, {options})')
        return wire.requests[0]


def among(body: dict[str, Any], expected: dict[str, Any]) -> bool:
    return all(body.get(key, ABSENT) == value for key, value in expected.items())


TOOL = '{tools: tool_define(tool_registry(), "t", "Tool", {handler: { a -> 1 }}), '
SCHEMA = '{type: "object", properties: {a: {type: "int"}}, required: ["a"]}'
EPHEMERAL = {"cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize("caller", ["llm_call", "agent_loop"])
@pytest.mark.parametrize(
    ("options", "openai", "anthropic"),
    [
        ("{}", {"max_tokens": 16384, "temperature": ABSENT}, {"max_tokens": 16384, "temperature": ABSENT}),
        ("{max_tokens: 9}", {"max_tokens": 9}, {"max_tokens": 9}),
        ('{max_tokens: "9"}', {"max_tokens": 16384}, {"max_tokens": 16384}),
        ("{temperature: 1}", {"temperature": 1.0}, {"temperature": 1.0}),
        ("{top_p: 0.25}", {"top_p": 0.25}, {"top_p": 0.25}),
        ("{frequency_penalty: 0.5}", {"frequency_penalty": 0.5}, {"frequency_penalty": ABSENT}),
        ("{presence_penalty: -0.5}", {"presence_penalty": -0.5}, {"presence_penalty": ABSENT}),
        ("{top_k: 4}", {"top_k": 4}, {"top_k": 4}),
        ("{top_k: 4.0}", {"top_k": ABSENT}, {"top_k": ABSENT}),
        ("{seed: 7}", {"seed": 7}, {"seed": ABSENT}),
        ('{stop: ["END", 5]}', {"stop": ["END", "5"]}, {"stop_sequences": ["END", "5"]}),
        ("{stop: []}", {"stop": ABSENT}, {"stop_sequences": ABSENT}),
        ('{stop: "END"}', {"stop": ABSENT}, {"stop_sequences": ABSENT}),
        ("{stream: false}", {"stream": False}, {"stream": False}),
        ('{model: "m-2"}', {"model": "m-2"}, {"model": "m-2"}),
    ],
)
def test_every_call_takes_them(
    caller: str, options: str, openai: dict[str, Any], anthropic: dict[str, Any], tmp_path: Path
) -> None:
    for protocol, expected in ((OPENAI, openai), (ANTHROPIC, anthropic)):
        body = sent(protocol, tmp_path, options, caller=caller).body
        assert among(body, expected), body


@pytest.mark.parametrize(
    ("options", "can", "openai", "anthropic"),
    [
        (
            '{thinking: "high"}',
            'thinking_modes = [\\"effort\\"]',
            {"reasoning_effort": "high"},
            {"output_config": {"effort": "high"}},
        ),
        (
            '{reasoning_effort: "low"}',
            'thinking_modes = [\\"effort\\"]',
            {"reasoning_effort": "low"},
            {"output_config": {"effort": "low"}},
        ),
        (
            "{thinking: {budget_tokens: 2000}}",
            'thinking_modes = [\\"enabled\\"]',
            {"reasoning_effort": "medium"},
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
        ),
        (
            TOOL + 'tool_choice: "required"}',
            "native_tools = true",
            {"tool_choice": "required"},
            {"tool_choice": {"type": "any"}},
        ),
    ],
)
def test_models_that_can_are_asked_to(
    options: str, can: str, openai: dict[str, Any], anthropic: dict[str, Any], tmp_path: Path
) -> None:
    for protocol, expected in ((OPENAI, openai), (ANTHROPIC, anthropic)):
        body = sent(protocol, tmp_path, options, can).body
        assert among(body, expected), body


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ('{response_format: "json"}', {"type": "json_object"}),
        ('{output_format: "json_object"}', {"type": "json_object"}),
        (f"{{json_schema: {SCHEMA}}}", {"type": "json_schema"}),
        (f"{{schema: {SCHEMA}}}", {"type": "json_schema"}),
        (f'{{output_format: {{kind: "json_schema", schema: {SCHEMA}}}}}', {"type": "json_schema"}),
        (f"{{output_schema: {SCHEMA}}}", ABSENT),
        ('{response_format: "text"}', ABSENT),
    ],
)
def test_the_form_of_the_answer(options: str, expected: Any, tmp_path: Path) -> None:
    form = sent(OPENAI, tmp_path, options, "structured_output = true").body.get("response_format", ABSENT)
    if expected is ABSENT:
        assert form is ABSENT
    else:
        assert form["type"] == expected["type"]


@BOTH
def test_messages_and_prefill(protocol: str, tmp_path: Path) -> None:
    options = '{messages: [{role: "user", content: "one"}, 5, {content: "two"}], prefill: "Sure"}'
    said = sent(protocol, tmp_path, options).body["messages"]
    texts = [
        each["content"] if isinstance(each["content"], str) else [b["text"] for b in each["content"]]
        for each in said
    ]
    assert texts == (["one", "two", "Sure"] if protocol == OPENAI else [["one", "two"], ["Sure"]])


def test_cache_marks_what_anthropic_shall_keep(tmp_path: Path) -> None:
    plain = sent(ANTHROPIC, tmp_path, "{}").body["messages"][0]["content"][-1]
    kept = sent(ANTHROPIC, tmp_path, "{cache: true}", "prompt_caching = true").body["messages"][0]["content"][
        -1
    ]
    assert kept == {**plain, **EPHEMERAL} != plain


@pytest.mark.parametrize(
    ("options", "can", "asked_for"),
    [
        ("{}", "", None),
        ('{anthropic_beta_features: "one"}', "", "one"),
        ('{anthropic_beta_features: ["one", "two", "one"]}', "", "one,two"),
        ("{anthropic_beta_features: []}", "", None),
        (
            "{interleaved_thinking: true}",
            "interleaved_thinking_supported = true",
            "interleaved-thinking-2025-05-14",
        ),
    ],
)
def test_features_of_anthropic(options: str, can: str, asked_for: str | None, tmp_path: Path) -> None:
    assert sent(ANTHROPIC, tmp_path, options, can).headers.get("anthropic-beta") == asked_for


def test_a_feature_without_a_name(tmp_path: Path) -> None:
    source = 'println(llm_call_safe("hi", nil, {anthropic_beta_features: "a\\nb"}).error.message)'
    with Wire(ANTHROPIC, Say("ok")) as wire:
        printed = program(wire, tmp_path, source)
    assert printed == 'anthropic_beta_features: "a\nb" is not the name of a feature\n'
    assert not wire.requests


@BOTH
@pytest.mark.parametrize("option", ["timeout", "idle_timeout"])
def test_a_call_has_an_end(protocol: str, option: str, tmp_path: Path) -> None:
    source = f'println(llm_call_safe("hi", nil, {{{option}: 1}}).error.category)'
    with Wire(protocol, Silence()) as wire:
        started = time.monotonic()
        assert program(wire, tmp_path, source) == "timeout\n"
    assert time.monotonic() - started > 0.9


@BOTH
def test_a_retry_waits_for_the_backoff(protocol: str, tmp_path: Path) -> None:
    """The first retry waits twice `llm_backoff_ms`: attempts are counted from 1 (07 §1.8)."""

    with Wire(protocol, Fail(500), Fail(500), Say("ok")) as wire:
        host = WireHost(environment(wire, tmp_path))
        started = time.monotonic()
        Vm(world=host).run_source('llm_call("hi", nil, {llm_retries: 2, llm_backoff_ms: 100})')
    assert len(wire.requests) == 3
    assert time.monotonic() - started >= 0.6


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ([], {"max_tokens": 9, "reasoning_effort": "medium", "reasoning": ABSENT}),
        (
            ["max_completion_tokens", "reasoning", "cache_control"],
            {"max_completion_tokens": 9, "max_tokens": ABSENT, "reasoning": {"enabled": True}},
        ),
    ],
)
def test_what_is_sent_follows_the_configuration(
    features: list[str], expected: dict[str, Any], tmp_path: Path
) -> None:
    can = 'thinking_modes = [\\"enabled\\"]\nprompt_caching = true'.replace("\n", "\\n")
    source = 'llm_call("hi", nil, {max_tokens: 9, thinking: true, cache: true, model: "claude-x"})'
    with Wire(OPENAI, Say("ok")) as wire:
        host = WireHost(environment(wire, tmp_path))
        with (tmp_path / "providers.toml").open("a", encoding="utf-8") as file:
            file.write(f"features = {features}\n")
        Vm(world=host).run_source(_CAN.format(can) + source)
        body = wire.requests[0].body
    assert among(body, expected)
    assert isinstance(body["messages"][0]["content"], list) == bool(features)


def test_a_tool_has_the_style_of_the_protocol(tmp_path: Path) -> None:
    source = f"""llm_mock({{text: "ok"}})
    llm_call("hi", nil, {TOOL}tool_format: "native"}})
    println(llm_mock_calls()[0].tools[0].keys().contains("input_schema"))
    """
    for protocol in (OPENAI, ANTHROPIC):
        with Wire(protocol, Say("ok")) as wire:
            assert program(wire, tmp_path, source) == f"{str(protocol == ANTHROPIC).lower()}\n"
