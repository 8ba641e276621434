"""Rule b: a compaction is an append. Whatever happens while one is being made, nothing that was said is lost,
and nothing that is gone comes back.

Random interleavings are held against lists. What a loop does is in `test_b_compactions_of_a_loop`.
Spec: 10 §C12.1 b.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harnpy.session import RewindError, Session, SessionError, SessionNotFound, SessionRegistry
from harnpy.session import events as kinds
from harnpy.session.events import Event
from harnpy.session.log import KIND
from harnpy.session.stored import StoredSession
from harnpy.session.view import replay
from harnpy.storage import Store
from harnpy.storage.memory import MemoryStore
from harnpy.world import World
from tests.counts import COUNT
from tests.session.shapes import said
from tests.storage.conftest import STORES

Step = tuple[Any, ...]

_SUMMARY = "[auto-compacted "


@dataclass(frozen=True)
class State:
    """What a conversation shows: its window, all that was said since the last reset, the state before each
    turn, and how often the pins had been set at that reset."""

    window: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    before: tuple[State, ...] = ()
    unpinned: int = 0

    def say(self, *said: str) -> State:
        return replace(self, window=self.window + said, history=self.history + said)


@dataclass
class Talk:
    """The model of one session: lists, and nothing that is ever appended to a log."""

    now: State = field(default_factory=State)
    undone: tuple[State, ...] = ()
    #: The pins as they were set, one after the other. A reset ends them for as long as it isn't taken back.
    set_pins: tuple[frozenset[str], ...] = (frozenset(),)
    #: All that was ever said.
    said: list[str] = field(default_factory=list)

    @property
    def pins(self) -> frozenset[str]:
        return self.set_pins[-1] if len(self.set_pins) > self.now.unpinned else frozenset()

    def goes_on(self, now: State) -> None:
        self.now, self.undone = now, ()

    def set(self, pins: frozenset[str]) -> None:
        if pins != self.pins:
            self.set_pins += (pins,)

    def copy(self) -> Talk:
        return replace(self, said=list(self.said))

    def shown(self) -> list[str]:
        """What a model gets: summaries, then pinned messages that are out of the window, then the rest."""
        window = self.now.window
        summaries = [text for text in window if text.startswith(_SUMMARY)]
        out = [text for text in self.now.history if text in self.pins and text not in window]
        return [*summaries, *out, *(text for text in window if text not in summaries)]


class Both:
    """A session, and what it should be. ``store`` None: in memory."""

    def __init__(self, store: Store | None) -> None:
        self.store = store
        self.registry = SessionRegistry()
        self.numbers = count()
        self.talk = Talk()
        self.forks: dict[str, Talk] = {}
        self.open()

    def open(self) -> None:
        self.registry.get_or_open("s", self.store or False)

    @property
    def session(self) -> Session:
        session = self.registry.session("s")
        assert session is not None
        return session

    def play(self, steps: list[Step]) -> None:
        for verb, *arguments in steps:
            getattr(self, verb)(*arguments)
            self.check("s", self.talk)

    # One step each.

    def say(self) -> None:
        text = self._new_text()
        self.registry.inject("s", said("user", text))
        self.talk.goes_on(self.talk.now.say(text))

    def say_elsewhere(self) -> None:
        """As another process does, if the store is one that others see."""
        text, session = self._new_text(), self.session
        if self.store is not None:
            loaded = StoredSession.load("s", self.store, World())
            assert loaded is not None
            session = loaded
        session.add_history(said("user", text))
        self.talk.goes_on(self.talk.now.say(text))

    def turn(self) -> None:
        session = self.session
        begun = session.record(kinds.TURN_STARTED, {"agent_id": "a"})
        texts = [self._new_text(), self._new_text()]
        for text in texts:
            session.record(kinds.MESSAGE_ADDED, said("user", text), begun)
        session.record(kinds.TURN_COMPLETED, {"agent_id": "a", "turn_stop_reason": "completed"}, begun)
        now = self.talk.now
        self.talk.goes_on(replace(now.say(*texts), before=(*now.before, now)))

    def trim(self, keep: int) -> None:
        self.registry.trim("s", keep)
        self._cut(keep)

    def clean(self) -> None:
        self.session.clean_window()
        self.talk.goes_on(replace(self.talk.now, window=()))

    def reset(self) -> None:
        self.registry.reset("s")
        now = self.talk.now
        self.talk.goes_on(replace(now, window=(), history=(), unpinned=len(self.talk.set_pins)))

    def pin(self, number: int) -> None:
        entries = self.session.view.window.history()
        if number < len(entries):
            entry = self.session.origin.own(entries[number])
            self.session.pin(entry.id)
            self.talk.set(self.talk.pins | {entry.body["content"]})

    def unpin(self, number: int) -> None:
        entries = self.session.view.window.history()
        if number < len(entries):
            entry = self.session.origin.own(entries[number])
            self.session.unpin(entry.id)
            self.talk.set(self.talk.pins - {entry.body["content"]})

    def rewind(self, turns: int) -> None:
        now = self.talk.now
        if turns > len(now.before):
            with pytest.raises(RewindError):
                self.session.rewind(turns)
            return
        self.session.rewind(turns)
        self.talk.undone += (now,)
        self.talk.now = now.before[-turns]

    def redo(self) -> None:
        if not self.talk.undone:
            with pytest.raises(RewindError):
                self.session.redo()
            return
        self.session.redo()
        self.talk.now, self.talk.undone = self.talk.undone[-1], self.talk.undone[:-1]

    def fork(self) -> None:
        id = self.registry.fork("s", f"fork {next(self.numbers)}")
        self.forks[id] = self.talk.copy()

    def reopen(self) -> None:
        """Close the session, and open it again: one in memory begins anew then."""
        self.registry.close("s")
        if self.store is None:
            self.talk = Talk()
        self.open()

    def compact(self, keep: int, meanwhile: list[Step]) -> None:
        """Compact; while the summary is being written, all of that happens."""
        before, opened = self.talk.now.window, self.registry.by_id["s"]
        split = len(before) - keep
        summary = f"{next(self.numbers)}: {'+'.join(before[: max(split, 0)])}"

        def write(archived: list[dict[str, Any]]) -> str:
            texts = [message["content"] for message in archived]
            assert texts == list(before[:split])
            self.play(meanwhile)
            return summary

        refused = False
        try:
            self.registry.compact("s", {"keep_last": keep, "custom_compactor": write})
        except SessionError as error:
            refused = isinstance(error, SessionNotFound) or "was cut by someone else" in str(error)
            if not refused:
                raise
        if split <= 0:
            return
        gone = self.registry.by_id.get("s") is not opened
        now = self.talk.now
        assert refused == (gone or now.window[:split] != before[:split])
        if not refused:
            shown = f"{_SUMMARY}{split} older messages]\n{summary}"
            self.talk.goes_on(replace(now, window=(shown, *now.window[split:])))

    def _cut(self, keep: int) -> None:
        now = self.talk.now
        if keep < len(now.window):
            self.talk.goes_on(replace(now, window=now.window[len(now.window) - keep :]))

    def _new_text(self) -> str:
        text = f"<{next(self.numbers)}>"
        self.talk.said.append(text)
        return text

    # What must be true.

    def check(self, id: str, talk: Talk) -> None:
        session = self.registry.session(id)
        assert session is not None
        check(session, talk)

    def check_all(self) -> None:
        """Check the session and its forks, as they live and as others find them."""
        for id, talk in (("s", self.talk), *self.forks.items()):
            self.check(id, talk)
            session = self.registry.session(id)
            assert session is not None
            written = [event for event in session.events() if event.type == kinds.MESSAGE_ADDED]
            assert texts_of(written) == talk.said
            assert replay(session.events()).transcript(id) == session.view.transcript(id)
            if self.store is not None:
                loaded = StoredSession.load(id, self.store, World())
                assert loaded is not None
                check(loaded, talk)

    def close(self) -> None:
        for id in self.registry.ids():
            session = self.registry.session(id)
            self.registry.discard(id)
            if isinstance(session, StoredSession):
                session.store.delete(KIND, id)


def check(session: Session, talk: Talk) -> None:
    assert texts(session.messages()) == list(talk.now.window)
    assert texts(session.history()) == list(talk.now.history)
    assert texts(session.history(include_reset=True)) == talk.said
    assert texts(session.window()) == talk.shown()


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages]


def texts_of(events: list[Event]) -> list[str]:
    return [event.body["content"] for event in events]


FEW = st.integers(0, 3)


def step(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.tuples(st.just(name), *arguments)


PLAIN = st.one_of(
    step("say"),
    step("say"),
    step("say_elsewhere"),
    step("turn"),
    step("turn"),
    step("trim", FEW),
    step("clean"),
    step("reset"),
    step("pin", FEW),
    step("unpin", FEW),
    step("rewind", st.integers(1, 2)),
    step("redo"),
    step("fork"),
    step("reopen"),
)
STEPS = st.recursive(PLAIN, lambda inner: step("compact", FEW, st.lists(inner, max_size=4)), max_leaves=8)


@pytest.fixture
def kept_on(store: Store) -> Store | None:
    """The store of the test; None for sessions in memory."""
    return None if isinstance(store, MemoryStore) else store


@settings(
    max_examples=COUNT.compactions,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(STEPS, min_size=3, max_size=14))
@example(steps=[("pin", 0), ("clean",), ("turn",), ("reset",), ("rewind", 1)])
def test_b_what_happens_while_a_compaction_is_made_is_neither_lost_nor_undone(
    kept_on: Store | None, steps: list[Step]
) -> None:
    both = Both(kept_on)
    try:
        both.play([("say",), ("turn",), ("say",)])
        both.play(steps)
        both.check_all()
    finally:
        both.close()


@pytest.mark.parametrize("url", [name for name in STORES if name != "memory"], indirect=True)
def test_b_pins_that_two_processes_set_both_hold(store: Store) -> None:
    one = StoredSession.begin("s", store, World())
    one.add_history([said("user", text) for text in "abc"])
    other = StoredSession.load("s", store, World())
    assert other is not None
    other.pin(other.event(2).id)
    one.pin(one.event(4).id)
    other.unpin(other.event(2).id)
    one.refresh()
    one.clean_window()
    assert texts(one.window()) == ["c"]
