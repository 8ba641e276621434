"""What a model is shown of a session is valid for every provider. Spec: 10 §A1.8, §C5, §C12."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.faults import LOOK, Interruption
from harnpy.formats.tool_messages import calls_of, results_of
from harnpy.session import Event, EventDraft, Session
from harnpy.session import events as kinds
from harnpy.session.compaction import Compaction
from harnpy.session.messages import has_payload
from harnpy.session.prompt import known_to_all, working_set
from harnpy.storage.memory import MemoryStore
from harnpy.world import World
from tests.counts import COUNT
from tests.session.model import Message
from tests.session.shapes import SHAPES, calling, results, said, tool, uses


def opened(*messages: Message) -> Session:
    session = Session.create("s", MemoryStore(), World())
    for message in messages:
        session.record(kinds.MESSAGE_ADDED, message)
    return session


def ended(session: Session, id: str, turn: Event | None = None, **how: Any) -> None:
    session.record(kinds.TOOL_COMPLETED, {"tool": "read", "id": id, **how}, turn)


def context(session: Session, content: str, **marks: str) -> None:
    session.record(kinds.CONTEXT_ADDED, {"content": content, **marks})


def texts(session: Session) -> list[Any]:
    return [message["content"] for message in session.window()]


def check_valid(messages: list[Message]) -> None:
    """What the strictest provider checks: every call has one result right behind it, and nothing else has."""
    open_calls: list[str | None] = []
    for message in messages:
        assert message["role"] in ("user", "assistant", "tool", "tool_result")
        ids = results_of(message)
        if ids is None:
            assert not open_calls, "a call without a result"
        else:
            for id in ids:
                assert id in open_calls, "a result without a call"
                open_calls.remove(id)
        if message["role"] == "assistant":
            assert has_payload(message)
            open_calls = [call.id for call in calls_of(message)]
    assert not open_calls


# Random logs.

STEPS = st.one_of(
    st.tuples(st.just("say"), st.sampled_from(sorted(SHAPES)), st.integers(0, 2)),
    st.tuples(st.just("say"), st.sampled_from(sorted(SHAPES)), st.just(0)),
    st.tuples(st.just("lose"), st.sampled_from(sorted(SHAPES)), st.integers(0, 9)),
    st.tuples(st.just("context"), st.sampled_from(["bootstrap", "generic", "notes"]), st.just(0)),
    st.tuples(st.just("ended"), st.sampled_from(["0", "1", "2a", "again"]), st.just(0)),
    st.tuples(st.just("trim"), st.just(""), st.integers(0, 6)),
    st.tuples(st.just("compact"), st.just(""), st.integers(0, 6)),
)


def play(session: Session, number: int, verb: str, what: str, count: int) -> None:
    if verb in ("say", "lose"):
        messages = SHAPES[what](str(count if verb == "say" else number))
        if verb == "lose" and messages:
            random.Random(count).shuffle(messages)
            messages = messages[1:]
        for message in messages:
            session.record(kinds.MESSAGE_ADDED, message)
    elif verb == "context":
        context(session, f"context {number}", kind=what)
    elif verb == "ended":
        ended(session, what, output="found")
    elif count < session.length:
        if verb == "trim":
            session.shrink("trim", session.view.window.trimmed(count))
        else:
            session.compact(Compaction(0, session.length - count, "summary", "truncate", 0, 0), None)


@settings(max_examples=COUNT.examples(20))
@given(st.lists(STEPS, max_size=12))
def test_a_window_is_always_valid_for_a_provider(steps: list[tuple[str, str, int]]) -> None:
    session = opened()
    for number, step in enumerate(steps):
        play(session, number, *step)
    messages = session.window()
    check_valid(messages)
    entries = session.entries()
    assert [entry.message for entry in entries] == messages
    prefix = [entry.is_prefix for entry in entries]
    assert prefix == sorted(prefix, reverse=True)
    assert opened(*messages).window() == messages


def same(message: Message) -> Message:
    return message


@given(st.lists(STEPS, max_size=12), st.lists(st.sampled_from(sorted(SHAPES)), max_size=3))
def test_what_a_request_sends_is_the_window(steps: list[tuple[str, str, int]], names: list[str]) -> None:
    session = opened()
    for number, step in enumerate(steps):
        play(session, number, *step)
        stable = session.stable(same)
        sent = list(map(known_to_all, stable.messages))
        assert sent == session.window() == [entry.message for entry in session.entries()]
        assert stable.messages == [entry.spoken for entry in session.entries()]
        news = [message for name in names for message in SHAPES[name](f"news {number}")]
        if stable.takes(news):
            assert opened(*session.window(), *news).window() == [*sent, *news]
    prefix = [entry.is_prefix for entry in session.entries()]
    assert session.stable(same).prefix == sum(prefix)


WHOLE = (
    "question", "answer", "turn", "call", "two calls", "result", "blocks", "many blocks", "same id again"
)  # fmt: skip


@given(st.lists(st.sampled_from(WHOLE), max_size=8))
def test_a_conversation_in_order_stays_as_it_is(names: list[str]) -> None:
    messages = [message for n, name in enumerate(names) for message in SHAPES[name](str(n))]
    messages = [message for message in messages if message["role"] != "system"]
    session = opened(*messages)
    shown = session.window()
    assert len(shown) == len(messages)
    for message in shown:
        assert any(message is given_ for given_ in messages)


# One by one.


def test_a_call_that_ended_without_a_message_shows_what_the_log_knows() -> None:
    session = opened(calling("a", "b"))
    ended(session, "a", output="found", error="late")
    ended(session, "b", output="gone: late", error="late")
    assert session.window() == [
        calling("a", "b"),
        {"role": "tool", "tool_call_id": "a", "content": "found\nError: late"},
        {"role": "tool", "tool_call_id": "b", "content": "gone: late"},
    ]


def test_a_result_takes_the_shape_of_its_call() -> None:
    session = opened(uses("a"))
    ended(session, "a", output="found")
    block = {"type": "tool_result", "tool_use_id": "a", "content": "found"}
    assert session.window()[1] == {"role": "user", "content": [block]}


def test_a_call_that_nobody_answered_is_gone() -> None:
    session = opened(said("user", "go"), calling("a", content="let me see"), said("user", "well?"))
    assert texts(session) == ["go", "let me see", "well?"]
    assert "tool_calls" not in session.window()[1]
    assert opened(said("user", "go"), calling("a")).window() == [said("user", "go")]


def test_an_id_used_again_gets_no_result_of_another_turn() -> None:
    session = opened(calling("a", content="first"), said("user", "next"))
    session.record(kinds.MESSAGE_ADDED, calling("a", content="second"))
    ended(session, "a", output="of the second")
    assert texts(session) == ["first", "next", "second", "of the second"]


def test_a_message_injected_while_a_tool_runs_hides_no_result() -> None:
    session = opened()
    turn = session.record(kinds.TURN_STARTED, {"agent_id": "a"})
    session.record(kinds.STEP_STARTED, {"agent_id": "a"}, turn)
    session.record(kinds.MESSAGE_ADDED, calling("a"), turn)
    session.record(kinds.MESSAGE_ADDED, said("user", "injected"))
    ended(session, "a", turn, output="found")
    assert texts(session) == [None, "found", "injected"]


def test_results_without_ids_pair_by_position() -> None:
    first, second = {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}
    shown = opened(calling("a", "b"), first, second).window()
    assert [message.get("tool_call_id") for message in shown] == [None, "a", "b"]
    assert [message["content"] for message in shown[1:]] == ["1", "2"]


def test_blocks_that_answer_nothing_are_dropped() -> None:
    assert opened(uses("a"), results("a", "x")).window() == [uses("a"), results("a")]
    assert opened(said("user", "u"), results("x")).window() == [said("user", "u")]


def test_the_roles_of_a_system_become_the_users() -> None:
    message = {"role": "developer", "content": "be kind", "cache_control": {"type": "ephemeral"}}
    assert opened(message, said("critic", "no")).window() == [said("user", "be kind")]


def test_an_assistant_that_says_nothing_is_gone() -> None:
    blank = [said("assistant", " "), said("assistant", []), said("assistant", None, reasoning="\n")]
    assert opened(*blank, said("assistant", None, reasoning="hm")).window() == [
        said("assistant", None, reasoning="hm")
    ]


def test_context_of_the_prefix_comes_first_and_survives_cuts() -> None:
    session = opened(said("user", "a"))
    context(session, "kit", kind="bootstrap")
    context(session, "here")
    context(session, "before all", kind="notes", placement="prefix")
    session.record(kinds.MESSAGE_ADDED, said("user", "b"))
    assert texts(session) == ["kit", "before all", "a", "here", "b"]
    assert session.length == 2
    session.shrink("trim", session.view.window.trimmed(1))
    assert texts(session) == ["kit", "before all", "b"]


def test_context_comes_between_no_call_and_its_result() -> None:
    session = opened()
    turn = session.record(kinds.TURN_STARTED, {"agent_id": "a"})
    session.record(kinds.STEP_STARTED, {"agent_id": "a"}, turn)
    session.record(kinds.MESSAGE_ADDED, calling("a"), turn)
    context(session, "here")
    session.record(kinds.MESSAGE_ADDED, tool("a"), turn)
    assert texts(session) == [None, "done", "here"]


def test_entries_say_where_they_come_from() -> None:
    session = opened(said("user", "a"), calling("x"))
    started = {"tool": "read", "id": "x", "args": '{"path":"/x"}', "idempotency_key": "k"}
    session.record(kinds.TOOL_STARTED, started)
    ended(session, "x", error="no such file", idempotency_key="k")
    session.write(EventDraft(kinds.MESSAGE_ADDED, tool("x", "Error: no such file")))
    shown = [entry.shown() for entry in session.entries()]
    assert shown[0] == {
        "event_id": session.event(2).id,
        "event_type": "message_added",
        "message": said("user", "a"),
    }
    assert shown[2]["tool"] == {
        "id": "x",
        "name": "read",
        "args": '{"path":"/x"}',
        "idempotency_key": "k",
        "is_error": True,
        "error": "no such file",
    }


def test_a_summary_is_context_of_the_prefix() -> None:
    session = opened(said("user", "a"), said("user", "b"), said("user", "c"))
    session.compact(Compaction(0, 2, "told short", "truncate", 0, 0), None)
    assert [message["content"] for message in session.messages()] == ["told short", "c"]
    first = session.entries()[0]
    assert (first.context_kind, first.placement, first.message["content"]) == (
        "summary",
        "prefix",
        "told short",
    )


def test_a_summary_behind_messages_that_were_kept_stays_there() -> None:
    session = opened(said("user", "a"), said("user", "b"), said("user", "c"))
    session.compact(Compaction(1, 2, "told short", "truncate", 0, 0), None)
    assert texts(session) == ["a", "told short", "c"]
    assert [(entry.context_kind, entry.placement) for entry in session.entries()][1] == ("summary", "history")


@pytest.mark.parametrize(
    ("read", "modified", "text"),
    [
        ([], [], None),
        (
            ["a.txt", "b.txt", "a.txt"],
            ["b.txt"],
            "<working_set>\nModified files:\n- b.txt\nRead-only files:\n- a.txt\n</working_set>",
        ),
        (["z", "y"], [], "<working_set>\nRead-only files:\n- y\n- z\n</working_set>"),
        (list("gfedcba"), [], "<working_set>\nRead-only files:\n- a\n- b\n- c\n- d\n- e\n</working_set>"),
    ],
)
def test_the_working_set(read: list[str], modified: list[str], text: str | None) -> None:
    assert working_set(read, modified) == text


def test_plain_messages_that_were_interrupted_are_made_anew() -> None:
    session = opened(said("user", "a"), said("user", "b"), said("user", [{"type": "text", "text": "c"}]))
    window = session.view.window

    def interrupt(items: int) -> None:
        raise Interruption("deadline")

    token = LOOK.set(interrupt)
    try:
        with pytest.raises(Interruption):
            window.plain()
    finally:
        LOOK.reset(token)
    messages, events = window.plain()
    assert [message["content"] for message in messages[:2]] == ["a", "b"]
    assert (len(messages), len(events)) == (3, 3)
