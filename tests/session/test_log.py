"""Sessions as event logs: which verb is which event, and what a fork's log says (10 §C3, §C9)."""

from __future__ import annotations

import gc
import pickle
from typing import Any

import pytest

from harnpy.session import (
    Event,
    EventDraft,
    InvalidArgument,
    Session,
    SessionConflict,
    SessionError,
    SessionExists,
    SessionNotFound,
    SessionRegistry,
)
from harnpy.session.verbs import trim
from harnpy.session.view import replay


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def session_of(store: SessionRegistry, id: str) -> Session:
    session = store.session(id)
    assert session
    return session


@pytest.fixture
def store() -> SessionRegistry:
    store = SessionRegistry()
    store.open("s")
    store.inject("s", said("a"))
    store.inject("s", said("b"))
    return store


def test_each_verb_is_an_event(store: SessionRegistry) -> None:
    store.append_event("s", {"kind": "note"})
    store.trim("s", 1)
    store.reset("s")
    store.open("s", {"workspace_policy": {}})
    events = session_of(store, "s").events()
    assert [event.type for event in events] == [
        "session_created",
        "message_added",
        "message_added",
        "transcript_event",
        "compaction_triggered",
        "history_replaced",
        "register_set",
        "transcript_event",
    ]
    assert [event.seq for event in events] == list(range(1, 9))
    assert events[0].data == {"depth": 0}
    assert events[1].data == said("a")
    entries = [{"event_id": events[2].id, "event_type": "message_added", "message": said("b")}]
    assert events[4].data == {"strategy": "trim", "cutoff_event_id": events[3].id, "entries": entries}
    assert events[5].data == {"messages": [], "reason": "reset"}
    assert events[6].data == {
        "key": "settings.workspace_policy",
        "value": {"default_mount_mode": "read_only"},
        "version": 1,
    }


def test_a_scratchpad_is_one_event_that_the_transcript_shows(store: SessionRegistry) -> None:
    store.set_scratchpad("s", {"n": 1}, {"reason": "plan"})
    store.clear_scratchpad("s")
    session = session_of(store, "s")
    register, cleared = session.events()[-2:]
    assert [register.type, cleared.type] == ["register_set", "register_set"]
    shown = [event for event in store.snapshot("s")["events"] if event["kind"] != "message"]
    assert [event["id"] for event in shown] == [register.id, cleared.id]
    assert [event["text"] for event in shown] == ["scratchpad set", "scratchpad cleared"]
    assert shown[0]["metadata"] == {
        "action": "set", "version": 1, "source": None, "reason": "plan", "metadata": None,
    }  # fmt: skip
    assert replay(session.events()).transcript("s") == session.view.transcript("s")


def test_nothing_is_lost_by_trim_or_reset(store: SessionRegistry) -> None:
    store.trim("s", 0)
    store.reset("s")
    added = [event.data for event in session_of(store, "s").events() if event.type == "message_added"]
    assert added == [said("a"), said("b")]


def test_an_appended_draft_keeps_its_metadata_and_cost(store: SessionRegistry) -> None:
    session = session_of(store, "s")
    draft = EventDraft("custom", {"x": 1}, metadata={"client": "cli"}, cost=0.5)
    (event,) = session.append(draft, expected_version=3)
    assert (event.seq, event.metadata, event.cost, event.session_id) == (4, {"client": "cli"}, 0.5, "s")
    assert (session.event(2).metadata, session.event(2).cost) == ({}, 0.0)


def test_an_append_at_another_version_is_a_conflict_and_leaves_no_trace(store: SessionRegistry) -> None:
    session = session_of(store, "s")
    with pytest.raises(SessionConflict, match=r"Version conflict for session 's': expected 1, found 3"):
        session.append(EventDraft("message_added", said("x")), expected_version=1)
    assert (session.version, session.length, len(session.events())) == (3, 2, 3)


def test_types_that_mean_nothing_to_a_view_are_legal(store: SessionRegistry) -> None:
    session = session_of(store, "s")
    session.append(EventDraft("from_the_future", {"x": 1}))
    assert session.length == 2


def test_a_forks_log_is_its_own_and_says_where_it_came_from(store: SessionRegistry) -> None:
    store.fork("s", "t")
    store.inject("t", said("c"))
    parent, child = session_of(store, "s"), session_of(store, "t")
    events = child.events()
    assert events[0].data == {
        "depth": 1,
        "parent_session_id": "s",
        "fork_point_event_id": parent.event(3).id,
        "fork_point_seq": 3,
    }
    assert {event.session_id for event in events} == {"t"}
    assert [event.seq for event in events] == [1, 2, 3, 4]
    assert events[1].metadata == {"fork_origin": {"session_id": "s", "event_id": parent.event(2).id}}
    assert events[1].timestamp == parent.event(2).timestamp
    assert {event.id for event in events}.isdisjoint(event.id for event in parent.events())
    assert [event.id for event in child.events()] == [event.id for event in events]


def test_the_origin_of_a_forks_fork_is_its_direct_parent(store: SessionRegistry) -> None:
    store.fork("s", "t")
    store.fork("t", "u")
    grandchild = session_of(store, "u").event(2)
    assert grandchild.metadata["fork_origin"] == {
        "session_id": "t",
        "event_id": session_of(store, "t").event(2).id,
    }
    assert grandchild.first is session_of(store, "s").event(2)


