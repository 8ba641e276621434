"""Mistral's and DeepSeek's chat completions: where they differ from OpenAI's. Spec: 07 §1.18, §1.19."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.llm.dialects import MISTRAL as RULES
from tests.counts import COUNT
from tests.llm.providers.test_providers import request, sent
from tests.llm.wire import DEEPSEEK, MISTRAL

GO = {"role": "user", "content": "go"}


def talk(*ids: str) -> list[dict[str, Any]]:
    calls = [{"id": id, "name": "f", "arguments": {}} for id in ids]
    results = [{"role": "tool", "tool_call_id": id, "content": id} for id in ids]
    return [GO, {"role": "assistant", "content": "", "tool_calls": calls}, *results]


def test_keys_that_mistral_does_not_know_stay_at_home() -> None:
    body = sent(MISTRAL, request(stream=True, sampling={"seed": 7}, max_tokens=9, prefill="Well,"))
    assert body["random_seed"] == 7
    assert body["max_tokens"] == 9
    assert not body.keys() & {"seed", "stream_options", "max_completion_tokens"}
    assert body["messages"][-1] == {"role": "assistant", "content": "Well,", "prefix": True}


def test_a_user_never_speaks_right_behind_a_tool() -> None:
    said = sent(MISTRAL, request(*talk("a"), GO))["messages"]
    assert [message["role"] for message in said] == ["user", "assistant", "tool", "assistant", "user"]
    assert said[3]["content"] == "…"


def test_systems_are_one_at_the_top() -> None:
    later = {"role": "system", "content": "Be kind."}
    said = sent(MISTRAL, request(*talk("a"), later, system="Be brief."))["messages"]
    assert said[0] == {"role": "system", "content": "Be brief.\n\nBe kind."}
    assert [message["role"] for message in said[1:]] == ["user", "assistant", "tool"]


def test_results_follow_their_calls_under_the_new_ids() -> None:
    said = sent(MISTRAL, request(*talk("functions.look:0", "x7Kd90aQz")))["messages"]
    first, second = (call["id"] for call in said[1]["tool_calls"])
    assert re.fullmatch(r"[A-Z2-7]{9}", first)
    assert second == "x7Kd90aQz"
    assert [(told["tool_call_id"], told["content"]) for told in said[2:]] == [
        (first, "functions.look:0"),
        (second, "x7Kd90aQz"),
    ]


@settings(max_examples=COUNT.examples(60))
@given(st.lists(st.text(min_size=1), unique=True, max_size=40))
def test_ids_are_nine_letters_or_digits_of_their_own(ids: list[str]) -> None:
    spelled = [RULES.id_of(id) for id in ids]
    assert all(re.fullmatch(r"[a-zA-Z0-9]{9}", id) for id in spelled)
    assert len(set(spelled)) == len(ids)
    assert list(map(RULES.id_of, spelled)) == spelled


def test_deepseek_gets_reasoning_with_all_that_was_said() -> None:
    own = {"role": "assistant", "content": "Well.", "reasoning_content": "Hm."}
    said = sent(DEEPSEEK, request(*talk("a"), own, GO))["messages"]
    assert [message.get("reasoning_content") for message in said] == [None, "", None, "", None]
