"""The order of a window: what a turn appends in a step stands in one piece. Spec: 10 §C5."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.session import Event, EventDraft, Session
from harnpy.session import events as kinds
from harnpy.session.view import replay
from harnpy.storage.memory import MemoryStore
from harnpy.world import World
from tests.counts import COUNT


def opened() -> Session:
    return Session.create("s", MemoryStore(), World())


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def texts(session: Session) -> list[str]:
    return [message["content"] for message in session.messages()]


def say(session: Session, text: str, turn: Event | None = None) -> None:
    session.record(kinds.MESSAGE_ADDED, said(text), turn)


def step(session: Session, turn: Event, *feedback: str) -> None:
    drafts = [EventDraft(kinds.MESSAGE_ADDED, said(text), turn=turn) for text in feedback]
    session.write(*drafts, EventDraft(kinds.STEP_STARTED, {"agent_id": "a"}, turn=turn))


def started(session: Session) -> Event:
    return session.record(kinds.TURN_STARTED, {"agent_id": "a"})


def test_a_message_injected_into_a_step_stands_behind_the_whole_step() -> None:
    session = opened()
    turn = started(session)
    step(session, turn)
    say(session, "call", turn)
    say(session, "injected")
    say(session, "result", turn)
    assert texts(session) == ["call", "result", "injected"]
    step(session, turn)
    say(session, "answer", turn)
    assert texts(session) == ["call", "result", "injected", "answer"]


def test_feedback_that_is_appended_with_its_step_belongs_to_it() -> None:
    session = opened()
    turn = started(session)
    step(session, turn)
    say(session, "answer", turn)
    say(session, "injected")
    step(session, turn, "feedback")
    say(session, "another", turn)
    assert texts(session) == ["answer", "injected", "feedback", "another"]


def test_two_turns_at_once_keep_their_steps_apart() -> None:
    session = opened()
    one, two = started(session), started(session)
    step(session, one)
    step(session, two)
    for text in ("a", "b"):
        say(session, f"{text} of two", two)
        say(session, f"{text} of one", one)
    assert texts(session) == ["a of one", "b of one", "a of two", "b of two"]


def test_a_fork_and_its_parent_insert_on_their_own() -> None:
    session = opened()
    turn = started(session)
    step(session, turn)
    say(session, "call", turn)
    say(session, "injected")
    fork = session.fork("t", session.stream.store)  # type: ignore[attr-defined]
    say(session, "result", turn)
    say(fork, "later")
    assert texts(session) == ["call", "result", "injected"]
    assert texts(fork) == ["call", "injected", "later"]


@dataclass
class Order:
    """The order in the plainest words: a list of groups, each a list of messages."""

    groups: list[list[str]] = field(default_factory=list)
    open: dict[int, list[str]] = field(default_factory=dict)

    def begin(self, turn: int) -> None:
        self.open[turn] = []
        self.groups.append(self.open[turn])

    def add(self, text: str, turn: int | None) -> None:
        if turn in self.open:
            self.open[turn].append(text)
        else:
            self.groups.append([text])

    def trim(self, keep: int) -> None:
        excess = max(0, len(self.texts()) - keep)
        for group in self.groups:
            gone = min(excess, len(group))
            del group[:gone]
            excess -= gone

    def texts(self) -> list[str]:
        return [text for group in self.groups for text in group]


TURNS = st.integers(0, 2)
STEPS = st.one_of(
    st.tuples(st.just("inject")),
    st.tuples(st.just("say"), TURNS),
    st.tuples(st.just("say"), TURNS),
    st.tuples(st.just("step"), TURNS, st.integers(0, 2)),
    st.tuples(st.just("trim"), st.integers(0, 6)),
)


@settings(max_examples=COUNT.examples(20))
@given(st.lists(STEPS, max_size=25))
def test_groups_stand_in_the_order_of_their_first_events(steps: list[Any]) -> None:
    session, order = opened(), Order()
    turns = [started(session) for _ in range(3)]
    for number, (verb, *given_) in enumerate(steps):
        text = str(number)
        if verb == "inject":
            say(session, text)
            order.add(text, None)
        elif verb == "say" and given_[0] in order.open:
            say(session, text, turns[given_[0]])
            order.add(text, given_[0])
        elif verb == "step":
            turn, count = given_
            feedback = [f"{text}.{i}" for i in range(count)]
            step(session, turns[turn], *feedback)
            order.begin(turn)
            for line in feedback:
                order.add(line, turn)
        elif verb == "trim" and given_[0] < session.length:
            session.shrink("trim", session.view.window.trimmed(given_[0]))
            order.trim(given_[0])
        assert texts(session) == order.texts()
    again = replay(session.events())
    assert again.window.messages() == session.messages()
