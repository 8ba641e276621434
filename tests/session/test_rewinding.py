"""One step back: turns are taken back and brought back; pinned messages outlive every cut but a reset that
stands.

One by one; the rule itself is in `rules/test_h_one_step_back`. Spec: 10 §C5.
"""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.session import Event, EventNotFound, InvalidArgument, Session, SessionBusy
from harnpy.session import events as kinds
from harnpy.session.compaction import Compaction
from harnpy.session.turns import end_open_turns
from harnpy.session.window import Window
from harnpy.storage.memory import MemoryStore
from harnpy.world import World
from tests.llm.wire import OPENAI
from tests.session.rules.provider_rules import assert_accepted
from tests.session.shapes import calling, said, tool


def opened() -> Session:
    return Session.create("s", MemoryStore(), World())


def say(session: Session, text: str, turn: Event | None = None) -> Event:
    return session.record(kinds.MESSAGE_ADDED, said("user", text), turn)


def turn_of(session: Session, *texts: str) -> None:
    turn = session.record(kinds.TURN_STARTED, {"agent_id": "a"})
    for text in texts:
        say(session, text, turn)
    session.record(kinds.TURN_COMPLETED, {"agent_id": "a", "turn_stop_reason": "completed"}, turn)


def compact(session: Session, keep: int) -> None:
    session.compact(Compaction(0, session.length - keep, "short", "truncate", 0, 0), None)


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages]


def test_branch_registers_go_back_and_the_sessions_stay() -> None:
    session = opened()
    session.set("model", "small")
    turn_of(session, "a")
    session.set("model", "large")
    session.set("scratchpad", {"k": 1})
    session.rewind()
    assert session.view.register("model") == "small"
    assert session.view.register("scratchpad") == {"k": 1}
    session.redo()
    assert session.view.register("model") == "large"


def test_the_log_says_where_the_conversation_goes_on() -> None:
    session = opened()
    say(session, "a")
    turn_of(session, "b")
    assert texts(session.rewind()) == ["b"]
    moved = session.events()[-1]
    assert (moved.type, moved.data) == (
        "leaf_moved",
        {"target_event_id": session.event(2).id, "reason": "rewind"},
    )
    assert moved.stored() == {"target_seq": 2, "reason": "rewind"}
    assert texts(session.redo()) == ["b"]


def test_an_open_turn_is_in_the_way() -> None:
    session = opened()
    turn_of(session, "a")
    session.record(kinds.TURN_STARTED, {"agent_id": "a"})
    with pytest.raises(SessionBusy, match="session 's' is busy: a turn is open"):
        session.rewind()
    with pytest.raises(SessionBusy):
        session.redo()
    fork = session.fork("t", session.stream.store)  # type: ignore[attr-defined]
    assert texts(fork.rewind(2)) == ["a"]


def test_a_turn_whose_end_was_taken_back_is_in_nobodys_way() -> None:
    session = opened()
    first = session.record(kinds.TURN_STARTED, {"agent_id": "a"})
    session.record(kinds.MESSAGE_ADDED, calling("x"), first)
    second = session.record(kinds.TURN_STARTED, {"agent_id": "a"})
    session.record(kinds.MESSAGE_ADDED, tool("x"), first)
    for turn in (first, second):
        session.record(kinds.TURN_COMPLETED, {"agent_id": "a", "turn_stop_reason": "completed"}, turn)
    assert session.rewind() == session.redo() == [tool("x")]
    session.rewind()
    end_open_turns(session)
    assert_accepted([said("user", "go"), *session.messages()], OPENAI)


@pytest.mark.parametrize("turns", [0, -1, True, "1", None])
def test_turns_are_counted(turns: Any) -> None:
    with pytest.raises(InvalidArgument, match="`turns` must be an int >= 1"):
        opened().rewind(turns)


def test_a_pin_brings_what_belongs_together() -> None:
    session = opened()
    for message in (said("user", "go"), calling("x"), tool("x"), said("assistant", "done")):
        session.record(kinds.MESSAGE_ADDED, message)
    assert session.pin(session.event(4).id)
    assert not session.pin(session.event(4).id)
    compact(session, 1)
    assert session.window() == [said("user", "short"), calling("x"), tool("x"), said("assistant", "done")]
    assert session.length == 2
    assert session.unpin(session.event(4).id)
    assert session.window() == session.messages()


def test_only_messages_of_the_history_can_be_pinned() -> None:
    session = opened()
    said_first = say(session, "a")
    with pytest.raises(EventNotFound, match="Event not found in session 's': '"):
        session.pin(session.event(1).id)
    session.replace("reset", Window())
    with pytest.raises(EventNotFound):
        session.pin(said_first.id)
    assert not session.unpin(said_first.id)


def test_a_reset_that_is_taken_back_has_ended_no_pins() -> None:
    session = opened()
    first = say(session, "a")
    session.pin(first.id)
    session.trim(0)
    turn_of(session, "b")
    session.replace("reset", Window())
    assert session.window() == []
    session.rewind()
    assert texts(session.window()) == ["a"]
    session.redo()
    assert session.window() == []


def test_a_fork_onto_a_session_brings_no_pins_and_a_rewind_behind_it_finds_those_of_before() -> None:
    session, other = opened(), Session.create("t", MemoryStore(), World())
    first = say(session, "a")
    for text in "xyz":
        other.pin(say(other, text).id)
    session.pin(first.id)
    session.trim(0)
    turn_of(session, "b")
    session.become_fork_of(other, other.view)
    assert texts(session.window()) == ["x", "y", "z"]
    assert session.get("pins") is None
    session.trim(0)
    assert session.window() == []
    session.move_leaf(session.event(4).id)
    assert texts(session.window()) == ["a"]


def test_parents_lead_along_the_branch() -> None:
    """Also behind a move to another move: the event before a turn may be one."""
    session = opened()
    say(session, "a")
    for text in "bc":
        turn_of(session, text)
        session.rewind()
    say(session, "d")
    events = {event.id: event for event in session.events()}
    at, line = session.leaf_id, []
    while at is not None:
        line.append(at)
        at = events[at].parent_id
    assert line[::-1] == [event.id for event in session.events(branch=True)]
    assert len(line) == 3
