"""Fixtures: lines that answer calls, the texts of what is wrong with them, recordings (07 §2.5, 09 §2.6)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.faults import MisuseError
from harnpy.llm.call import Models
from harnpy.llm.errors import CATEGORIES, CallError, FixtureError
from harnpy.llm.providers.mock import FixtureRecording, read_fixtures
from harnpy.llm.reply import Reply
from tests.worlds import models_with


def replaying(*lines: dict[str, Any]) -> Models:
    models = models_with({})
    models.mock.replay(read_fixtures("\n".join(map(json.dumps, lines)), "f"))
    return models


def ask(models: Models, prompt: str = "hi", **options: Any) -> Reply:
    given = {"provider": "mock", **options}
    return models.ask(models.request(prompt, None, models.options(given)))


# Reading and replaying.


def test_every_key_of_a_line_is_told() -> None:
    blocks = [{"type": "output_text", "text": "in blocks", "visibility": "public"}]
    line = {
        "text": "A",
        "tool_calls": [{"name": "f", "args": {"x": 1}}, {"name": "g", "arguments": [2]}, {"name": "h"}],
        "thinking": "hm",
        "thinking_summary": "h",
        "stop_reason": "stop",
        "model": "m-1",
        "provider": "acme",
        "input_tokens": 3,
        "output_tokens": 4,
        "cache_read_tokens": 5,
        "cache_creation_input_tokens": 6,
        "blocks": blocks,
    }
    reply = ask(replaying(line))
    assert (reply.text, reply.thinking, reply.thinking_summary) == ("A", "hm", "h")
    assert (reply.stop_reason, reply.model, reply.provider) == ("stop", "m-1", "acme")
    assert (reply.input_tokens, reply.output_tokens) == (3, 4)
    assert (reply.cache_read_tokens, reply.cache_write_tokens) == (5, 6)
    assert reply.blocks() == blocks
    calls = [(call["id"], call["name"], call["arguments"]) for call in reply.tool_calls]
    assert calls == [("mock_call_1", "f", {"x": 1}), ("mock_call_2", "g", [2]), ("mock_call_3", "h", {})]


def test_what_a_line_leaves_out() -> None:
    reply = ask(replaying({}), "hello")
    assert (reply.text, reply.model, reply.provider, reply.tool_calls) == ("", "mock", "mock", [])
    assert (reply.input_tokens, reply.output_tokens) == (len("hello\nuser"), 30)


def test_lines_without_a_pattern_come_first_and_once() -> None:
    models = replaying({"match": "h*", "text": "again"}, {"text": "first"}, {"text": "second"})
    assert [ask(models).text for _ in range(4)] == ["first", "second", "again", "again"]


def test_a_consumed_pattern_serves_once() -> None:
    models = replaying({"match": "*", "consume_match": True, "text": "once"}, {"match": "h*", "text": "then"})
    assert [ask(models).text for _ in range(2)] == ["once", "then"]


def test_fixtures_come_before_the_queue() -> None:
    models = replaying({"text": "from the file"})
    models.mock.add({"text": "from the queue"})
    assert [ask(models).text for _ in range(2)] == ["from the file", "from the queue"]


def test_fixtures_answer_for_every_provider() -> None:
    models = replaying({"text": "A", "provider": "openai"})
    assert ask(models, provider="openai", model="gpt-4o").provider == "openai"


@pytest.mark.parametrize(("length", "shown"), [(3, "x" * 3), (200, "x" * 200), (201, "x" * 200 + "…")])
def test_a_prompt_without_a_fixture_is_a_mistake(length: int, shown: str) -> None:
    models = replaying({"match": "something else", "text": "A"})
    with pytest.raises(MisuseError) as caught:
        ask(models, "x" * length)
    assert str(caught.value) == f'No --llm-mock fixture matched prompt: "{shown}"'
    assert len(models.mock.calls()) == 1


def test_an_error_line_is_thrown() -> None:
    error = {"category": "rate_limit", "message": "slow down", "retry_after_ms": 1500}
    with pytest.raises(CallError) as caught:
        ask(replaying({"error": error}))
    assert (caught.value.category, caught.value.message) == ("rate_limit", "slow down\nretry-after: 1.5")


def test_clearing_the_mocks_removes_the_fixtures() -> None:
    models = replaying({"text": "A"})
    models.clear_mocks()
    assert ask(models).text == "Mock response to 1-word prompt: hi"


def test_scopes_leave_the_fixtures_alone() -> None:
    models = replaying({"text": "A"}, {"text": "B"})
    models.mock.push_scope()
    assert ask(models).text == "A"
    models.mock.pop_scope()
    assert ask(models).text == "B"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[]", "fixture line must be a JSON object"),
        ('{"text": 1}', "`text` must be a string"),
        ('{"match": ["a"]}', "`match` must be a string"),
        ('{"consume_match": 1}', "`consume_match` must be a boolean"),
        ('{"input_tokens": "1"}', "`input_tokens` must be an integer"),
        ('{"output_tokens": true}', "`output_tokens` must be an integer"),
        ('{"blocks": {}}', "`blocks` must be an array"),
        ('{"tool_calls": {}}', "tool_calls must be an array"),
        ('{"tool_calls": [{}]}', "tool_calls[0] is missing string field `name`"),
        ('{"tool_calls": [{"name": "f"}, 1]}', "tool_calls[1] is missing string field `name`"),
        ('{"error": 1}', "error must be an object {category, message, retry_after_ms?}"),
        ('{"error": {}}', "error.category is required"),
        ('{"error": {"category": "x"}}', "unknown error category `x`"),
        (
            '{"error": {"category": "timeout", "retry_after_ms": -1}}',
            "error.retry_after_ms must be a non-negative integer",
        ),
        (
            '{"error": {"category": "timeout", "retry_after_ms": 1.5}}',
            "error.retry_after_ms must be a non-negative integer",
        ),
    ],
)
def test_lines_that_are_no_fixture(line: str, reason: str) -> None:
    with pytest.raises(FixtureError) as caught:
        read_fixtures(f'{{"text": "good"}}\n\n{line}\n', "mocks.jsonl")
    assert str(caught.value) == f"invalid --llm-mock fixture in mocks.jsonl line 3: {reason}"


def test_a_line_that_is_no_json() -> None:
    with pytest.raises(FixtureError, match=r"^invalid JSON in mocks\.jsonl line 2: ."):
        read_fixtures('{}\n{"text": }', "mocks.jsonl")


def test_null_is_absent_and_other_keys_are_let_be() -> None:
    assert ask(replaying({"text": None, "tool_calls": None, "error": None, "note": 1})).text == ""


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_text_stays_on_its_line(text: str) -> None:
    (fixture,) = read_fixtures(json.dumps({"text": text}, ensure_ascii=False), "f")
    assert fixture.text == text


# Recording.


class Asker:
    """Who asks next."""

    name = "root"


def recording(models: Models) -> tuple[FixtureRecording, Asker]:
    asker = Asker()
    models.recording = FixtureRecording(lambda: asker.name)
    return models.recording, asker


def lines(recording: FixtureRecording) -> list[dict[str, Any]]:
    return [json.loads(line) for line in recording.lines().split("\n") if line]


def test_a_recording_has_a_line_a_call() -> None:
    models = models_with({})
    recorded, _ = recording(models)
    calls = [{"name": "f", "arguments": {"x": 1}}]
    models.mock.add({"text": "A", "tool_calls": calls, "thinking": "hm", "stop_reason": "end"})
    ask(models)
    ask(models, "echo")
    first, second = lines(recorded)
    assert first == {
        "text": "A",
        "tool_calls": [{"name": "f", "args": {"x": 1}}],
        "input_tokens": 7,
        "output_tokens": 30,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "model": "mock",
        "provider": "mock",
        "thinking": "hm",
        "stop_reason": "end",
        "blocks": [
            {"type": "output_text", "text": "A", "visibility": "public"},
            {"type": "tool_call", "id": "mock_call_1", "name": "f", "arguments": {"x": 1}}
            | {"visibility": "internal"},
        ],
    }
    assert (second["text"], "match" in second) == ("Mock response to 1-word prompt: echo", False)


def test_failed_attempts_are_recorded_as_they_were() -> None:
    models = models_with({})
    recorded, _ = recording(models)
    models.mock.add({"error": {"category": "overloaded", "message": "busy"}})
    models.mock.add({"text": "A"})
    ask(models, llm_retries=1)
    assert [line.get("text", line.get("error")) for line in lines(recorded)] == [
        {"category": "overloaded", "message": "busy"},
        "A",
    ]


def test_lines_say_what_was_asked_when_several_asked() -> None:
    models = models_with({})
    recorded, asker = recording(models)
    for name in ("a", "b"):
        asker.name = name
        ask(models, f"from *{name}*")
    assert [(line["match"], line["consume_match"]) for line in lines(recorded)] == [
        ("from *a*\nuser", True),
        ("from *b*\nuser", True),
    ]
    replayed = replaying(*lines(recorded))
    assert [ask(replayed, f"from *{name}*").text.split()[-1] for name in "ba"] == ["*b*", "*a*"]


def test_ids_of_tool_calls_are_no_part_of_what_was_asked() -> None:
    models = models_with({})
    recorded, asker = recording(models)
    models.mock.add({"tool_calls": [{"name": "f"}]})
    ask(models)
    asker.name = "other"
    ask(models, messages=[{"role": "tool", "tool_call_id": "mock_call_1", "content": "r"}])
    assert lines(recorded)[1]["match"] == "r\ntool\n*"


def test_clearing_the_mocks_ends_the_recording() -> None:
    models = models_with({})
    recorded, _ = recording(models)
    ask(models)
    models.clear_mocks()
    ask(models)
    assert recorded.lines() == ""


_ANSWERS = st.one_of(
    st.fixed_dictionaries(
        {"text": st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=9)},
        optional={
            "tool_calls": st.lists(
                st.fixed_dictionaries(
                    {"name": st.sampled_from("fg"), "arguments": st.just({"a": [1, None]})}
                ),
                max_size=2,
            ),
            "thinking": st.text(alphabet="hm ", max_size=3),
            "input_tokens": st.integers(0, 9),
            "cache_read_tokens": st.integers(0, 9),
        },
    ),
    st.fixed_dictionaries(
        {"error": st.fixed_dictionaries({"category": st.sampled_from(sorted(CATEGORIES))})}
    ),
)


@given(st.lists(_ANSWERS, max_size=5), st.booleans())
def test_a_replay_answers_as_the_recording_heard(answers: list[dict[str, Any]], several: bool) -> None:
    def told(models: Models, asker: Asker) -> list[Any]:
        heard: list[Any] = []
        for i in range(len(answers)):
            asker.name = str(i) if several else "root"
            try:
                heard.append(ask(models, f"prompt {i % 2}", llm_retries=0))
            except CallError as error:
                heard.append((error.category, error.message))
        return heard

    models = models_with({})
    recorded, asker = recording(models)
    for answer in answers:
        models.mock.add(answer)
    live = told(models, asker)
    again = told(replaying(*lines(recorded)), Asker())
    for one, other in zip(live, again, strict=True):
        if isinstance(one, Reply):
            assert (one.blocks(), one.usage()) == (other.blocks(), other.usage())
            assert (one.text, one.tool_calls, one.thinking or None) == (
                other.text,
                other.tool_calls,
                other.thinking,
            )
        else:
            assert one == other
