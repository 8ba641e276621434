"""What a session keeps beside messages, how its history is rewritten, and the statuses of its life.

The same in memory, live on a store and read again. Spec: 10 §A2.1, §A3.5, §C3, §C3.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.session import (
    EventDraft,
    EventRejected,
    InvalidArgument,
    InvalidTransition,
    Session,
    SessionConflict,
    TaskList,
)
from harnpy.session.stored import StoredSession
from harnpy.storage import Store
from harnpy.storage.memory import MemoryStore
from harnpy.world import World
from tests.session.test_views_equal import load, views

STATUSES = ("active", "suspended", "completed", "failed", "deleted")


@pytest.fixture(params=["in memory", "on a store"])
def session(request: pytest.FixtureRequest, store: Store) -> Session:
    if request.param == "in memory":
        return Session.create("s", MemoryStore(), World())
    return StoredSession.begin("s", store, World())


def again(session: Session) -> Session:
    """Return the session as its store gives it back; one in memory as it is."""
    return load(session.id, session.store) if isinstance(session, StoredSession) else session


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages]


def turn(session: Session, **end: Any) -> None:
    started = session.record("turn_started", {"agent_id": "a"})
    session.record("turn_completed", {"agent_id": "a", **end}, started)


class TestHistory:
    def test_messages_are_added_to_history_and_window(self, session: Session) -> None:
        session.add_history({"content": "a"})
        session.add_history(
            [{"role": "assistant", "content": "b"}, {"role": "tool", "content": "c", "k": [1]}]
        )
        assert session.messages() == [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "tool", "content": "c", "k": [1]},
        ]
        assert views(again(session)) == views(session)

    def test_a_history_is_replaced_in_one_append(self, session: Session) -> None:
        session.add_history([{"content": "a"}, {"content": "b"}])
        session.set("memo", 1)
        session.set_history([{"content": "c"}, {"content": "d"}])
        assert texts(session.messages()) == texts(session.history()) == ["c", "d"]
        assert [event.more for event in session.events()[-3:]] == [2, 1, 0]
        assert texts(session.history(include_reset=True)) == ["a", "b", "c", "d"]
        session.add_history({"content": "e"})
        session.set_history([])
        session.add_history({"content": "f"})
        assert (texts(session.messages()), texts(session.history()), session.memo) == (["f"], ["f"], 1)
        assert views(again(session)) == views(session)

    def test_a_clean_window_leaves_the_history(self, session: Session) -> None:
        session.add_history([{"content": "a"}, {"content": "b"}, {"content": "c"}])
        assert session.trim(2) == 2
        session.clean_window()
        session.add_history({"content": "d"})
        assert (texts(session.messages()), texts(session.history())) == (["d"], ["a", "b", "c", "d"])
        assert views(again(session)) == views(session)
        session.reset()
        assert (session.messages(), session.history()) == ([], [])

    def test_what_is_no_message_changes_nothing(self, session: Session) -> None:
        session.add_history({"content": "a"})
        for write in (session.add_history, session.set_history):
            with pytest.raises(InvalidArgument, match="messages must be dicts with a string `role`"):
                write([{"content": "b"}, {"role": 1}])
            with pytest.raises(EventRejected, match="data is not JSON: set at /content"):
                write([{"content": "b"}, {"content": {1}}])
        assert (texts(session.messages()), session.seq) == (["a"], 2)

    def test_messages_are_copies(self, session: Session) -> None:
        message = {"role": "user", "content": ["a"]}
        session.add_history(message)
        message["content"] = []
        assert session.messages() == [{"role": "user", "content": ["a"]}]


class TestRegisters:
    def test_memo_task_and_metadata(self, session: Session) -> None:
        assert (session.memo, session.task, session.metadata) == (None, None, {})
        memo = {"seen": [1]}
        assert session.set("memo", memo, source="me", reason="why", metadata={"k": 1}) == 1
        memo["seen"].append(2)
        session.memo["seen"].append(3)
        session.set_task("write a test")
        session.set("metadata.owner", "ann")
        session.set("metadata.gone", 1)
        session.set("metadata.gone", None)
        for one in (session, again(session)):
            assert (one.memo, one.task, one.metadata) == ({"seen": [1]}, "write a test", {"owner": "ann"})
            event = one.event(2)
            assert (event.data["source"], event.data["reason"], event.metadata) == ("me", "why", {"k": 1})
        session.set_task("  ")
        assert (session.task, session.get("task", "none")) == (None, "none")

    def test_what_is_not_json_is_rejected(self, session: Session) -> None:
        with pytest.raises(EventRejected, match="data is not JSON: set at /value"):
            session.set_memo({1})
        with pytest.raises(InvalidArgument, match="`pins` must be a list of event numbers"):
            session.set("pins", 3)
        with pytest.raises(EventRejected, match="`pins` must be a list of event numbers"):
            session.append(EventDraft("register_set", {"key": "pins", "value": ["a"], "version": 1}))
        assert session.version == 1
        with pytest.raises(InvalidArgument, match='unknown register "mood"'):
            session.set("mood", 1)
        assert session.seq == 1

    def test_a_todo_list(self, session: Session) -> None:
        assert (list(session.tasks), session.tasks.render()) == ([], "(no tasks)")
        session.set_tasks(
            [
                {"content": "Write"},
                {"content": "Review", "status": "in_progress", "activeForm": "Reviewing"},
                {"content": "Done", "status": "completed"},
            ]
        )
        tasks = again(session).tasks
        assert tasks.render() == "1. ○ Write\n2. ◐ Reviewing\n3. ● Done"
        assert tasks.summary() == "Tasks: 1/3 completed, 1 in progress, 1 pending"
        session.set_tasks(tasks[:1])
        assert session.tasks == TaskList.of([{"content": "Write", "activeForm": "Write"}])

    @pytest.mark.parametrize(
        ("tasks", "problem"),
        [
            ([{"content": "x"}] * 21, "Maximum 20 tasks allowed"),
            ([{"content": "x", "status": "in_progress"}] * 2, "Only 1 task can be in_progress"),
            ([{"content": " "}], "'content' is required"),
            ([{"content": "x", "status": "late"}], "'status' must be one of pending, in_progress, completed"),
            (["x"], "a task must be a dict, got str"),
        ],
    )
    def test_a_todo_list_that_breaks_a_rule(self, tasks: list[Any], problem: str) -> None:
        with pytest.raises(InvalidArgument, match=problem):
            TaskList.of(tasks)


class TestStatus:
    @given(st.lists(st.sampled_from(STATUSES), max_size=6))
    def test_a_status_follows_those_that_it_may_follow(self, wanted: list[str]) -> None:
        session, status = Session.create("s", MemoryStore(), World()), "active"
        for name in wanted:
            before = session.seq
            is_free = status in ("active", "suspended")
            if name == status or is_free or (name in ("active", "deleted") and status != "deleted"):
                session.set_status(name)
                assert session.seq == before + (name != status)
                status = name
            else:
                problem = f"cannot change session 's' from {status} to {name}"
                with pytest.raises(InvalidTransition, match=problem):
                    session.set_status(name)
                assert session.seq == before
            assert session.status == status

    def test_it_is_stored_with_its_reason(self, session: Session) -> None:
        session.set_status("failed", "no money")
        assert session.events()[-1].data == {"from": "active", "to": "failed", "reason": "no money"}
        assert again(session).status == "failed"
        with pytest.raises(InvalidArgument, match='unknown status "tired"'):
            session.set_status("tired")

    def test_what_others_have_changed_counts(self, store: Store) -> None:
        session = StoredSession.begin("s", store, World())
        load("s", store).set_status("deleted")
        with pytest.raises(InvalidTransition, match="from deleted to suspended"):
            session.set_status("suspended")
        other = load("s", store)
        session.record("custom", {})
        with pytest.raises(SessionConflict):
            other.set_history([])

    def test_what_became_of_the_last_turn(self, session: Session) -> None:
        def shown() -> str:
            one = again(session)
            if isinstance(session, StoredSession):
                assert session.info.execution == session.execution_status
            assert one.execution_status == session.execution_status
            return session.execution_status

        assert shown() == "pending"
        for end, status in (
            ({"turn_stop_reason": "completed"}, "completed"),
            ({"turn_stop_reason": "waiting"}, "stopped"),
            ({"error": "x"}, "failed"),
        ):
            turn(session, **end)
            assert shown() == status
        session.rewind(1)
        assert shown() == "stopped"
        session.redo()
        assert shown() == "failed"
        session.record("turn_started", {"agent_id": "a"})
        assert shown() == "in_progress"
        session.reset()
        assert shown() == "pending"

    def test_a_fork_begins_anew(self, store: Store) -> None:
        session = StoredSession.begin("s", store, World())
        turn(session, turn_stop_reason="completed")
        session.set_status("completed")
        forks = session.fork("f"), session.fork("g", at=3)
        for fork in (*forks, *(load(fork.id, store) for fork in forks)):
            assert (fork.status, fork.execution_status) == ("active", "pending")
            assert (fork.info.status, fork.info.execution) == ("active", "pending")
        forks[0].append(EventDraft("custom", {}))
        forks[0].set_status("suspended")
        assert (load("f", store).info.status, session.info.status) == ("suspended", "completed")


def test_every_change_is_one_that_memory_and_stores_agree_on(store: Store) -> None:
    changes: list[Callable[[Session], object]] = [
        lambda session: session.add_history([{"content": "a"}, {"content": "b"}]),
        lambda session: session.pin(session.events()[1].id),
        lambda session: session.trim(1),
        lambda session: session.set_history({"content": "c"}),
        lambda session: turn(session, turn_stop_reason="completed"),
        lambda session: session.add_history({"content": "d"}),
        lambda session: session.clean_window(),
        lambda session: session.set_tasks([{"content": "x"}]),
        lambda session: session.reset(),
    ]
    memory, stored = Session.create("s", MemoryStore(), World()), StoredSession.begin("s", store, World())
    for change in changes:
        change(memory)
        change(stored)
        shown = {**views(memory), "transcript": None}
        assert {**views(stored), "transcript": None} == shown
        assert {**views(load("s", store)), "transcript": None} == shown


class TestQuestions:
    """What a log tells whoever asks (10 §A1.6)."""

    def test_what_was_said_last(self, session: Session) -> None:
        assert (session.last_message(), session.last_assistant_message()) == (None, None)
        session.append_user("a")
        session.append_message({"role": "assistant", "content": "b"})
        blank = {"role": "assistant", "content": " "}
        session.append_prompt([blank, {**blank, "tool_calls": [{"id": "c"}]}])
        for each in (session, again(session)):
            assert each.last_assistant_message() == {"role": "assistant", "content": "b"}
            last, event = each.last_message(), each.last_event()
            assert last is not None
            assert event is not None
            assert (last["tool_calls"], event.id) == ([{"id": "c"}], each.events()[-1].id)
            assert each.reduce(lambda count, event: count + (event.type == "message_added"), 0) == 4
        with pytest.raises(InvalidArgument, match="a prompt must contain at least one message"):
            session.append_prompt([])

    def test_context_is_the_models_alone(self, session: Session) -> None:
        session.append_context("Today is Monday.", "clock", "prefix")
        assert session.messages() == []
        assert "Today is Monday." in str(again(session).window())
        with pytest.raises(InvalidArgument, match="`placement` must be `prefix` or `history`, not 'end'"):
            session.append_context("x", placement="end")

    def test_whether_it_waits_and_what_it_cost(self, session: Session) -> None:
        assert not session.is_waiting
        for type, waits in (
            ("wait_started", True),
            ("message_added", True),
            ("wait_resolved", False),
            ("approval_requested", True),
            ("approval_canceled", False),
        ):
            session.append(EventDraft(type, {"role": "user", "content": "x", "id": "a"}, cost=0.5))
            assert (session.is_waiting, again(session).is_waiting) == (waits, waits)
        assert session.total_cost == again(session).total_cost == 2.5

    def test_models_and_scratchpads(self, session: Session) -> None:
        assert session.model_settings == (None, "off", None)
        session.set("model", {"model": "m"})
        session.set("tools", [])
        assert again(session).model_settings == ({"model": "m"}, "off", [])
        assert session.set_scratchpad({"n": 1}, reason="r") == 1
        assert again(session).scratchpad == {"n": 1}
        assert session.clear_scratchpad() == 2
        assert session.scratchpad is None
