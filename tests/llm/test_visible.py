"""What users see of replies that are hostile or broken. Spec: 07 §1.4."""

from __future__ import annotations

import pytest

from harnpy.llm.text_format import visible_text
from tests.support import assert_linear, processor_time

#: What stands before, what is repeated, what stands behind.
HOSTILE = {
    "open calls": ("", "<tool_call>", ""),
    "open results": ("", "<tool_result ", ""),
    "open result marks": ("", "[result of a]", ""),
    "open answers": ("", "<user_response>", ""),
    "open prose": ("", "<assistant_prose>", ""),
    "blank fence": ("```json", "\n", ""),
    "deep fence": ("```json\n", "[", "\n```"),
    "plans": ("", '{"mode": "ask_user"} ', ""),
    "open plans": ("", '{"mode": "ask_user", "a": [', ""),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_replies_take_a_time_in_proportion(kind: str) -> None:
    before, repeated, behind = HOSTILE[kind]
    assert_linear(lambda n: processor_time(lambda: visible_text(before + repeated * n + behind)), 4_000)


def test_blocks_that_are_never_closed_stay() -> None:
    assert (
        visible_text("a <tool_call> b <done>c</done> d <tool_result x> e")
        == "a <tool_call> b  d <tool_result x> e"
    )


def test_every_plan_goes() -> None:
    plan = '{"mode": "ask_user", "note": "}"}'
    assert visible_text(f"one {plan} two {plan} three") == "one  two  three"
