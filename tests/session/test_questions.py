"""What a session says of its turns, its calls, and what reducers make of it (10 §A1.6, §A1.13, §C3)."""

from __future__ import annotations

import pytest

from harnpy.session import (
    Event,
    EventDraft,
    Reuse,
    Session,
    SessionRuntime,
    SessionStatus,
    ToolAmbiguous,
    Txn,
    drafts,
    tool_key,
    validate_session_id,
)
from harnpy.session.errors import InvalidArgument, InvalidSessionId
from harnpy.storage import Store


def count(state: dict[str, int], event: Event) -> dict[str, int]:
    return {**state, event.type: state.get(event.type, 0) + 1}


def test_reducers_see_every_event_once(store: Store) -> None:
    with SessionRuntime(store) as runtime, SessionRuntime(store) as other:
        session = runtime.create(id="s", seed={"content": "a"})
        state = session.attach_reducer(count)
        assert state() == session.state == {"session_created": 1, "message_added": 1}
        session.append(drafts.user("b"))
        if not store.url.startswith("memory:"):
            other.get("s").append(drafts.user("c"))
            session.refresh()
            assert state()["message_added"] == 3
        state().clear()
        assert state()["session_created"] == 1
        assert session.reduce(count, {}) == state()
        assert session.fork("f").state == {}


def test_turns_one_by_one(store: Store) -> None:
    with SessionRuntime(store) as runtime:
        session = runtime.create(id="s")
        runtime.send("s", "a", agent=lambda messages: "b", idempotency_key="k")
        with pytest.raises(ValueError, match="no"):
            runtime.send("s", "c", agent=fails)
        turn, failed = session.turns()
        starts = session.events(types=["turn_started"])
        assert (turn.id, turn.seq, failed.id) == (starts[0].id, starts[0].seq, starts[1].id)
        assert turn[3:8] == ("<lambda>", "k", "completed", "completed", None)
        assert (turn.steps, turn.messages, turn.cost, turn.started_at <= (turn.ended_at or "")) == (
            1,
            2,
            0.0,
            True,
        )
        assert (failed.status, failed.error, failed.stop_reason) == ("failed", "no", "failed")
        session.rewind()
        assert [turn.id for turn in session.turns()] == [turn.id]
        session.append(drafts.turn_started("bot"))
        assert session.turns()[-1][5:8] == ("in_progress", None, None)


def fails(messages: object) -> str:
    raise ValueError("no")


def test_a_call_is_found_by_its_key(store: Store) -> None:
    with SessionRuntime(store) as runtime:
        session = runtime.create(id="s")
        key = tool_key("s", "m", "read", 0, "{}")
        assert key == "s:m:read:0:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        assert session.find_tool(key) is session.find_tool("") is None
        assert session.tool_fence(key) == "execute"
        session.append(drafts.tool_started("read", "{}", "c1", key))
        known = session.find_tool(key)
        assert known is not None
        assert known.started is not None
        assert (known.started.seq, known.completed, known.output) == (2, None, None)
        with pytest.raises(ToolAmbiguous, match="acrfence: prior tool execution for key"):
            session.tool_fence(key)
        before = session.version
        session.append(drafts.tool_completed("read", "c1", "text", idempotency_key=key))
        assert session.tool_fence(key) == Reuse("text")
        known = session.find_tool(key)
        assert known is not None
        assert (known.started, known.output, known.error) == (None, "text", None)
        past = runtime.open("s", until=before).find_tool(key)
        assert past is not None
        assert past.completed is None

        def call_again(txn: Txn) -> None:
            txn.append(drafts.tool_completed("read", "c2", error="gone", idempotency_key="other"))
            assert txn.tool_fence("other") == Reuse(None, "gone")

        runtime.execute("s", call_again)
        assert session.tool_fence("other") == Reuse(None, "gone")


def test_waiting() -> None:
    session = Session("s")
    event = session.wait_started("payment", "order-1")
    assert (session.is_waiting, event.data) == (True, {"reason": "payment", "external_id": "order-1"})
    assert (session.wait_resolved().data, session.is_waiting) == ({}, False)
    assert session.wait_started("\ud800").data == {"reason": "\ufffd"}
    with pytest.raises(InvalidArgument, match="`external_id` must be a text, got int"):
        session.wait_resolved(external_id=7)  # type: ignore[arg-type]


def test_statuses_and_ids() -> None:
    session = Session("s")
    assert session.status == SessionStatus.ACTIVE
    session.set_status(SessionStatus.SUSPENDED)
    assert session.status == "suspended"
    assert session.events()[-1].data == {"from": "active", "to": "suspended"}
    validate_session_id("a b")
    for id, strict in (("", False), ("a\n", False), ("x" * 201, False), ("a b", True), (1, False)):
        with pytest.raises(InvalidSessionId, match=r"^Invalid session ID: "):
            validate_session_id(id, strict=strict)  # type: ignore[arg-type]
    assert session.append(EventDraft("x"))[0].seq == 3
