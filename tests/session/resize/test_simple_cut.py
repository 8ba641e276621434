"""The printed length of messages, and what `simple_cut` leaves of them. Spec: 10 §A2.4."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.session import Session
from harnpy.session.compaction import printed_length
from harnpy.session.strategies import simple_cut
from tests.session.shapes import calling, results, said, tool, uses

Message = dict[str, Any]

HELLO = said("user", "hello")
#: 40 printed characters each: 31 around the text.
TALK = [said("user", f"message {number}") for number in range(3)]


@pytest.mark.parametrize(
    ("message", "length"),
    [
        (HELLO, 36),
        ({"content": "hello", "role": "user"}, 36),
        ({"role": "user", "content": "it's"}, 35),
        ({"role": "user", "content": ""}, 31),
        ({"role": "user", "content": "hello", "name": "Ann", "n": None}, 62),
        ({"role": "user", "content": [{"type": "text", "text": "é"}]}, 60),
    ],
)
def test_the_length_is_that_of_the_python_text(message: Message, length: int) -> None:
    assert printed_length(message) == length


@pytest.mark.parametrize(
    ("limit", "kept"),
    [(120, 3), (119, 2), (80, 2), (79, 1), (41, 1), (40, 1)],
)
def test_the_newest_messages_that_fit_stay_whole(limit: int, kept: int) -> None:
    assert [printed_length(message) for message in TALK] == [40] * 3
    assert simple_cut(TALK, limit) == TALK[3 - kept :]


@pytest.mark.parametrize(
    ("limit", "text"),
    [(39, "message 2"), (9, "message 2"), (8, "essage 2"), (5, "age 2"), (1, "2"), (0, "")],
)
def test_a_message_that_fits_not_at_all_keeps_its_last_characters(limit: int, text: str) -> None:
    """All of them where text length < limit < 2 × text length, unlike Agently."""
    once = simple_cut(TALK, limit)
    assert once == [said("user", text)]
    assert simple_cut(once, limit) == once, "and stays so"


def test_a_message_that_is_too_long_ends_the_walk() -> None:
    long = said("user", "x" * 100)
    assert simple_cut([TALK[0], long, TALK[2]], 100) == [TALK[2]]


def test_text_parts_are_cut_and_other_parts_go() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.com/" + "x" * 100}}
    message = said("user", [{"type": "text", "text": "abcdef"}, image, "gh"])
    assert simple_cut([message], 8) == [message], "what fits stays as it is"
    assert simple_cut([message], 5) == [said("user", [{"type": "text", "text": "def"}, "gh"])]
    assert simple_cut([message], 2) == [said("user", ["gh"])]
    assert simple_cut([message], 0) == [said("user", "")]


def test_a_result_has_its_call() -> None:
    call, result = calling("a", content="I read"), tool("a", "x" * 300)
    assert simple_cut([*TALK, call, result], 20) == [said("assistant", "", tool_calls=call["tool_calls"]), {
        **result, "content": "x" * 20
    }]  # fmt: skip
    size = printed_length(call) + printed_length(result)
    assert simple_cut([*TALK, call, result], size) == [call, result]
    behind = said("assistant", "read")
    assert simple_cut([*TALK, call, result, behind], size) == [behind], "the call goes with its result"
    blocks = [uses("b"), results("b")]
    assert simple_cut([*TALK, *blocks], 1)[0]["content"][-1]["id"] == "b"
    assert simple_cut([*TALK, *blocks], 1)[1]["content"][0] == {
        "type": "tool_result", "tool_use_id": "b", "content": "e"
    }  # fmt: skip


def test_pinned_messages_take_room_first_and_none_in_their_place() -> None:
    assert simple_cut(TALK, 80, 40, {1}) == TALK[1:]
    assert simple_cut(TALK, 80, 39, {1}) == [TALK[2]]
    assert simple_cut(TALK, 80, 0, ()) == [TALK[2]], "without any room the newest keeps `limit` characters"


def test_nothing_becomes_nothing() -> None:
    assert simple_cut([], 0) == []
    session = Session()
    session.add_history(TALK)
    for limit in (None, 1000):
        report = session.resize("simple_cut", max_length=limit)
        assert report is not None
        assert (report.events, session.messages()) == (0, TALK)


def test_the_window_is_cut_and_the_history_stays() -> None:
    session = Session(settings={"max_length": 80})
    session.add_history(TALK)
    assert session.messages() == TALK[1:]
    assert session.history() == TALK
    session.add_history(said("user", "y" * 200))
    assert session.messages() == [said("user", "y" * 80)]
    assert session.history()[-1] == said("user", "y" * 200)
    seq = session.seq
    report = session.resize()
    assert report is not None
    assert not report.shrunk
    assert session.seq == seq, "its envelope makes it too long, and it is cut to the same again"
    session.add_history(TALK[0])
    assert session.messages() == [TALK[0]]
    assert session.history() == [*TALK, said("user", "y" * 200), TALK[0]]
    session.add_history(TALK[1])
    assert session.messages() == TALK[:2]
