"""The views of a session are the same live, reloaded, of a moment and in a fork. Spec: 10 §C5, §C12."""

from __future__ import annotations

from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.session import Session
from harnpy.session.stored import StoredSession
from harnpy.storage import Store
from harnpy.world import World
from tests.counts import COUNT
from tests.session.rules.test_h_one_step_back import STEPS, Conversation


def load(id: str, store: Store) -> StoredSession:
    session = StoredSession.load(id, store, World())
    assert session
    return session


def views(session: Session) -> dict[str, Any]:
    """Return everything that the views show, but ids of the session itself."""
    view = session.view
    transcript = {**view.transcript("s"), "metadata": None}
    return {
        "messages": session.messages(),
        "window": session.window(),
        "history": session.history(),
        "everything": session.history(include_reset=True),
        "transcript": transcript,
        "registers": dict(view.registers),
        "pins": view.pins,
        "turns": list(view.turns.items()),
        "undone": view.rewound.leaves,
    }


#: Those that stay with one object of the session.
WITHOUT_FORKS = STEPS.filter(lambda step: step[0] not in ("fork", "reopen"))
#: With snapshots between them, one at least behind every other cut.
WITH_SNAPSHOTS = st.one_of(WITHOUT_FORKS, WITHOUT_FORKS, st.tuples(st.just("snapshot")))


def test_views_are_equal_from_any_path(store: Store) -> None:
    numbers = count()

    @settings(max_examples=COUNT.examples(20), deadline=None)
    @given(st.lists(WITH_SNAPSHOTS, max_size=16))
    def check(steps: list[tuple[Any, ...]]) -> None:
        id = f"s{next(numbers)}"
        session = StoredSession.begin(id, store, World())
        talk = Conversation(session)
        before = session.seq, views(session)
        for number, (verb, *arguments) in enumerate(steps):
            if number == len(steps) // 2:
                before = session.seq, views(session)
            if verb == "snapshot":
                # A rewind may lead into a turn that ran beside another one.
                assert session.snapshot() or session.view.open_turns
            else:
                talk.take(verb, *arguments)
        live = views(session)
        assert views(load(id, store)) == live
        fork = session.fork(f"{id} fork")
        assert views(fork) == live
        assert views(load(fork.id, store)) == live
        early = session.fork(f"{id} early", at=before[0])
        assert views(early) == before[1]
        assert views(load(early.id, store)) == before[1]

    check()
