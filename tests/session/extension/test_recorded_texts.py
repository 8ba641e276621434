"""What is recorded of requests and results: keys, where they look, how values read. Spec: 10 §A2.6."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.session import InvalidArgument
from harnpy.session.extension import RequestPrompt, formatted, input_text, keys_of, prompt_of, reply_text

PROMPT = RequestPrompt(
    {
        "input": {"question": "why?", "tags": ["a", "b"], "role": "asker"},
        "info": {"task": "tea", "none": None},
        "info.task": "literal",
        "chat_history": [{"role": "user", "content": "before"}],
        "CHAT SESSION MEMO": {"n": 1},
    },
    {"role": "clerk", "info": {"shop": "x"}},
)


class Odd:
    def __str__(self) -> str:
        return "odd"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("  as it is\n", "  as it is\n"),
        ("", ""),
        (3, "3"),
        (1.50, "1.5"),
        (True, "True"),
        (None, "None"),
        ({"b": 1, "a": "é"}, "b: 1\na: é"),
        ({"list": [1, {"x": "y"}], "none": None}, "list:\n- 1\n- x: y\nnone: null"),
        ([], "[]"),
        ((1, 2), "- 1\n- 2"),
        ({"a": "1\n2\n"}, "a: '1\n\n  2\n\n  '"),
        (Odd(), "odd"),
        ([Odd()], None),
    ],
)
def test_values_as_text(value: Any, text: str | None) -> None:
    assert formatted(value) == (str(value) if text is None else text)


def test_what_holds_itself_has_a_text() -> None:
    value: list[Any] = [1]
    value.append(value)
    assert formatted(value) == "[1, [...]]"


def test_what_is_there_twice_is_written_twice() -> None:
    shared = [1]
    assert formatted({"a": shared, "b": shared}) == "a:\n- 1\nb:\n- 1"


@pytest.mark.parametrize(
    ("setting", "keys"),
    [(None, None), ("a", ["a"]), (["a", None, 3, "b"], ["a", "3", "b"]), ([], []), (3, []), ({"a": 1}, [])],
)
def test_which_keys_a_setting_names(setting: Any, keys: Any) -> None:
    assert keys_of(setting) == keys


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("info.task", "[info.task]:\nliteral"),
        ("info/task", "[info/task]:\ntea"),
        (".request.info.task", "[.request.info.task]:\ntea"),
        (".execution.info.task", "[.execution.info.task]:\ntea"),
        (" question ", "[question]:\nwhy?"),
        ("input.question", "[input.question]:\nwhy?"),
        ("tags[*]", "[tags[*]]:\n- a\n- b"),
        ("role", "[role]:\nasker"),
        (".agent.role", "[.agent.role]:\nclerk"),
        (".agent", "[.agent]:\nrole: clerk\ninfo:\n  shop: x"),
        (".agent.info/shop", "[.agent.info/shop]:\nx"),
        (".request.role", ""),
        (".agent.question", ""),
        (".agents", ""),
        (".request.", ""),
        ("shop", ""),
        ("info.none", "[info.none]:\nNone"),
        ("", ""),
        ("  ", ""),
    ],
)
def test_where_an_input_key_looks(key: str, text: str) -> None:
    assert input_text(PROMPT, key) == text


def test_all_of_the_request() -> None:
    assert input_text(PROMPT, ".request").startswith("[.request]:\ninput:\n  question: why?\n")
    assert "before" in input_text(PROMPT, [".request"])


def test_several_keys_in_their_order() -> None:
    assert input_text(PROMPT, ["tags/0", "nothing", None, "question"]) == "[tags/0]:\na\n[question]:\nwhy?"
    assert input_text(PROMPT, ["nothing"]) == input_text(PROMPT, []) == input_text(PROMPT, 7) == ""


@pytest.mark.parametrize(
    ("slots", "text"),
    [
        ({"input": " hi "}, "hi"),
        ({"input": {"a": 1}}, "a: 1"),
        ({"input": "hi", "chat_history": [1], "CHAT SESSION MEMO": 2, "instruct": None}, "hi"),
        ({"input": "hi", "info": {"session_memory_context": "x"}}, "hi"),
        ({"input": "hi", "info": {"session_memory_context": "x", "a": 1}}, "[input]:\nhi\n[info]:\na: 1"),
        ({"input": "hi", "info.session_memory_context": "x"}, "hi"),
        ({"input": "hi", "instruct": ["short"]}, "[input]:\nhi\n[instruct]:\n- short"),
        ({"instruct": "go"}, "[instruct]:\ngo"),
        ({"input": None}, ""),
        ({"input": "  "}, ""),
        ({}, ""),
    ],
)
def test_without_keys_what_the_caller_says(slots: dict[str, Any], text: str) -> None:
    assert input_text(RequestPrompt(slots, {"role": "clerk"}), None) == text


@pytest.mark.parametrize(
    ("result", "keys", "text"),
    [
        ("done", None, "done"),
        ({"a": [1]}, None, "a:\n- 1"),
        (False, None, "False"),
        (None, None, ""),
        ("", None, ""),
        ({"answer": "yes", "why": {"a": 1}}, "answer", "[answer]:\nyes"),
        ({"answer": "yes", "why": {"a": 1}}, ["why/a", "answer"], "[why/a]:\n1\n[answer]:\nyes"),
        ({"a.b": 1, "a": {"b": 2}}, "a.b", "[a.b]:\n1"),
        ({"answer": None}, "answer", "[answer]:\nNone"),
        ({"answer": "yes"}, "nothing", ""),
        ({"answer": "yes"}, [], ""),
        ("text", "answer", ""),
    ],
)
def test_what_is_recorded_of_a_result(result: Any, keys: Any, text: str) -> None:
    assert reply_text(result, keys) == text


def test_a_prompt_is_a_dict() -> None:
    slots = {"input": "hi"}
    assert prompt_of(slots, {}).request is slots
    with pytest.raises(InvalidArgument, match="a prompt is a dict of slots, got str"):
        prompt_of("hi", {})  # type: ignore[arg-type]
