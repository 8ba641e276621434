"""Rule h: one step back. Turns are taken back and brought back, on every store; pinned messages outlive every
cut but a reset that stands.

Random turns, cuts, pins, forks and moves are held against lists. Spec: 10 §C5, §C12.1 h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harnpy.session import Event, RewindError, Session, SessionBusy, SessionConflict
from harnpy.session import events as kinds
from harnpy.session.compaction import Compaction
from harnpy.session.history import move_leaf, set_history
from harnpy.session.log import KIND
from harnpy.session.rewind import ENDS_REDO, leaf_of
from harnpy.session.stored import StoredSession
from harnpy.session.view import replay
from harnpy.session.window import Window
from harnpy.storage import Store
from harnpy.storage.memory import MemoryStore
from harnpy.world import World
from tests.counts import COUNT
from tests.session.shapes import said
from tests.storage.conftest import STORES

SUMMARY = "short"

OTHERS = pytest.mark.parametrize("url", [name for name in STORES if name != "memory"], indirect=True)


def begin(store: Store, id: str = "s") -> Session:
    """A new session on the store."""
    store.delete(KIND, id)
    if isinstance(store, MemoryStore):
        return Session.create(id, store, World())
    return StoredSession.begin(id, store, World())


def reopened(session: Session) -> Session:
    """The session as another process finds it; one in memory has none."""
    if not isinstance(session, StoredSession):
        return session
    loaded = StoredSession.load(session.id, session.store, World())
    assert loaded is not None
    return loaded


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages]


# The model.


@dataclass(frozen=True)
class State:
    """What a conversation shows: its window, all that was said, the state before each turn, and how often
    the pins had been set when it was last reset."""

    window: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    before: tuple[State, ...] = ()
    unpinned: int = 0

    def say(self, *said: str) -> State:
        return replace(self, window=self.window + said, history=self.history + said)

    def compact(self, keep: int) -> State:
        kept = self.window[len(self.window) - keep :]
        return replace(self, window=(SUMMARY, *kept)) if keep < len(self.window) else self


@dataclass
class Conversation:
    """A session, and what it should show."""

    session: Session
    now: State = field(default_factory=State)
    undone: list[State] = field(default_factory=list)
    #: What it showed behind some event, by the number of that.
    marks: list[tuple[int, State]] = field(default_factory=list)
    #: The pins as they were set, one after the other. A reset ends them for as long as it isn't taken back.
    set_pins: list[frozenset[str]] = field(default_factory=lambda: [frozenset()])
    number: int = 0

    @property
    def pins(self) -> frozenset[str]:
        return self.set_pins[-1] if len(self.set_pins) > self.now.unpinned else frozenset()

    def shown(self) -> list[str]:
        window = self.now.window
        out = [text for text in self.now.history if text in self.pins and text not in window]
        summaries = [text for text in window if text == SUMMARY]
        return [*summaries, *out, *(text for text in window if text != SUMMARY)]

    def goes_on(self, state: State) -> None:
        self.now, self.undone = state, []

    def take(self, verb: str, *arguments: Any) -> None:
        """Do one step; a later one may move back to before it."""
        self.marks.append((self.session.version, self.now))
        getattr(self, verb)(*arguments)

    # One step each.

    def turn(self, count: int) -> None:
        """A turn that says so much. After the first message of a long one the conversation is compacted."""
        session, now = self.session, self.now
        begun = session.record(kinds.TURN_STARTED, {"agent_id": "a"})
        for number in range(count):
            self._say(begun)
            if number == 2:
                self._compact(1)
        session.record(kinds.TURN_COMPLETED, {"agent_id": "a", "turn_stop_reason": "completed"}, begun)
        self.goes_on(replace(self.now, before=(*now.before, now)))

    def two_turns(self) -> None:
        """Two turns at once. What a turn says stands together."""
        session, first = self.session, self.now
        turns = [session.record(kinds.TURN_STARTED, {"agent_id": "a"})]
        self._say(turns[0])
        second = replace(self.now, before=(*first.before, first))
        turns.append(session.record(kinds.TURN_STARTED, {"agent_id": "a"}))
        for turn in turns:
            self._say(turn)
        for turn in turns:
            session.record(kinds.TURN_COMPLETED, {"agent_id": "a", "turn_stop_reason": "completed"}, turn)
        self.goes_on(replace(self.now, before=(*second.before, second)))

    def say(self) -> None:
        self._say(None)

    def note(self) -> None:
        self.session.record(kinds.TRANSCRIPT_EVENT, {"kind": "note"})

    def register(self, value: int) -> None:
        self.session.set("scratchpad", value)

    def trim(self, keep: int) -> None:
        self.session.trim(keep)
        if keep < len(self.now.window):
            self.goes_on(replace(self.now, window=self.now.window[len(self.now.window) - keep :]))

    def compact(self, keep: int) -> None:
        self._compact(keep)

    def reset(self) -> None:
        self._reset(lambda: self.session.replace("reset", Window()))

    def set_history(self) -> None:
        self._reset(lambda: set_history(self.session, []))

    def _reset(self, act: Callable[[], object]) -> None:
        act()
        self.goes_on(replace(self.now, window=(), history=(), unpinned=len(self.set_pins)))

    def pin(self, number: int) -> None:
        self._choose(number, "pin", frozenset.union)

    def unpin(self, number: int) -> None:
        self._choose(number, "unpin", frozenset.difference)

    def rewind(self, turns: int) -> None:
        now = self.now
        if turns > len(now.before):
            with pytest.raises(RewindError, match="cannot take back"):
                self.session.rewind(turns)
            return
        former = now.before[-turns]
        assert self._without_summaries(texts(self.session.rewind(turns))) == self._gone(now, former)
        self.undone.append(now)
        self.now = former

    def redo(self) -> None:
        if not self.undone:
            with pytest.raises(RewindError, match="nothing to redo"):
                self.session.redo()
            return
        former, self.now = self.now, self.undone.pop()
        assert self._without_summaries(texts(self.session.redo())) == self._gone(self.now, former)

    def move(self, back: int) -> None:
        """Go on behind what was the last event some steps ago, be it behind a cut or before one."""
        seq, state = self.marks[-min(back + 1, len(self.marks))]
        if seq != leaf_of(self.session.stream):  # which cannot be moved to
            move_leaf(self.session, self.session.event(seq).id)
            self.goes_on(state)

    def fork(self) -> None:
        """Go on with a fork."""
        self.number += 1
        store: Any = getattr(self.session, "store", None) or self.session.stream.store  # type: ignore[attr-defined]
        self.session = self.session.fork(f"fork {self.number}", store)

    def reopen(self) -> None:
        self.session = reopened(self.session)

    def _say(self, turn: Event | None) -> None:
        self.number += 1
        text = f"<{self.number}>"
        self.session.record(kinds.MESSAGE_ADDED, said("user", text), turn)
        self.goes_on(self.now.say(text))

    def _compact(self, keep: int) -> None:
        length = self.session.length
        if keep < length:
            self.session.compact(Compaction(0, length - keep, SUMMARY, "truncate", 0, 0), None)
            self.goes_on(self.now.compact(keep))

    def _choose(self, number: int, verb: str, change: Callable[..., frozenset[str]]) -> None:
        entries = self.session.view.window.history()
        if number < len(entries):
            text = entries[number].body["content"]
            id = self.session.origin.own(entries[number]).id
            pins = change(self.pins, {text})
            assert getattr(self.session, verb)(id) == (pins != self.pins)
            if pins != self.pins:
                self.set_pins.append(pins)

    @staticmethod
    def _gone(now: State, then: State) -> list[str]:
        return [text for text in now.window if text not in then.window and text != SUMMARY]

    @staticmethod
    def _without_summaries(texts: list[str]) -> list[str]:
        return [text for text in texts if text != SUMMARY]

    def check(self, session: Session) -> None:
        assert texts(session.messages()) == list(self.now.window)
        assert texts(session.history()) == list(self.now.history)
        assert texts(session.window()) == self.shown()
        assert bool(session.view.rewound.leaves) >= bool(self.undone)


FEW = st.integers(0, 4)
TURN = st.tuples(st.just("turn"), st.integers(1, 4))
REWIND = st.tuples(st.just("rewind"), st.integers(1, 3))
STEPS = st.one_of(
    TURN,
    TURN,
    REWIND,
    REWIND,
    *(st.tuples(st.just(name), FEW) for name in ("register", "trim", "compact", "pin", "unpin", "move")),
    *(
        st.tuples(st.just(name))
        for name in ("two_turns", "say", "note", "reset", "set_history", "redo", "redo", "fork", "reopen")
    ),
)


@settings(
    max_examples=COUNT.examples(20),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(STEPS, max_size=25))
@example(steps=[("say",), ("pin", 0), ("trim", 0), ("set_history",), ("move", 0)])
def test_h_one_step_back(store: Store, steps: list[tuple[Any, ...]]) -> None:
    talk = Conversation(begin(store))
    sessions = {"s"}
    try:
        for verb, *arguments in steps:
            talk.take(verb, *arguments)
            sessions.add(talk.session.id)
            talk.check(talk.session)
        there = reopened(talk.session)
        talk.check(there)
        view = replay(there.events())
        assert view.transcript("s") == talk.session.view.transcript("s") == there.view.transcript("s")
        assert view.registers == talk.session.view.registers
        assert (view.pins, view.rewound.leaves) == (there.view.pins, there.view.rewound.leaves)
    finally:
        for id in sessions:
            store.delete(KIND, id)


# What ends a redo.


def add_turn(session: Session) -> None:
    turn = session.record(kinds.TURN_STARTED, {"agent_id": "a"})
    with pytest.raises(SessionBusy):
        session.redo()
    session.record(kinds.TURN_COMPLETED, {"agent_id": "a", "turn_stop_reason": "completed"}, turn)


ENDING: dict[str, Callable[[Session], object]] = {
    kinds.MESSAGE_ADDED: lambda session: session.add_history(said("user", "b")),
    kinds.CONTEXT_ADDED: lambda session: session.record(kinds.CONTEXT_ADDED, {"content": "c"}),
    kinds.BRANCH_SUMMARY: lambda session: session.record(kinds.BRANCH_SUMMARY, {"summary": "c"}),
    kinds.HISTORY_REPLACED: Session.reset,
    kinds.COMPACTION_TRIGGERED: Session.clean_window,
    kinds.TURN_STARTED: add_turn,
}
NOT_ENDING: dict[str, Callable[[Session], object]] = {
    kinds.REGISTER_SET: lambda session: session.set("model", "large"),
    kinds.STATUS_CHANGED: lambda session: session.set_status("suspended"),
    kinds.TRANSCRIPT_EVENT: lambda session: session.record(kinds.TRANSCRIPT_EVENT, {"kind": "note"}),
}


def rewound(store: Store) -> Session:
    """A session whose last turn was taken back."""
    talk = Conversation(begin(store))
    talk.say()
    talk.turn(2)
    assert texts(talk.session.rewind()) == ["<2>", "<3>"]
    return talk.session


def test_all_that_ends_a_redo_is_tested() -> None:
    assert set(ENDING) == ENDS_REDO


@pytest.mark.parametrize("type", ENDING)
def test_h_nothing_can_be_redone_after(type: str, store: Store) -> None:
    session = rewound(store)
    ENDING[type](session)
    for same in (session, reopened(session)):
        with pytest.raises(RewindError, match="session 's' has nothing to redo"):
            same.redo()


@pytest.mark.parametrize("type", NOT_ENDING)
def test_h_a_rewind_can_still_be_undone_after(type: str, store: Store) -> None:
    session = rewound(store)
    NOT_ENDING[type](session)
    assert texts(reopened(session).redo()) == ["<2>", "<3>"]
    session.refresh()
    assert texts(session.messages()) == ["<1>", "<2>", "<3>"]


@OTHERS
def test_h_what_another_process_has_added_is_taken_back_by_nobody_who_has_not_seen_it(store: Store) -> None:
    session = rewound(store)
    reopened(session).add_history(said("user", "new"))
    for move in (session.redo, session.rewind):
        with pytest.raises((SessionConflict, RewindError)):
            move()
    session.refresh()
    assert texts(session.messages()) == ["<1>", "new"]
    with pytest.raises(RewindError):
        session.redo()
