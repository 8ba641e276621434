"""Sessions on a store: what they say after a reload, and what several of them write (10 §C3, §C9)."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from harnpy import Vm, VmError
from harnpy.session import EventDraft, EventRejected, Session, SessionConflict, SessionExists, SessionRegistry
from harnpy.session.codec import encode_event
from harnpy.session.conversation import SessionConversation
from harnpy.session.errors import SessionLeased
from harnpy.session.history import ANY
from harnpy.session.info import SessionInfo
from harnpy.session.live import live_sessions
from harnpy.session.stored import StoredSession
from harnpy.session.transfer.logs import dump_log, load_log
from harnpy.storage import HeadQuery, Store, open_store
from harnpy.storage.errors import LeaseLost
from harnpy.world import World


def said(text: str, **more: Any) -> EventDraft:
    return EventDraft("message_added", {"role": "user", "content": text}, **more)


def texts(session: Session) -> list[str]:
    return [message["content"] for message in session.messages()]


def load(store: Store, id: str = "s") -> StoredSession:
    session = StoredSession.load(id, store, World())
    assert session
    return session


@pytest.fixture
def session(store: Store) -> StoredSession:
    return StoredSession.begin("s", store, World())


class TestStored:
    """On every store."""

    def test_what_transcripts_show_of_a_scratchpad_reads_back(
        self, session: StoredSession, opened: Callable[[], Store]
    ) -> None:
        session.append(said("a"))
        session.set("scratchpad", {"n": 1})
        again = load(opened() if session.store.url != "memory:" else session.store)
        shown = again.view.transcript("s")
        assert [event["kind"] for event in shown["events"]] == ["message", "session_scratchpad"]
        assert shown == session.view.transcript("s")

    def test_a_session_reads_back_as_it_was(
        self, session: StoredSession, opened: Callable[[], Store]
    ) -> None:
        (turn,) = session.append(EventDraft("turn_started", {"agent_id": "a"}))
        session.append(said("a", turn=turn), said("b", metadata={"k": 1}, cost=0.5, turn=turn))
        session.set("memo", {"x": [1, 2.5, None]})
        again = load(opened() if session.store.url != "memory:" else session.store)
        assert [encode_event(event) for event in again.events()] == [
            encode_event(event) for event in session.events()
        ]
        assert (again.seq, again.revision, again.info) == (session.seq, session.revision, session.info)
        assert again.view.transcript("s") == session.view.transcript("s")
        assert again.view.registers == session.view.registers

    def test_what_isnt_json_is_rejected_and_leaves_no_trace(self, session: StoredSession) -> None:
        before = session.info
        for write in (session.append, session.write):
            with pytest.raises(EventRejected, match="data is not JSON: set at /content"):
                write(said("fine"), EventDraft("message_added", {"role": "user", "content": {1}}))
        with pytest.raises(EventRejected):
            session.record("custom", b"")
        assert (session.info, session.version, texts(session)) == (before, 1, [])

    def test_an_append_expects_what_its_object_has_seen(self, session: StoredSession) -> None:
        other = load(session.store)
        other.append(said("theirs"))
        with pytest.raises(SessionConflict, match="Version conflict for session 's': expected 1, found 2"):
            session.append(said("ours"))
        assert texts(session) == []
        (event,) = session.append(said("ours"), expected_version=ANY)
        assert (event.seq, texts(session), texts(load(session.store))) == (3, *[["theirs", "ours"]] * 2)

    def test_messages_go_to_the_end_and_registers_count_on(self, session: StoredSession) -> None:
        other = load(session.store)
        session.record("message_added", {"role": "user", "content": "a"})
        other.record("message_added", {"role": "user", "content": "b"})
        assert session.set("memo", 1) == 1
        assert other.set("memo", 2) == 2
        session.refresh()
        assert (texts(session), session.view.register("memo")) == (["a", "b"], 2)
        assert session.revision == other.revision == load(session.store).revision == 5

    def test_others_are_heard(self, session: StoredSession) -> None:
        heard: list[int] = []
        live = live_sessions(session.store, World()).load("s")
        live.listeners = (lambda events: heard.extend(event.seq for event in events),)
        other = load(session.store)
        other.append(said("a"), said("b"))
        live.append(said("c"), expected_version=ANY)
        live.refresh()
        assert heard == [2, 3, 4]

    def test_the_head_is_what_lists_show(self, session: StoredSession) -> None:
        session.append(EventDraft("turn_started", {"agent_id": "a"}))
        session.append(EventDraft("register_set", {"key": "metadata.team", "value": "ops", "version": 1}))
        session.append(EventDraft("step_completed", {}, cost=0.25))
        session.set_status("suspended", "later")
        info = session.info
        assert isinstance(info, SessionInfo)
        assert (info.status, info.execution, info.cost, info.metadata) == (
            "suspended", "in_progress", 0.25, {"team": "ops"}
        )  # fmt: skip
        assert (info.id, info.seq, info.revision) == ("s", session.seq, session.revision)
        assert info.created_at == session.event(1).timestamp
        page = session.store.heads(HeadQuery(statuses=frozenset({"suspended"})))
        assert [head.name for head in page.items] == ["s"]

    def test_a_fork_shares_the_past_and_reads_back(self, session: StoredSession) -> None:
        session.append(said("a"), said("b"))
        fork = session.fork("t")
        session.append(said("parent only"))
        fork.append(said("child only"))
        grand = fork.fork("u")
        for one in (fork, grand):
            again = load(session.store, one.id)
            assert texts(one) == texts(again) == ["a", "b", "child only"]
            assert [encode_event(event) for event in again.events()] == [
                encode_event(event) for event in one.events()
            ]
            assert again.view.transcript(one.id) == one.view.transcript(one.id)
            assert (again.revision, again.info) == (one.revision, one.info)
        assert (fork.info.parent_id, fork.info.fork_seq, fork.info.depth) == ("s", 3, 1)
        assert fork.info.fork_event_id == session.event(3).id
        assert (session.children(), fork.children(), grand.children()) == (["t"], ["u"], [])
        assert texts(load(session.store)) == ["a", "b", "parent only"]

    def test_a_fork_at_the_end_reads_no_record(self, session: StoredSession) -> None:
        """Else it would cost what the last append holds, all of which is decoded for any of its events."""
        session.append(*(said(str(n)) for n in range(50)))
        with patch.object(type(session.stream), "read", side_effect=AssertionError("it was read")):
            fork = session.fork("t")
        assert fork.info.fork_event_id == session.event(51).id

    def test_cuts_read_back(self, session: StoredSession) -> None:
        session.append(*(said(str(n)) for n in range(6)))
        session.shrink("trim", session.view.window.trimmed(4))
        fork = session.fork("t")
        fork.replace("fork_at", fork.view.window.head(2), branched_at=2)
        session.replace("set", session.view.window.with_entries(session.view.window.entries.items()[2:]))
        session.append(said("more"))
        for one in (session, fork):
            again = load(session.store, one.id)
            assert [event.data for event in again.events()] == [event.data for event in one.events()]
            assert (texts(again), again.history()) == (texts(one), one.history())
            assert again.view.transcript(one.id) == one.view.transcript(one.id)
        assert (texts(session), texts(fork)) == (["4", "5", "more"], ["2", "3"])

    def test_a_fork_at_an_event_has_the_past_up_to_it(self, session: StoredSession) -> None:
        session.append(*(said(str(n)) for n in range(4)))
        session.shrink("trim", session.view.window.trimmed(1))
        fork = session.fork("t", at=3)
        assert (texts(fork), texts(load(session.store, "t"))) == (["0", "1"], ["0", "1"])
        assert (fork.info.fork_seq, fork.info.fork_event_id) == (3, session.event(3).id)

    def test_a_fork_onto_a_session_that_exists_is_refused(self, session: StoredSession) -> None:
        StoredSession.begin("t", session.store, World())
        with pytest.raises(SessionExists):
            session.fork("t")
        with pytest.raises(SessionExists, match="Session already exists: 't'"):
            StoredSession.begin("t", session.store, World())

    def test_an_append_under_a_lost_lease_is_refused(self, session: StoredSession) -> None:
        session.lease = session.store.lease("session:s", ttl=0.0)
        session.store.lease("session:s", "someone:else")
        with pytest.raises(LeaseLost):
            session.record("message_added", {"role": "user", "content": "late"})
        assert texts(load(session.store)) == []

    def test_an_append_of_another_thread_survives_the_end_of_an_action(
        self, session: StoredSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lease = session.lease = session.store.lease("session:s")
        append = type(session.stream).append

        def late(*args: Any, **options: Any) -> Any:
            if session.lease is not None:
                lease.release()
                session.lease = None
            return append(*args, **options)

        monkeypatch.setattr(type(session.stream), "append", late)
        session.record("message_added", {"role": "user", "content": "in time"})
        assert texts(load(session.store)) == ["in time"]

    def test_a_deleted_parent_leaves_its_forks_whole(self, session: StoredSession) -> None:
        session.append(said("a"))
        session.fork("t").append(said("b"))
        before = load(session.store, "t")
        info, events = before.info, [encode_event(event) for event in before.events()]
        session.store.delete("session", "s")
        gc.collect()
        for is_taken in (False, True):
            if is_taken:  # another session has the parent's name
                StoredSession.begin("s", session.store, World())
            fork = load(session.store, "t")
            assert texts(fork) == ["a", "b"]
            assert fork.info == info
            assert [encode_event(event) for event in fork.events()] == events

    def test_a_fork_is_never_older_than_itself(self, session: StoredSession) -> None:
        session.append(said("a"))
        session.append(said("b"))
        for at in (1, 2, None):
            info = session.fork(f"fork {at}", at=at).info
            assert info.created_at <= info.updated_at

    def test_the_turns_of_a_fork_are_named_by_its_own_events(self, session: StoredSession) -> None:
        (turn,) = session.append(EventDraft("turn_started", {"agent_id": "a"}))
        session.append(said("a", turn=turn), said("b", turn="named"))
        fork = session.fork("t").fork("u")
        for each in (fork, load(session.store, "u")):
            started, *others = each.events()[1:]
            assert [event.turn_id for event in others] == [started.id, "named"]

    def test_a_fork_that_is_exported_is_imported_as_a_fork(
        self, session: StoredSession, tmp_path: Path
    ) -> None:
        (turn,) = session.append(EventDraft("turn_started", {"agent_id": "a"}))
        session.append(said("a", turn=turn, metadata={"k": 1}), said("b"), said("c"))
        fork = session.fork("t", at=4)
        fork.append(said("d"))
        with closing(open_store(f"jsonl:{tmp_path}/other")) as other:
            load_log(dump_log(fork), other, World())
            there = load(other, "t")
            same = {"updated_at": ""}  # may be a second behind
            assert there.info._replace(**same) == fork.info._replace(**same)
            assert list(dump_log(there)) == list(dump_log(fork))
            grand = there.fork("u")
            assert grand.event(3).metadata == {
                "k": 1,
                "fork_origin": {"session_id": "t", "event_id": there.event(3).id},
            }
            assert (grand.info.parent_id, grand.info.depth) == ("t", 2)


class TestRegistry:
    """The verbs, on every store."""

    @pytest.fixture
    def registry(self, store: Store) -> SessionRegistry:
        registry = SessionRegistry(cap=2)
        registry.stores._open[store.url] = store
        registry.store_url = store.url  # type: ignore[attr-defined]
        registry.open("s", {"store": store.url})
        return registry

    def test_close_and_eviction_drop_only_the_live_object(self, registry: SessionRegistry) -> None:
        url: str = registry.store_url  # type: ignore[attr-defined]
        registry.inject("s", {"role": "user", "content": "a"})
        registry.set_scratchpad("s", {"x": 1})
        registry.fork("s", "t")
        before = registry.snapshot("s"), registry.ancestry("s")
        registry.close("s", "completed")
        assert not registry.exists("s")
        registry.open("s", {"store": url})
        assert (registry.snapshot("s"), registry.ancestry("s")) == before
        session = registry.session("s")
        assert isinstance(session, StoredSession)
        assert session.info.status == "completed"
        registry.open("x")
        registry.open("y")
        assert registry.ids() == ["x", "y"]
        registry.open("s", {"store": url})
        assert registry.length("s") == 1

    def test_what_another_process_writes_is_seen_by_every_verb(self, registry: SessionRegistry) -> None:
        other = SessionRegistry()
        other.stores._open = registry.stores._open
        other.open("s", {"store": registry.store_url})  # type: ignore[attr-defined]
        other.inject("s", {"role": "user", "content": "theirs"})
        assert registry.length("s") == 1
        registry.inject("s", {"role": "user", "content": "ours"})
        assert [message["content"] for message in other.messages("s")] == ["theirs", "ours"]
        other.set_scratchpad("s", {"x": 1})
        assert registry.set_scratchpad("s", {"x": 2})["version"] == 2
        assert other.scratchpad("s") == {"x": 2}

    def test_what_isnt_json_names_the_argument(self, registry: SessionRegistry) -> None:
        with pytest.raises(EventRejected) as caught:
            registry.inject("s", {"role": "user", "content": b""})
        assert (
            caught.value.message_from("agent_session_inject")
            == "agent_session_inject: `message` must be JSON-serializable"
        )
        with pytest.raises(EventRejected) as caught:
            registry.append_event("s", {"kind": "x", "metadata": float("nan")})
        assert caught.value.argument == "event"
        assert registry.length("s") == 0

    def test_one_process_at_a_time_drives_a_session(
        self, registry: SessionRegistry, opened: Callable[[], Store]
    ) -> None:
        if registry.store_url == "memory:":  # type: ignore[attr-defined]
            return  # nobody else can have it
        other = SessionRegistry()
        other.stores._open[registry.store_url] = opened()  # type: ignore[attr-defined]
        other.lease_wait = 0.0
        other.open("s", {"store": registry.store_url})  # type: ignore[attr-defined]
        loops = [SessionConversation("s", registry) for _ in range(2)]
        for loop in loops:  # of one process, they share the lease
            loop.begin(None, "text")
        theirs = SessionConversation("s", other)
        with pytest.raises(SessionLeased, match=r"^session:s is held by ") as caught:
            theirs.begin(None, "text")
        assert caught.value.caught_from("agent_loop") == {
            "category": "busy",
            "code": "lease_held",
            "message": caught.value.message,
            "session_id": "s",
        }
        loops[0].end("completed")
        with pytest.raises(SessionLeased):
            theirs.begin(None, "text")
        loops[1].fail("cancelled")
        other.lease_wait = 30.0  # a thread lets the lease go, when it comes round to it
        theirs.begin(None, "text")
        theirs.end("completed")

    def test_a_loop_hears_what_others_inject_and_loses_nothing(self, registry: SessionRegistry) -> None:
        other = SessionRegistry()
        other.stores._open = registry.stores._open
        other.open("s", {"store": registry.store_url})  # type: ignore[attr-defined]
        loop = SessionConversation("s", registry)
        loop.begin(None, "text")
        loop.add({"role": "user", "content": "task"})
        other.inject("s", {"role": "user", "content": "meanwhile"})
        loop.store()
        assert [message["content"] for message in loop.arrivals()] == ["meanwhile"]
        loop.end("completed")
        said = [message["content"] for message in other.messages("s")]
        assert sorted(said) == ["meanwhile", "task"]


@pytest.mark.parametrize(
    ("store", "refused"),
    [
        ('"jsonl:kept"', "writing '"),
        ("true", "keeping '"),
        ('"postgresql://u:hunter2@host/db"', "connecting to 'postgresql://u:"),
    ],
)
def test_a_program_keeps_sessions_where_the_rules_allow_it(
    store: str, refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(VmError) as caught:
        Vm(capabilities=["read"]).run_source(f'agent_session_open("s", {{store: {store}}})')
    assert refused in str(caught.value)
    assert "is not permitted" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
