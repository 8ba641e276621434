"""Sessions rebuilt from streams of events (10 §A1.6)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.session import Event, Replayer, Session, drafts, encode_event, replay, turn
from harnpy.session.errors import TransferError
from tests.counts import COUNT

EXAMPLES = COUNT.examples(12)
STEPS = ("say", "answer", "turn", "trim", "reset", "set", "memo", "rewind", "move", "context", "compact")


def shown(session: Session) -> tuple[Any, ...]:
    facts = session.memo, session.execution_status, [turn[:6] for turn in session.turns()], session.leaf_id
    return session.messages(), session.window(), session.history(), facts


def do(session: Session, step: str, number: int) -> None:
    match step:
        case "say":
            session.append_user(f"said {number}")
        case "answer":
            session.append_message({"role": "assistant", "content": f"answer {number}"})
        case "turn":
            with turn(f"t{number}"):
                session.append(drafts.turn_started("bot"))
                session.append_user("in a turn")
                session.append(drafts.turn_completed("bot", turn_stop_reason="completed"))
        case "trim":
            session.trim(2)
        case "reset":
            session.reset()
        case "set":
            session.set_history([{"content": "new"}, {"content": "history"}])
        case "memo":
            session.set_memo(number)
        case "rewind":
            if session.view.turns.items():
                session.rewind()
        case "move":
            target = session.events()[len(session.events()) // 2 - 1].id
            if target != session.leaf_id:
                session.move_leaf(target, f"left {number}")
        case "context":
            session.append_context("rule", kind="harness")
        case "compact":
            session.append(
                drafts.compaction_triggered(
                    "x", cutoff_event_id=session.leaf_id, messages=session.messages()[-1:]
                )
            )


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.sampled_from(STEPS), max_size=14))
def test_a_replayed_session_is_the_session(steps: list[str]) -> None:
    session = Session("s")
    session.append_user("first")
    for number, step in enumerate(steps):
        do(session, step, number)
    again = replay(session.events())
    assert shown(again) == shown(session)
    assert [encode_event(event) for event in again.events()] == [encode_event(e) for e in session.events()]
    fork = session.fork("f")
    assert shown(replay(fork.events())) == shown(fork)
    if not {"set", "compact", "trim"} & {*steps}:  # what such a cut keeps isn't said by what is shown of it
        told = replay([encode_event(event) for event in session.events()])
        assert (told.messages(), told.window()) == (session.messages(), session.window())


def test_nothing_is_checked_and_a_reducer_goes_along() -> None:
    lines = [
        {"id": "b", "session_id": "old", "type": "message_added", "timestamp": "2026-01-05T09:30:00Z",
         "data": {"role": "system", "content": "obey"}},
        {"id": "c", "session_id": "old", "type": "message_added", "timestamp": "2026-01-05T09:30:01.5Z",
         "data": {"role": "tool", "content": "of no call"}, "parent_id": "b", "seq": 7},
    ]  # fmt: skip

    def add(state: dict[str, int], event: Event) -> dict[str, int]:
        return {"events": state.get("events", 0) + 1}

    session = replay(lines, add)
    assert (session.id, session.state, session.revision) == ("old", {"events": 3}, 0)
    assert session.messages() == [line["data"] for line in lines]
    assert session.window() == [{"role": "user", "content": "obey"}]
    session.append_user("goes on")
    assert session.state == {"events": 4}


def test_events_of_one_session_alone() -> None:
    other = Session("b")
    with pytest.raises(TransferError) as caught:
        replay(other.events(), session_id="a")
    assert str(caught.value) == 'replay: session id mismatch: session="a" event="b"'
    replayer = Replayer()
    replayer.apply(Session("a").events()[0])
    with pytest.raises(TransferError, match='session="a" event="b"'):
        replayer.apply(other.events()[0])
    assert replay([], session_id="new").id == "new"


@pytest.mark.parametrize("wrong", [
    "text", None, {"session_id": "s"}, {"session_id": "s", "type": "message_added"},
    {"session_id": "s", "type": "leaf_moved", "id": "x", "seq": 2},
    {"session_id": "s", "type": "session_created", "id": "x"},
])  # fmt: skip
def test_what_is_no_event(wrong: Any) -> None:
    with pytest.raises(TransferError, match=r"^replay: event 1 can't be read: "):
        replay([wrong])
    with pytest.raises(TransferError, match=r"^replay: event 2 can't be read: "):
        replay([*Session("s").events(), wrong]).events()
