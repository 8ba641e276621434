"""Compaction over long conversations: the window stays small, and nothing that was said is lost.

What the cut promises (08 §4.3, and that a call and its result never part) is checked on conversations of
2,000 messages, and as properties over random ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle, islice, pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harnpy.session import SessionRegistry
from tests.counts import COUNT
from tests.session.model import (
    Json,
    Message,
    cut_of,
    orphans,
    pairs,
    parted,
    result_ids,
    start_of_tool_turn,
    start_of_turn,
)
from tests.session.shapes import SHAPES, calling, results, said, tool, tool_result, uses

TOTAL = 2000
ROUNDS = 50
KEEP_LAST = 8


def talk() -> Iterator[Message]:
    """All pieces of conversation over and over, no two rounds in the same order."""
    shapes = sorted(SHAPES)
    for number in cycle(range(10**6)):
        step = (1, 3, 5, 7)[number // len(shapes) % 4]
        yield from SHAPES[shapes[number * step % len(shapes)]](str(number))


TALK = list(islice(talk(), TOTAL))


def longest(lengths: Iterator[int]) -> int:
    return max(lengths, default=0)


def window_limit(messages: list[Message], keep_last: int) -> int:
    """The largest window that a compaction may leave.

    The cut goes back from the ``keep_last`` newest to the start of a user's turn, so by less than a turn;
    from there, by at most the way from a result to its call. In front stands the summary.
    """
    turns = [at for at, message in enumerate(messages) if message["role"] == "user"]
    turn = longest(after - before for before, after in pairwise([*turns, len(messages)]))
    reach = longest(result - call for call, result in pairs(messages))
    return keep_last + (turn - 1) + reach + 1


STRATEGIES: dict[str, Json] = {
    "truncate": {},
    "observation_mask": {"mask_callback": lambda archived: [None, "masked"] * 9},
    "custom": {"custom_compactor": lambda archived: f"{len(archived)} messages"},
    "llm": {"hard_limit_tokens": 40, "hard_limit_strategy": "truncate"},
}


@pytest.fixture
def store() -> SessionRegistry:
    store = SessionRegistry()
    store.open("s")
    return store


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_session_lives_through_fifty_compactions(store: SessionRegistry, strategy: str) -> None:
    opts = {"keep_last": KEEP_LAST, "compact_strategy": strategy, **STRATEGIES[strategy]}
    limit = window_limit(TALK, KEEP_LAST)
    arriving = iter(TALK)
    for count in range(1, ROUNDS + 1):
        for message in islice(arriving, TOTAL // ROUNDS):
            store.inject("s", message)
        before = store.messages("s")
        assert store.compact("s", opts, lambda prompt: f"{len(prompt)} letters") <= limit
        check_window(before, store.messages("s"))
        assert len(store.history("s")) == count * TOTAL // ROUNDS
    assert [json.dumps(message) for message in store.history("s")] == [
        json.dumps(message) for message in TALK
    ]


def check_window(before: list[Message], window: list[Message]) -> None:
    """A summary, and behind it the newest messages as they were, whole calls only."""
    summary, kept = window[0], window[1:]
    archived = before[: len(before) - len(kept)]
    assert before == archived + kept
    assert summary["role"] == "user"
    assert f"auto-compacted {len(archived)} older messages" in summary["content"]
    assert not kept or not result_ids(kept[0])
    assert not parted(archived, kept)


def test_trim_and_reset_leave_the_history_its_own_way(store: SessionRegistry) -> None:
    for message in TALK[:100]:
        store.inject("s", message)
    store.compact("s", {"compact_strategy": "truncate"})
    store.trim("s", 3)
    assert store.history("s") == TALK[:100]
    store.reset("s")
    store.inject("s", TALK[100])
    assert store.history("s") == TALK[100:101]
    assert store.history("s", {"include_reset": True}) == TALK[:101]


def meddle(archived: list[Message]) -> str:
    """A callback that spoils what it is given."""
    for message in archived:
        message["content"] = "spoilt"
    archived.clear()
    return ""


@pytest.mark.parametrize("callback", ["custom_compactor", "mask_callback"])
def test_callbacks_are_given_copies(store: SessionRegistry, callback: str) -> None:
    other = SessionRegistry()
    other.open("s")
    for message in TALK[:100]:
        store.inject("s", message)
        other.inject("s", message)
    assert store.compact("s", {callback: meddle}) == other.compact("s", {callback: lambda archived: ""})
    assert store.messages("s") == other.messages("s")
    assert store.history("s") == TALK[:100]


# The boundary rule. Few ids, so that calls and results meet in all ways.

CALL_IDS = st.sampled_from("123")
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.just(said("user", "question")),
    st.just(said("assistant", "answer")),
    st.just(said("assistant", "answer", reasoning="because")),
    st.lists(CALL_IDS, unique=True, max_size=2).map(lambda ids: calling(*ids)),
    st.lists(CALL_IDS, unique=True, max_size=2).map(lambda ids: uses(*ids)),
    CALL_IDS.map(tool),
    CALL_IDS.map(tool_result),
    st.lists(CALL_IDS, unique=True, max_size=2).map(lambda ids: results(*ids)),
)
CONVERSATIONS = st.lists(MESSAGES, max_size=14)
COUNTS = st.integers(0, 8)


def archived_by(messages: list[Message], keep_last: int) -> int:
    """How many messages a compaction takes away."""
    store = SessionRegistry()
    store.open("s")
    heard: list[Json] = []
    store.subscribe("s", heard.append)
    for message in messages:
        store.inject("s", message)
    left = store.compact("s", {"keep_last": keep_last, "compact_strategy": "truncate"})
    if not heard:
        assert store.messages("s") == messages
        return 0
    count: int = heard[0]["archived_messages"]
    assert left == len(messages) - count + 1
    assert store.messages("s")[1:] == messages[count:]
    return count


def by_the_book(messages: list[Message], keep_last: int) -> int:
    """The cut of 08 §4.3, that knows nothing of pairs."""
    if len(messages) <= keep_last:
        return 0
    return start_of_tool_turn(messages, start_of_turn(messages, len(messages) - keep_last))


@given(CONVERSATIONS, COUNTS)
def test_no_call_parts_from_its_result(messages: list[Message], keep_last: int) -> None:
    cut = archived_by(messages, keep_last)
    assert not [pair for pair in pairs(messages) if cut and pair[0] < cut <= pair[1]]


@given(CONVERSATIONS, COUNTS)
def test_no_window_starts_with_a_result(messages: list[Message], keep_last: int) -> None:
    cut = archived_by(messages, keep_last)
    assert cut in (0, len(messages)) or not result_ids(messages[cut])


@given(CONVERSATIONS, COUNTS)
def test_there_is_something_to_archive_whenever_there_are_too_many(
    messages: list[Message], keep_last: int
) -> None:
    assert bool(archived_by(messages, keep_last)) == (len(messages) > keep_last)


@given(CONVERSATIONS, COUNTS)
def test_a_cut_that_parts_nothing_is_the_books(messages: list[Message], keep_last: int) -> None:
    cut = by_the_book(messages, keep_last)
    if cut not in orphans(messages) and not [pair for pair in pairs(messages) if pair[0] < cut <= pair[1]]:
        assert archived_by(messages, keep_last) == cut


@given(CONVERSATIONS, COUNTS)
@settings(max_examples=COUNT.examples(20))
@example([calling("1"), tool("1")], 1)
@example([said("user"), calling("1"), said("user"), tool("1")], 2)
@example([said("user"), calling("1"), calling("2"), tool("1"), tool("2")], 1)
def test_a_cut_that_would_part_moves_back_else_on(messages: list[Message], keep_last: int) -> None:
    assert archived_by(messages, keep_last) == cut_of(messages, keep_last)


@pytest.mark.parametrize(
    ("messages", "keep_last", "cut"),
    [
        pytest.param([said("user"), said("assistant"), calling("1"), tool("1")], 1, 2, id="back to the call"),
        pytest.param([calling("1"), tool("1"), said("user")], 2, 2, id="nothing before the call: on"),
        pytest.param([said("user"), said("assistant"), tool("1")], 1, 3, id="an orphan goes too"),
        pytest.param(
            [said("user"), uses("1"), said("user"), results("1")], 2, 1, id="a question between does not help"
        ),
        pytest.param(
            [said("user"), calling("1"), calling("2"), tool("1"), tool("2")], 2, 1, id="pairs that overlap"
        ),
        pytest.param([said("assistant"), calling(""), tool("")], 1, 1, id="without ids, position counts"),
        pytest.param(
            [calling("1"), tool("1"), said("assistant"), calling("1"), tool("1")], 1, 3, id="an id used again"
        ),
    ],
)
def test_where_the_cut_comes_to_stand(messages: list[Message], keep_last: int, cut: int) -> None:
    assert archived_by(messages, keep_last) == cut
