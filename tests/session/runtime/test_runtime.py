"""Sessions of a runtime: made, found, changed, forked, deleted; who may write when (10 §A3.2, §C7)."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harnpy.session import (
    EventBus,
    EventDraft,
    HookStack,
    InvalidArgument,
    InvalidTransition,
    Session,
    SessionBusy,
    SessionConflict,
    SessionExists,
    SessionNotFound,
    SessionQuery,
    SessionReadOnly,
    SessionRuntime,
    Txn,
    actions,
    hooks,
)
from harnpy.session.errors import InvalidSessionId, LaneFull, LaneTimeout
from harnpy.session.lanes import LOOP, MOST_WAITING, Lanes, ThreadWaiter, Ticket
from harnpy.storage import Store
from harnpy.storage.errors import LeaseHeld, StoreClosed


def said(text: str, **more: Any) -> EventDraft:
    return EventDraft("message_added", {"role": "user", "content": text}, **more)


def texts(session: Session) -> list[str]:
    return [message["content"] for message in session.messages()]


def say(text: str) -> Callable[[Txn], object]:
    return lambda session: session.append(said(text))


@pytest.fixture
def runtime(store: Store) -> Iterator[SessionRuntime]:
    with SessionRuntime(store) as runtime:
        yield runtime


class TestSessions:
    def test_versions_are_1_after_create_and_1_more_with_each_save(
        self, runtime: SessionRuntime, store: Store
    ) -> None:
        session = runtime.create("helper", id="s", seed={"content": "hi"}, metadata={"team": "a"})
        assert (session.revision, session.metadata, texts(session)) == (1, {"team": "a"}, ["hi"])
        assert runtime.execute("s", say("a")) is session
        session.append(said("b"))
        assert (session.revision, texts(session)) == (3, ["hi", "a", "b"])
        info = runtime.info("s")
        assert (info.revision, info.agent_name, info.agent_label) == (3, "helper", "helper")
        with SessionRuntime(store) as other:
            assert texts(other.get("s")) == ["hi", "a", "b"]
            assert other.execute("s", lambda session: None).revision == 4
        assert runtime.get("s").revision == 4

    def test_there_is_one_live_object_of_an_id_until_it_is_evicted(self, runtime: SessionRuntime) -> None:
        session = runtime.create(id="s")
        assert runtime.open("s") is runtime.get("s") is session
        assert runtime.evict("s")
        assert not runtime.evict("s")
        assert runtime.get("s") is not session

    def test_ids_are_given_checked_and_used_once(self, runtime: SessionRuntime, store: Store) -> None:
        assert runtime.create().id != runtime.create().id
        runtime.create(id="s")
        with pytest.raises(SessionExists, match="Session already exists: 's'"):
            runtime.create(id="s")
        with pytest.raises(InvalidSessionId, match="Invalid session ID: \n"):
            runtime.create(id="\n")
        with pytest.raises(InvalidSessionId):
            SessionRuntime(store, strict_ids=True).create(id="a b")

    def test_what_is_not_there_is_not_found(self, runtime: SessionRuntime) -> None:
        lookups: list[Callable[[str], Any]] = [
            runtime.open,
            runtime.get,
            runtime.info,
            runtime.parent,
            runtime.children,
            runtime.delete,
            lambda id: runtime.execute(id, actions.Clear()),
            lambda id: runtime.open(id, until=1),
            lambda id: runtime.delete(id, hard=True),
        ]
        for look in lookups:
            with pytest.raises(SessionNotFound, match="Session not found: 'no'"):
                look("no")
        assert not runtime.exists("no")
        assert runtime.open("no", create=True).revision == 1
        assert runtime.exists("no")

    def test_a_session_as_it_stood_can_be_read(self, runtime: SessionRuntime) -> None:
        runtime.create(id="s", seed=[{"content": "a"}, {"content": "b"}])
        past = runtime.open("s", until=2)
        assert texts(past) == ["a"]
        with pytest.raises(SessionReadOnly):
            past.append(said("c"))

    def test_lists_hide_what_is_deleted(self, runtime: SessionRuntime) -> None:
        runtime.create("a", id="one")
        runtime.create("b", id="two")
        runtime.create("b", id="gone")
        runtime.delete("gone")
        assert {info.id for info in runtime.list().items} == {"one", "two"}
        page = runtime.list(SessionQuery(agent="b", deleted=True))
        assert {info.id for info in page.items} == {"two", "gone"}
        assert [info.id for info in page.filter_status("deleted").items] == ["gone"]
        assert page.filter_agent("a").first is None
        assert [info.id for info in runtime.list(SessionQuery(status="deleted")).items] == ["gone"]
        runtime.delete("gone", hard=True)
        assert not runtime.exists("gone")

    def test_forks_know_where_they_come_from(self, runtime: SessionRuntime) -> None:
        runtime.create("a", id="s", seed={"content": "x"})
        child = runtime.get("s").fork("child", label="try")
        assert runtime.get("child") is child
        runtime.execute("child", actions.Fork("grandchild"))
        assert [info.id for info in runtime.lineage("grandchild")] == ["s", "child", "grandchild"]
        assert [info.id for info in runtime.children("s")] == ["child"]
        assert runtime.parent("s") is None
        info = runtime.info("child")
        assert (info.branch_label, info.depth, info.agent_name) == ("try", 1, "a")
        assert [hit.name for hit in runtime.search("x")] == ["s"]


class TestUnsaved:
    def test_a_session_by_itself_is_stored_as_revision_1(self, runtime: SessionRuntime) -> None:
        session = Session("s", settings={"max_length": 9})
        session.add_history([{"content": "a"}, {"content": "b"}])
        session.trim(1)
        session.set_memo({"n": [1]})
        stored = runtime.create(session)
        runtime.evict("s")
        for each in (stored, runtime.get("s")):
            assert (each.revision, texts(each), each.memo) == (1, ["b"], {"n": [1]})
            assert [event.id for event in each.events()] == [event.id for event in session.events()]
            assert len(each.history()) == 2
        assert session.revision == 0
        with pytest.raises(SessionExists):
            runtime.create(session)
        with pytest.raises(InvalidArgument, match="session 's' is saved already"):
            runtime.create(stored)
        with pytest.raises(InvalidArgument):
            runtime.create(Session(), id="other")

    def test_an_unsaved_fork_is_stored_with_its_past(self, runtime: SessionRuntime) -> None:
        source = runtime.create("a", id="s", seed={"content": "a"})
        fork = actions.Fork("f", label="l")(source)
        assert (fork.revision, texts(fork), runtime.exists("f")) == (0, ["a"], False)
        assert runtime.create(fork).revision == 1
        runtime.evict("f")
        info = runtime.info("f")
        assert (info.parent_id, info.branch_label, info.agent_name, info.revision) == ("s", "l", "a", 1)
        assert texts(runtime.get("f")) == ["a"]


class TestActions:
    def test_each_does_what_it_says(self, runtime: SessionRuntime) -> None:
        session = runtime.create(id="s", seed={"content": "a"})
        for action, status in (
            (actions.Suspend("later"), "suspended"),
            (actions.Resume(), "active"),
            (actions.Complete(), "completed"),
            (actions.Resume(), "active"),
            (actions.Fail(), "failed"),
        ):
            assert runtime.execute("s", action).status == status
        runtime.execute("s", actions.ChangeModel({"provider": "mock"}))
        runtime.execute("s", actions.ChangeSystemPrompt("Be kind."))
        runtime.execute("s", actions.WriteMetadata("k", [1]))
        runtime.execute("s", actions.UpdateTask("Refactor"))
        runtime.execute("s", actions.UpdateTask([{"content": "Write"}]))
        runtime.execute("s", actions.Clear())
        assert (session.messages(), session.execution_status) == ([], "pending")
        assert (session.get("model"), session.get("system_prompt")) == ({"provider": "mock"}, "Be kind.")
        assert (session.metadata, session.task) == ({"k": [1]}, "Refactor")
        assert session.tasks.render() == "1. ○ Write"
        executed = session.events()[-1]
        assert executed.type == "action_executed"
        assert (executed.data["action"], executed.data["before_revision"]) == ("clear", 11)

    def test_a_refused_action_leaves_nothing(self, runtime: SessionRuntime) -> None:
        session = runtime.create(id="s")
        runtime.delete("s")
        with pytest.raises(InvalidTransition, match="cannot change session 's' from deleted to active"):
            runtime.execute("s", actions.Resume())
        assert session.revision == 2

    def test_a_task_is_a_text_or_a_list(self) -> None:
        with pytest.raises(TypeError, match="UpdateTask: expected a description or a task list, got int"):
            actions.UpdateTask(7)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="Only 1 task can be in_progress"):
            actions.UpdateTask([{"content": c, "status": "in_progress"} for c in "ab"])

    def test_what_is_no_action_is_refused(self, runtime: SessionRuntime) -> None:
        runtime.create(id="s")
        with pytest.raises(TypeError, match="an action must be callable with a session, got int"):
            runtime.execute("s", 7)  # type: ignore[arg-type]

    def test_what_a_txn_reads_includes_what_it_wrote(self, runtime: SessionRuntime) -> None:
        session = runtime.create(id="s", seed=[{"content": "a"}, {"content": "b"}])

        def act(txn: Txn) -> None:
            pinned = txn.append(said("c"))[0]
            assert txn.pin(pinned.id)
            txn.trim(1)
            txn.set("metadata.k", 1)
            assert (texts(txn), txn.metadata, len(txn.history())) == (["c"], {"k": 1}, 3)
            seen.extend((event.seq, event.id, event.type) for event in txn.events())
            assert txn.event(3).body["content"] == "b"
            assert (txn.info.revision, txn.revision, session.revision) == (1, 1, 1)
            assert texts(session) == ["a", "b"]

        seen: list[Any] = []
        runtime.execute("s", act)
        runtime.evict("s")
        for each in (session, runtime.get("s")):
            assert [(event.seq, event.id, event.type) for event in each.events()][:-1] == seen
            assert (texts(each), len(each.history()), each.view.pins) == (["c"], 3, (4,))
        assert len({event.time for event in session.events(after=3)}) == 1


class TestHooks:
    def test_higher_priorities_come_first_then_who_came_first(self, store: Store) -> None:
        heard: list[str] = []

        def hook(name: str) -> hooks.Hook:
            return lambda stage, session: heard.append(name) if stage == "after_load" else None

        empty = HookStack()
        stack = empty.with_(hook("a")).with_(hook("b"), 5, "second").with_(hook("c")).with_(hook("d"), -1)
        with SessionRuntime(store, hooks=stack) as runtime:
            runtime.create(id="s")
            runtime.execute("s", say("x"))
        assert heard == ["b", "a", "c", "d"]
        assert (len(empty), stack.names[0]) == (0, "second")
        with pytest.raises(TypeError, match="a hook must be callable"):
            empty.with_("x")  # type: ignore[arg-type]

    def test_creation_has_stages_too_and_the_saved_is_read_only(self, store: Store) -> None:
        heard: list[str] = []

        def hook(stage: str, session: Txn) -> None:
            heard.append(stage)
            if stage == "before_create":
                session.set("metadata.by", "hook")
            if stage == "after_create":
                with pytest.raises(SessionReadOnly, match="session 's' is saved"):
                    session.append(said("late"))

        events = EventBus()
        off = events.on("*", lambda name, data: heard.append(name))
        with SessionRuntime(store, hooks=hook, events=events) as runtime:
            session = runtime.create(id="s")
            assert (session.metadata, session.revision) == ({"by": "hook"}, 1)
            off()
            runtime.evict("s")
        stages = ["before_create", "before_save", "after_save", "after_create"]
        assert heard == [*stages, "session_created", "session_saved"]

    def test_a_name_that_no_event_has_is_refused_with_the_nearest(self) -> None:
        with pytest.raises(InvalidArgument, match="did you mean `session_saved`"):
            EventBus().on("session_save", print)

    def test_turns_can_be_refused_while_a_session_is_not_active(self, store: Store) -> None:
        with SessionRuntime(store, hooks=hooks.require_active) as runtime:
            runtime.create(id="s")
            runtime.execute("s", actions.Suspend())

            def send(session: Txn) -> None:
                session.append(said("hi"))

            with pytest.raises(InvalidTransition, match="session 's' is suspended: resume it first"):
                runtime.execute("s", send)
            runtime.execute("s", actions.Resume())
            assert texts(runtime.execute("s", send)) == ["hi"]


class TestConflicts:
    def test_of_two_that_loaded_a_revision_one_saves(self, store: Store) -> None:
        with SessionRuntime(store) as one, SessionRuntime(store) as two:
            one.create(id="s")
            for text in "abcd":
                one.execute("s", say(text))
            assert one.get("s").revision == two.get("s").revision == 5
            assert one.execute("s", say("first"), expected_revision=5).revision == 6
            with pytest.raises(SessionConflict) as caught:
                two.execute("s", say("second"), expected_revision=5)
            conflict = caught.value
            assert str(conflict) == "Version conflict for session 's': expected revision 5, found 6"
            assert (conflict.kind, conflict.expected, conflict.found) == ("revision", 5, 6)
            assert two.get("s").revision == 6

    def test_who_appends_meanwhile_makes_an_atomic_action_fail_or_run_again(
        self, runtime: SessionRuntime
    ) -> None:
        session = runtime.create(id="s")
        runs: list[list[str]] = []

        def act(txn: Txn) -> None:
            runs.append(texts(txn))
            if len(runs) in (1, 2):
                session.append(said(f"other {len(runs)}"))
            txn.append(said("mine"))

        with pytest.raises(SessionConflict) as caught:
            runtime.execute("s", act)
        assert (caught.value.kind, texts(session)) == ("version", ["other 1"])
        runtime.execute("s", act, retries=1)
        assert runs == [[], ["other 1"], ["other 1", "other 2"]]
        assert texts(session) == ["other 1", "other 2", "mine"]

    def test_a_key_is_executed_once(self, runtime: SessionRuntime, store: Store) -> None:
        session = runtime.create(id="s")
        for _ in range(2):
            assert runtime.execute("s", say("a"), idempotency_key="k") is session
        with SessionRuntime(store) as other:
            other.execute("s", say("a"), idempotency_key="k")
        assert (texts(session), session.revision) == (["a"], 2)
        fork = session.fork("f")
        runtime.execute("f", say("a"), idempotency_key="k")
        assert texts(fork) == ["a", "a"]


class Turn:
    """A stream action that lets ``meanwhile`` happen in its turn."""

    name, mode = "turn", "stream"

    def __init__(self, meanwhile: Callable[[Txn], object]) -> None:
        self._meanwhile = meanwhile

    def __call__(self, txn: Txn) -> None:
        turn = txn.append(EventDraft("turn_started", {"agent_id": "a"}))[0]
        self._meanwhile(txn)
        txn.append(said("mine", turn=turn))
        txn.set("metadata.k", "mine")
        end = {"agent_id": "a", "steps": 0, "turn_stop_reason": "completed"}
        txn.append(EventDraft("turn_completed", end, turn=turn))


class TestStreaming:
    def test_it_is_stored_as_it_comes_and_is_one_save(self, runtime: SessionRuntime, store: Store) -> None:
        runtime.create(id="s")

        def look(txn: Txn) -> None:
            with SessionRuntime(store) as other:
                assert [event.type for event in other.get("s").events()][-1] == "turn_started"

        session = runtime.execute("s", Turn(look))
        assert [event.type for event in session.events()] == [
            "session_created", "turn_started", "message_added", "register_set", "turn_completed",
            "action_executed",
        ]  # fmt: skip
        assert [event.more for event in session.events(after=4)] == [1, 0]
        assert (session.execution_status, session.revision) == ("completed", 3)

    def test_what_commutes_is_merged(self, runtime: SessionRuntime, store: Store) -> None:
        session = runtime.create(id="s")
        with SessionRuntime(store) as other:

            def meanwhile(txn: Txn) -> None:
                theirs = other.get("s")
                theirs.append(said("theirs"))
                theirs.set("metadata.k", "theirs")

            runtime.execute("s", Turn(meanwhile))
            runtime.evict("s")
            for each in (session, other.get("s"), runtime.get("s")):
                assert texts(each) == ["theirs", "mine"] or texts(each) == ["mine", "theirs"]
                assert each.metadata == {"k": "mine"}
                assert each.view.registers["metadata.k"].version == 2
                assert texts(each) == texts(session)

    def test_what_does_not_commute_is_a_conflict_and_the_turn_ends(
        self, runtime: SessionRuntime, store: Store
    ) -> None:
        session = runtime.create(id="s")
        with SessionRuntime(store) as other, pytest.raises(SessionConflict):
            runtime.execute("s", Turn(lambda txn: other.get("s").set_status("suspended")))
        assert session.events()[-1].data["turn_stop_reason"] == "failed"
        assert (session.execution_status, session.status) == ("failed", "suspended")

    def test_retries_are_for_atomic_actions(self, runtime: SessionRuntime) -> None:
        runtime.create(id="s")
        with pytest.raises(InvalidArgument, match="`retries` are for atomic actions"):
            runtime.execute("s", Turn(print), retries=1)

    def test_a_turn_that_a_crash_left_open_ends_before_the_next_action(
        self, runtime: SessionRuntime, store: Store
    ) -> None:
        session = runtime.create(id="s")
        session.append(EventDraft("turn_started", {"agent_id": "a"}))
        with SessionRuntime(store) as later:
            later.execute("s", say("next"))
        session.refresh()
        kinds = [event.type for event in session.events()]
        assert kinds[2:] == ["turn_completed", "message_added", "action_executed"]
        assert session.events()[2].data["turn_stop_reason"] == "interrupted"


class TestLanes:
    def test_they_are_first_come_first_served(self) -> None:
        lanes, waiter, order = Lanes(), ThreadWaiter(), []

        def work(number: int) -> None:
            with lanes.lane("s", waiter, lambda: None, 30):
                order.append(number)

        with lanes.lane("s", waiter, lambda: None, 30):
            threads = []
            for number in range(3):
                threads.append(threading.Thread(target=work, args=(number,)))
                threads[-1].start()
                while lanes.waiting("s") <= number:
                    pass
        for thread in threads:
            thread.join()
        assert order == [0, 1, 2]
        assert not lanes.is_busy("s")

    def test_waiting_ends_and_leaves_the_runner_alone(self) -> None:
        now = [0.0]
        lanes, waiter = Lanes(), ThreadWaiter(lambda: now[0])

        def wait() -> None:
            now[0] += 31
            lanes.wake()

        with lanes.lane("s", waiter, lambda: None, 30):
            caught: list[BaseException] = []

            def late() -> None:
                try:
                    with lanes.lane("s", waiter, lambda: None, 30):
                        pass
                except LaneTimeout as error:
                    caught.append(error)

            thread = threading.Thread(target=late)
            thread.start()
            while not lanes.waiting("s"):
                pass
            wait()
            thread.join()
        assert str(caught[0]) == 'wait for session "s" execution slot timed out after 30s'

    def test_too_many_are_turned_away(self) -> None:
        lanes = Lanes()
        lanes._queues["s"].extend(
            Ticket("s", lambda: None, "a test", shared=False) for _ in range(MOST_WAITING + 1)
        )
        entering = lanes.lane("s", ThreadWaiter(), lambda: None, 30)
        with pytest.raises(LaneFull, match="session lane s is full"), entering:
            pass

    def test_who_shares_a_lane_has_it_together_and_alone_from_others(self) -> None:
        lanes, waiter, order = Lanes(), ThreadWaiter(), []

        def act() -> None:
            with lanes.lane("s", waiter, lambda: None, 30):
                order.append("action")

        def loop() -> None:
            with lanes.lane("s", waiter, lambda: None, 30, shared=True):
                order.append("loop")

        with lanes.lane("s", waiter, lambda: None, 30, LOOP, shared=True):
            together = threading.Thread(target=loop)
            together.start()
            together.join()
            alone = threading.Thread(target=act)
            alone.start()
            while not lanes.waiting("s"):
                pass
            with lanes.lane(
                "s", waiter, lambda: None, 0, LOOP, shared=True
            ):  # inside of it: nobody is before it
                order.append("inner loop")
        alone.join()
        assert order == ["loop", "inner loop", "action"]

    def test_an_action_inside_a_loop_of_the_same_session_is_refused(self) -> None:
        lanes, waiter = Lanes(), ThreadWaiter()
        with lanes.lane("s", waiter, lambda: None, 30, LOOP, shared=True):
            action = lanes.lane("s", waiter, lambda: None, 30)
            with (
                pytest.raises(SessionBusy, match="session 's' is busy: this runs inside an agent_loop on it"),
                action,
            ):
                pass

    def test_an_action_inside_an_action_of_the_same_session_is_refused(self, runtime: SessionRuntime) -> None:
        runtime.create(id="s")
        runtime.create(id="t")
        with pytest.raises(SessionBusy, match="session 's' is busy: this runs inside one of its actions"):
            runtime.execute("s", lambda txn: runtime.execute("s", say("a")))
        runtime.execute("s", lambda txn: runtime.execute("t", say("a")))
        assert texts(runtime.get("t")) == ["a"]

    def test_threads_lose_nothing(self, runtime: SessionRuntime) -> None:
        session = runtime.create(id="s")

        def work(name: str) -> None:
            for number in range(5):
                runtime.execute("s", say(f"{name}{number}"))

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(texts(session)) == sorted(f"{name}{number}" for name in "abcd" for number in range(5))
        assert session.revision == 21

    def test_another_process_that_has_the_lease_is_waited_for(self, store: Store) -> None:
        if store.url == "memory:":
            return
        with SessionRuntime(store, wait_timeout=0) as runtime:
            runtime.create(id="s")
            with store.lease("session:s", wait=60), pytest.raises(LeaseHeld):
                runtime.execute("s", say("a"))
        with SessionRuntime(store) as runtime:
            assert texts(runtime.execute("s", say("a"))) == ["a"]

    def test_a_closed_runtime_lets_nobody_in(self, store: Store) -> None:
        runtime = SessionRuntime(store)
        runtime.create(id="s")
        runtime.close()
        with pytest.raises(StoreClosed):
            runtime.execute("s", say("a"))


_SAVER = """
import sys
from harnpy.session import SessionConflict, SessionRuntime
with SessionRuntime(sys.argv[1]) as runtime:
    revision = runtime.get("s").revision
    print(revision, flush=True)
    sys.stdin.readline()
    try:
        print(runtime.execute("s", lambda session: session.set_memo(1), expected_revision=revision).revision)
    except SessionConflict as conflict:
        print(conflict)
"""


def test_of_two_processes_that_loaded_revision_5_one_saves_6(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/chat.db"
    with SessionRuntime(url) as runtime:
        runtime.create(id="s")
        for number in range(4):
            runtime.execute("s", actions.WriteMetadata("n", number))
    pipe = subprocess.PIPE
    savers = [
        subprocess.Popen([sys.executable, "-c", _SAVER, url], stdin=pipe, stdout=pipe, text=True)
        for _ in range(2)
    ]
    for saver in savers:
        assert saver.stdout
        assert saver.stdout.readline() == "5\n"
    answers = [saver.communicate("go\n")[0] for saver in savers]
    assert answers == ["6\n", "Version conflict for session 's': expected revision 5, found 6\n"]
