"""Histories in which user and assistant take turns. Spec: 10 §A2.5."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.session.extension import strictly_ordered
from tests.session.shapes import said

FIRST, LAST = said("user", "[CHAT HISTORY]"), said("assistant", "[User continue input]")
CALL = {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": {"name": "f"}}]}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "x"}
IMAGE = {"type": "image", "url": "u"}
TEXTS = st.text("ab", min_size=1, max_size=2)
MESSAGES = st.lists(st.builds(said, st.sampled_from(["user", "assistant", "system"]), TEXTS), max_size=6)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], []),
        ([said("user", "a"), said("assistant", "b")], [said("user", "a"), said("assistant", "b")]),
        ([said("user", "a")], [said("user", "a"), LAST]),
        ([said("assistant", "b")], [FIRST, said("assistant", "b")]),
        ([said("user", "a"), said("user", "b"), said("assistant", "c")],
         [said("user", "a\nb"), said("assistant", "c")]),
        ([said("user", "a"), said("user", [IMAGE])],
         [said("user", [{"type": "text", "text": "a"}, IMAGE]), LAST]),
        ([said("user", ""), said("user", "b")], [said("user", "b"), LAST]),
        ([said("user", "a"), said("assistant", "b"), CALL, RESULT],
         [said("user", "a"), {**CALL, "content": "b"}, RESULT, LAST]),
        ([said("user", "a"), CALL, RESULT, RESULT, said("assistant", "b")],
         [said("user", "a"), CALL, RESULT, RESULT, said("assistant", "b")]),
    ],
)  # fmt: skip
def test_orders(given: list[Any], expected: list[Any]) -> None:
    assert strictly_ordered(given) == expected


@given(MESSAGES)
def test_the_order_is_strict_and_nothing_is_lost(messages: list[dict[str, Any]]) -> None:
    before = [dict(message) for message in messages]
    found = strictly_ordered(messages)
    roles = [message["role"] for message in found]
    assert all(one != other for one, other in pairwise(roles))
    assert not messages or (roles[0], roles[-1]) == ("user", "assistant")
    texts = "\n".join(message["content"] for message in found)
    said_before = "\n".join(message["content"] for message in messages)
    assert texts.removeprefix("[CHAT HISTORY]\n").removesuffix("\n[User continue input]") == said_before
    assert strictly_ordered(found) == found
    assert messages == before, "what it is given stays as it was"
