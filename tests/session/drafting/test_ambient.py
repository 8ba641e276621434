"""What the code around an append adds to events (10 §A1.4 step 2, §B2)."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from harnpy.session import (
    EventDraft,
    Session,
    SessionRuntime,
    Txn,
    current_metadata,
    current_turn,
    drafts,
    ensure_turn,
    metadata,
    turn,
)
from harnpy.storage import Store


def test_the_event_wins_and_the_inner_block_wins() -> None:
    session = Session("s")
    draft = EventDraft("x", {}, {"a": 3})
    with metadata({"a": 1, "b": 1}, c=1), metadata(b=2):
        assert current_metadata() == {"a": 1, "b": 2, "c": 1}
        (event,) = session.append(draft)
        session.set_memo("m")
    assert event.metadata == {"a": 3, "b": 2, "c": 1}
    assert [event.metadata for event in session.events(after=2)] == [{"a": 1, "b": 2, "c": 1}]
    assert (draft.metadata, current_metadata()) == ({"a": 3}, {})


def test_a_turn_by_its_name(store: Store) -> None:
    with SessionRuntime(store) as runtime:
        session = runtime.create(id="s")
        with turn("t1"):
            session.append(drafts.turn_started("bot"))
            session.append(drafts.user("a"), drafts.message({"role": "assistant", "content": "b"}))
            with turn("t2"):
                (other,) = session.append(EventDraft("x"))
            assert session.execution_status == "in_progress"
            session.append(drafts.turn_completed("bot", 1, turn_stop_reason="completed"))
        assert [event.turn_id for event in session.events(after=1)] == ["t1", "t1", "t1", "t2", "t1"]
        assert (session.execution_status, session.view.open_turns, other.turn_id) == ("completed", {}, "t2")
        fork = session.fork("f")
        child = session.fork("c")
        assert runtime.evict("s")
        for known in (runtime.get("s"), fork, child):
            (told,) = known.turns()
            assert (told.id, told.status, told.messages) == ("t1", "completed", 2)
            assert [event.turn_id for event in known.events(after=1)] == ["t1", "t1", "t1", "t2", "t1"]
        assert runtime.get("s").rewind() == [
            {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
        ]  # fmt: skip


def test_an_end_that_names_no_turn_ends_the_open_one_that_began_last(store: Store) -> None:
    with SessionRuntime(store) as runtime:
        session = runtime.create(id="s")
        begins = session.append(drafts.turn_started("outer"), drafts.turn_started("inner"))
        assert session.revision == 1
        (inner,) = session.append(drafts.turn_completed("inner", 1, turn_stop_reason="completed"))
        assert list(session.view.open_turns) == [begins[0].seq]
        fork = session.fork("f")
        for ended in (session, fork):
            (outer,) = ended.append(drafts.turn_completed("outer", 1, turn_stop_reason="completed"))
            assert [event.turn_id for event in ended.read(begins[1].seq)] == [
                ended.event(begin.seq).id for begin in reversed(begins)
            ]
            assert ended.view.open_turns == {}
        assert (inner.turn, outer.turn) != (None, None)
        session.append(drafts.user("a"))
        one = (drafts.turn_started("bot"), drafts.user("b"), drafts.turn_completed("bot", 1))
        session.append(*one)
        (nothing_open,) = session.append(drafts.turn_completed("bot"))
        assert nothing_open.turn is None
        assert runtime.evict("s")
        known = runtime.get("s")
        assert [turn.status for turn in known.turns()] == ["completed", "completed", "stopped"]
        assert (known.revision, known.view.open_turns, known.is_waiting) == (6, {}, False)
        assert known.snapshot()
        assert known.rewind() == [{"role": "user", "content": "b"}]


def test_ensure_turn_keeps_the_one_that_is_there() -> None:
    assert current_turn() is None
    with ensure_turn() as outer, ensure_turn() as inner:
        assert outer == inner == current_turn()
    with turn("mine"), ensure_turn() as known:
        assert known == "mine"


@pytest.mark.parametrize("is_async", [False, True])
def test_it_holds_in_actions_and_tasks(is_async: bool) -> None:
    with SessionRuntime("memory:") as runtime:
        session = runtime.create(id="s")

        def write(session: Txn) -> Any:
            session.append(EventDraft("x"))

        async def write_later(session: Txn) -> None:
            await asyncio.sleep(0)
            session.append(EventDraft("x"))

        with metadata(by="desk"):
            runtime.execute("s", write_later if is_async else write)
        x, executed = session.events(after=1)
        assert (x.metadata, executed.metadata) == ({"by": "desk"}, {"by": "desk"})


def test_other_threads_know_nothing_of_it() -> None:
    session = Session("s")
    with metadata(a=1):
        thread = threading.Thread(target=lambda: session.append(EventDraft("x")))
        thread.start()
        thread.join()
    assert session.events()[-1].metadata == {}
