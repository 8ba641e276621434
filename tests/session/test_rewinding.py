"""One step back: turns are taken back and brought back; pinned messages outlive every cut but a reset.

Spec: 10 §C5, rule h of §C12.1.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.session import Event, EventNotFound, InvalidArgument, RewindError, Session, SessionBusy
from harnpy.session import events as kinds
from harnpy.session.events import Payload
from harnpy.session.payloads import restored_payload
from harnpy.session.resize.resize_policy import Compaction
from harnpy.session.views import replay
from harnpy.session.window import Window
from harnpy.storage.memory import MemoryStore
from harnpy.world import World
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
    session.resize(Compaction(0, session.length - keep, "short", "truncate", 0, 0), None)


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages]


def reread(event: Event) -> Event:
    """Return the event as a store would give it back."""
    if not isinstance(event.payload, Payload):
        return event
    again = copy.copy(event)
    stored = json.loads(json.dumps(event.stored()))
    again.payload = restored_payload(event.type, stored, event.owner)
    return again


# The model.


@dataclass(frozen=True)
class State:
    """What a conversation shows: its window, all that was said, and the state before each turn."""

    window: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    before: tuple[State, ...] = ()

    def say(self, *said: str) -> State:
        return replace(self, window=self.window + said, history=self.history + said)


@dataclass
class Conversation:
    now: State = field(default_factory=State)
    undone: list[State] = field(default_factory=list)
    pins: set[str] = field(default_factory=set)

    def goes_on(self, state: State) -> None:
        self.now, self.undone = state, []

    def shown(self) -> list[str]:
        out = [text for text in self.now.history if text in self.pins and text not in self.now.window]
        summary = [text for text in self.now.window if text == "short"]
        return [*summary, *out, *(text for text in self.now.window if text != "short")]


COUNTS = st.integers(0, 4)
STEPS = st.one_of(
    st.tuples(st.just("turn"), st.integers(1, 3)),
    st.tuples(st.just("turn"), st.integers(1, 3)),
    st.tuples(st.just("say"), st.just(0)),
    st.tuples(st.just("note"), st.just(0)),
    st.tuples(st.just("register"), COUNTS),
    st.tuples(st.just("trim"), COUNTS),
    st.tuples(st.just("compact"), COUNTS),
    st.tuples(st.just("reset"), st.just(0)),
    st.tuples(st.just("pin"), COUNTS),
    st.tuples(st.just("unpin"), COUNTS),
    st.tuples(st.just("rewind"), st.integers(1, 3)),
    st.tuples(st.just("rewind"), st.integers(1, 3)),
    st.tuples(st.just("redo"), st.just(0)),
    st.tuples(st.just("fork"), st.just(0)),
)


def play(session: Session, model: Conversation, number: int, verb: str, count: int) -> Session:
    now = model.now
    if verb == "turn":
        words = [f"{number}.{i}" for i in range(count)]
        turn_of(session, *words)
        model.goes_on(replace(now.say(*words), before=(*now.before, now)))
    elif verb == "say":
        say(session, str(number))
        model.goes_on(now.say(str(number)))
    elif verb == "note":
        session.record(kinds.TRANSCRIPT_EVENT, {"kind": "note"})
    elif verb == "register":
        session.set("scratchpad", count)
    elif verb == "trim" and count < session.length:
        session.shrink("trim", session.view.window.trimmed(count))
        model.goes_on(replace(now, window=now.window[len(now.window) - count :]))
    elif verb == "compact" and count < session.length:
        compact(session, count)
        model.goes_on(replace(now, window=("short", *now.window[len(now.window) - count :])))
    elif verb == "reset":
        session.replace("reset", Window())
        model.pins.clear()
        model.goes_on(replace(now, window=(), history=()))
    elif verb in ("pin", "unpin"):
        choose(session, model, verb, count)
    elif verb == "rewind":
        rewind(session, model, count)
    elif verb == "redo":
        redo(session, model)
    elif verb == "fork":
        return session.fork(f"fork {number}", session.stream.store)  # type: ignore[attr-defined]
    return session


def choose(session: Session, model: Conversation, verb: str, count: int) -> None:
    entries = session.view.window.history()
    if count >= len(entries):
        return
    text, id = entries[count].payload["content"], session.origin.own(entries[count]).id
    assert getattr(session, verb)(id) == ((text in model.pins) == (verb == "unpin"))
    (model.pins.add if verb == "pin" else model.pins.discard)(text)


def rewind(session: Session, model: Conversation, count: int) -> None:
    now = model.now
    if count > len(now.before):
        with pytest.raises(RewindError, match="cannot take back"):
            session.rewind(count)
        return
    former = now.before[-count]
    left = session.rewind(count)
    assert [text for text in texts(left) if text != "short"] == [
        text for text in now.window if text not in former.window and text != "short"
    ]
    model.undone.append(now)
    model.now = former


def redo(session: Session, model: Conversation) -> None:
    if not model.undone:
        with pytest.raises(RewindError, match="nothing to redo"):
            session.redo()
        return
    former, model.now = model.now, model.undone.pop()
    assert [text for text in texts(session.redo()) if text != "short"] == [
        text for text in model.now.window if text not in former.window and text != "short"
    ]


@settings(max_examples=200)
@given(st.lists(STEPS, max_size=25))
def test_h_one_step_back(steps: list[tuple[str, int]]) -> None:
    session, model = opened(), Conversation()
    for number, step in enumerate(steps):
        session = play(session, model, number, *step)
        assert texts(session.messages()) == list(model.now.window)
        assert texts(session.history()) == list(model.now.history)
        assert texts(session.window()) == model.shown()
    again = replay(map(reread, session.events()))
    assert again.transcript("s") == session.view.transcript("s")
    assert again.registers == session.view.registers
    assert (again.pins, again.rewound.leaves) == (session.view.pins, session.view.rewound.leaves)


# One by one.


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