def test_transcript_events_keep_their_ids_in_a_fork(store: SessionRegistry) -> None:
    store.fork("s", "t")
    store.fork("t", "u")
    assert (store.snapshot("u") or {})["events"] == (store.snapshot("s") or {})["events"]


def test_forks_of_forks_may_go_a_thousand_deep() -> None:
    store = SessionRegistry(cap=4)
    id = store.open("0")
    store.inject(id, said("root"))
    for depth in range(1, 1200):
        id = store.fork(id, str(depth))
    session = session_of(store, id)
    assert session.messages() == [said("root")]
    assert session.event(1).data["depth"] == 1199
    assert session.event(2).metadata["fork_origin"]["session_id"] == "1198"
    assert replay(session.events()).window.messages() == session.messages()


def test_a_replayed_fork_shows_its_parent_until_it_is_reset(store: SessionRegistry) -> None:
    store.reset("s")
    store.inject("s", said("c"))
    store.fork("s", "t")
    child = session_of(store, "t")
    assert replay(child.events()).metadata() == {"parent_session_id": "s"}
    store.reset("t")
    assert replay(child.events()).metadata() is None


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SessionError("x", "s"), "session"),
        (SessionNotFound("s"), "not_found"),
        (SessionNotFound("s", "agent_session_trim"), "not_found"),
        (SessionConflict("s", 1, 2), "version_conflict"),
        (SessionExists("s", 2), "exists"),
        (InvalidArgument("`keep_last` must be >= 0", verb="agent_session_trim"), "invalid"),
    ],
)
def test_errors_have_a_stable_code_and_pickle(error: SessionError, code: str) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.code, again.__dict__) == (
        type(error),
        str(error),
        code,
        error.__dict__,
    )


def test_a_verb_refuses_without_a_name_and_the_first_caller_adds_its_own() -> None:
    with pytest.raises(InvalidArgument) as caught:
        trim(SessionRegistry(), "s", -1)
    refusal = caught.value
    assert (str(refusal), refusal.verb) == ("`keep_last` must be >= 0", None)
    refusal.name("agent_session_trim")
    refusal.name("agent_loop")
    assert str(refusal) == "agent_session_trim: `keep_last` must be >= 0"


def test_a_cut_costs_what_came_since_the_last_one() -> None:
    store = SessionRegistry()
    store.open("s")
    for n in range(300):
        store.inject("s", {"role": "user", "content": str(n)})
        store.append_event("s", {"kind": "note", "text": str(n)})
        store.trim("s", 5)
    session = store.session("s")
    assert session
    assert len(session.view.window.notes) <= 6
    texts = [event["text"] for event in session.view.window.events() if event["kind"] == "note"]
    assert texts == [str(n) for n in range(300)]


def test_every_message_of_a_long_line_of_forks_is_read_at_once() -> None:
    store = SessionRegistry(cap=2000)
    store.open("0")
    for n in range(1000):
        store.inject(str(n), {"role": "user", "content": str(n)})
        store.fork(str(n), str(n + 1))
    said = [message["content"] for message in store.history("1000", {"include_reset": True})]
    assert said == [str(n) for n in range(1000)]


def test_a_closed_parent_lives_on_only_in_what_its_forks_share() -> None:
    store = SessionRegistry()
    store.open("parent")
    store.inject("parent", {"role": "user", "content": "shared"})
    store.fork("parent", "child")
    for _ in range(100):
        store.inject("parent", {"role": "user", "content": "not shared"})
    store.close("parent")
    gc.collect()
    left = [each for each in gc.get_objects() if isinstance(each, Event) and each.session_id == "parent"]
    assert {event.type for event in left} <= {"session_created", "message_added"}
    assert len(left) <= 2
    child = store.session("child")
    assert child
    created, message = child.events()
    assert created.data["parent_session_id"] == "parent"
    assert message.metadata["fork_origin"]["event_id"] == created.data["fork_point_event_id"]
    assert store.messages("child") == [{"role": "user", "content": "shared"}]


def test_the_log_of_a_fork_of_a_fork_of_a_fork() -> None:
    store = SessionRegistry()
    store.open("0")
    for n in range(300):
        store.inject(str(n), {"role": "user", "content": str(n)})
        store.fork(str(n), str(n + 1))
        store.close(str(n))
    session = store.session("300")
    assert session
    events = session.events()
    assert [event.seq for event in events] == list(range(1, 302))
    assert {event.session_id for event in events} == {"300"}
    assert events[0].data["depth"] == 300
    assert {event.metadata["fork_origin"]["session_id"] for event in events[1:]} == {"299"}
    assert events[0].data["fork_point_event_id"] == events[-1].metadata["fork_origin"]["event_id"]
    assert len({event.first.session_id for event in events[1:]}) == 300


def test_a_key_that_is_no_registers_is_refused(store: SessionRegistry) -> None:
    session = session_of(store, "s")
    for key in ("memo", "settings.max_length", "metadata.owner"):
        assert session.set(key, 1) == 1
    with pytest.raises(InvalidArgument, match='unknown register "memory"'):
        session.set("memory", 1)
