"""The mock model: its queue, patterns, echo, log and scopes (07 §2)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.faults import MisuseError, OptionError
from harnpy.formats.globs import glob_matches
from harnpy.llm.call import Models
from harnpy.llm.errors import CallError
from harnpy.llm.reply import Reply
from tests.worlds import models_with


def ask(models: Models, prompt: str = "hi", system: str | None = None, **options: Any) -> Reply:
    given = {"provider": "mock", **options}
    return models.ask(models.request(prompt, system, models.options(given)))


@pytest.fixture
def models() -> Models:
    return models_with({})


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("Hello world", "Mock response to 2-word prompt: Hello world"),
        ("  two\nwords ", "Mock response to 2-word prompt:   two\nwords "),
        ("x" * 120, "Mock response to 1-word prompt: " + "x" * 100),
        (" ", "Mock LLM response"),
        ("", "Mock LLM response"),
    ],
)
def test_the_echo(models: Models, prompt: str, text: str) -> None:
    assert ask(models, prompt).text == text


def test_the_echo_takes_the_last_message_with_text(models: Models) -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "über"}]},
        {"role": "user", "content": " "},
    ]
    reply = ask(models, messages=messages)
    assert reply.text == "Mock response to 2-word prompt: über\ntext"
    assert (reply.input_tokens, reply.output_tokens) == (10, 30)
    assert (reply.model, reply.provider) == ("claude-sonnet-4-20250514", "mock")


def test_a_done_tag_in_the_system_prompt_is_answered_in_kind(models: Models) -> None:
    expected = "<assistant_prose>Mock response to 1-word prompt: hi</assistant_prose>\n<done>##DONE##</done>"
    assert ask(models, system="say <done> at the end").text == expected


def test_a_native_tool_is_called_with_placeholders(models: Models) -> None:
    request = models.request("hi", None, models.options({"provider": "mock"}))
    types = ("integer", "number", "boolean", "array", "object", "string")
    schema = {"properties": {t: {"type": t} for t in types}, "required": list(types)}
    request.tools = [{"type": "function", "function": {"name": "add", "parameters": schema}}]
    reply = models.ask(request)
    arguments = {"integer": 0, "number": 0.0, "boolean": False, "array": [], "object": {}, "string": ""}
    assert (reply.text, reply.output_tokens) == ("", 20)
    assert reply.tool_calls == [
        {"id": "mock_call_1", "type": "tool_call", "name": "add", "arguments": arguments}
    ]


def test_fifo_mocks_come_first_and_once(models: Models) -> None:
    models.mock.add({"text": "pattern", "match": "*hi*"})
    models.mock.add({"text": "first"})
    models.mock.add({"text": "second"})
    assert [ask(models).text for _ in range(4)] == ["first", "second", "pattern", "pattern"]


def test_a_consumed_pattern_is_gone(models: Models) -> None:
    models.mock.add({"text": "once", "match": "hi\nuser", "consume_match": True})
    assert [ask(models).text for _ in range(2)] == ["once", "Mock response to 1-word prompt: hi"]


def test_patterns_see_every_string_of_every_message(models: Models) -> None:
    models.mock.add({"text": "found", "match": "one\nsystem\ntwo\ntext\nuser"})
    messages = [
        {"role": "system", "content": "one"},
        {"role": "user", "content": [{"type": "text", "text": "two"}]},
    ]
    assert ask(models, messages=messages).text == "found"


def test_a_queued_mock_answers_for_any_provider(models: Models) -> None:
    models.mock.add({"text": "mine"})
    reply = ask(models, provider="openai", model="gpt-4o")
    assert (reply.text, reply.provider, reply.model) == ("mine", "mock", "mock")
    with pytest.raises(OptionError, match="Missing API key: set OPENAI_API_KEY"):
        ask(models, provider="openai")


def test_what_a_mock_may_say(models: Models) -> None:
    models.mock.add(
        {
            "text": 3,
            "tool_calls": [{"name": "f", "arguments": {"a": 1}, "id": "mine"}, {}],
            "input_tokens": 5,
            "output_tokens": 6,
            "cache_read_tokens": 7,
            "cache_creation_input_tokens": 8,
            "thinking": "hm",
            "thinking_summary": "h",
            "stop_reason": "stop",
            "model": "m",
        }
    )
    reply = ask(models)
    assert (reply.text, reply.model, reply.thinking, reply.stop_reason) == ("3", "m", "hm", "stop")
    assert [call["id"] for call in reply.tool_calls] == ["mock_call_1", "mock_call_2"]
    assert reply.tool_calls[1]["name"] == "unknown"
    assert reply.tool_calls[1]["arguments"] == {}
    usage = reply.usage()
    assert (usage["input_tokens"], usage["output_tokens"]) == (5, 6)
    assert (usage["cache_read_tokens"], usage["cache_write_tokens"]) == (7, 8)
    assert usage["cache_hit_ratio"] == pytest.approx(7 / 20)
    assert [block["type"] for block in reply.blocks()] == ["output_text", "tool_call", "tool_call"]


def test_input_tokens_of_a_mock_default_to_the_bytes_of_the_match_text(models: Models) -> None:
    models.mock.add({"text": "x"})
    assert ask(models, "ü").input_tokens == len("ü\nuser".encode())


def test_a_failing_mock_is_logged_all_the_same(models: Models) -> None:
    models.mock.add({"error": {"category": "rate_limit", "message": "slow", "retry_after_ms": 1500}})
    with pytest.raises(CallError) as caught:
        ask(models)
    assert caught.value.as_dict("mock", "m") == {
        "category": "rate_limit",
        "kind": "transient",
        "reason": "rate_limit",
        "message": "slow\nretry-after: 1.5",
        "provider": "mock",
        "model": "m",
        "retry_after_ms": 1500,
    }
    assert len(models.mock.calls()) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("x", "llm_mock: expected a dict argument"),
        ({"error": {}}, "llm_mock: error.category is required"),
        ({"error": {"category": "odd"}}, "llm_mock: unknown error category `odd`"),
        (
            {"error": {"category": "auth", "retry_after_ms": -1}},
            "llm_mock: error.retry_after_ms must be a non-negative int",
        ),
        ({"error": "x"}, "llm_mock: error must be a dict {category, message, retry_after_ms?}"),
    ],
)
def test_mocks_that_make_no_sense(models: Models, given: Any, message: str) -> None:
    with pytest.raises(MisuseError) as caught:
        models.mock.add(given)
    assert str(caught.value) == message


def test_the_log_holds_what_was_sent(models: Models) -> None:
    ask(models, "one", "sys")
    ask(models, messages=[{"role": "tool_result", "tool_use_id": "t", "content": {"b": 1}}, "no dict", {}])
    first, second = models.mock.calls()
    assert first == {
        "messages": [{"role": "user", "content": "one"}],
        "system": "sys",
        "tools": None,
        "thinking": {"mode": "disabled"},
    }
    result = {"type": "tool_result", "tool_use_id": "t", "content": '{"b":1}'}
    assert second["messages"] == [{"role": "user", "content": [result]}, {"role": "user", "content": ""}]


def test_the_cache_is_written_once_and_read_after(models: Models) -> None:
    replies = [ask(models, cache=True) for _ in range(2)] + [ask(models, "other", cache=True)]
    assert [(reply.cache_write_tokens, reply.cache_read_tokens) for reply in replies] == [
        (2, 0),
        (0, 2),
        (5, 0),
    ]
    assert replies[1].usage()["cache_hit_ratio"] == 1.0
    assert replies[1].usage()["cache_savings_usd"] == pytest.approx(2 * (3.0 - 0.3) / 1e6)
    models.mock.clear()
    assert ask(models, cache=True).cache_write_tokens == 2


def test_scopes_start_empty_and_give_back_what_was(models: Models) -> None:
    models.mock.add({"text": "outer"})
    models.mock.push_scope()
    assert ask(models).text.startswith("Mock response")
    models.mock.pop_scope()
    assert (ask(models).text, len(models.mock.calls())) == ("outer", 1)
    with pytest.raises(OptionError, match="llm_mock_pop_scope: no scope to pop"):
        models.mock.pop_scope()


def test_clear_drops_saved_scopes_too(models: Models) -> None:
    models.mock.push_scope()
    models.mock.clear()
    with pytest.raises(OptionError):
        models.mock.pop_scope()


@given(st.text("ab*", max_size=6), st.text("ab", max_size=8))
def test_globs_equal_the_obvious_matcher(pattern: str, text: str) -> None:
    def matches(pattern: str, text: str) -> bool:
        if not pattern:
            return not text
        if pattern[0] == "*":
            return matches(pattern[1:], text) or (bool(text) and matches(pattern, text[1:]))
        return text[:1] == pattern[0] and matches(pattern[1:], text[1:])

    assert glob_matches(pattern, text) == matches(pattern, text)
