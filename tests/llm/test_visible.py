"""What users see of replies that are hostile or broken. Spec: 07 §1.4."""

from __future__ import annotations

import pytest

from harnpy.llm.visible import visible_text
from tests.support import assert_linear, processor_time

HOSTILE = {
    "open calls": lambda n: "<tool_call>" * n,
    "open results": lambda n: "<tool_result " * n,
    "open result marks": lambda n: "[result of a]" * n,
    "open answers": lambda n: "<user_response>" * n,
    "open prose": lambda n: "<assistant_prose>" * n,
    "blank fence": lambda n: "```json" + "\n" * n,
    "deep fence": lambda n: "```json\n" + "[" * n + "\n```",
    "plans": lambda n: '{"mode": "ask_user"} ' * n,
    "open plans": lambda n: '{"mode": "ask_user", "a": [' * n,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_replies_take_a_time_in_proportion(kind: str) -> None:
    assert_linear(lambda n: processor_time(lambda: visible_text(HOSTILE[kind](n))), 4_000)


def test_blocks_that_are_never_closed_stay() -> None:
    assert (
        visible_text("a <tool_call> b <done>c</done> d <tool_result x> e")
        == "a <tool_call> b  d <tool_result x> e"
    )


def test_every_plan_goes() -> None:
    plan = '{"mode": "ask_user", "note": "}"}'
    assert visible_text(f"one {plan} two {plan} three") == "one  two  three"
