"""Reading the log, and moving the leaf (10 §A1.6, §A1.8, §A1.9, §C3)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from harnpy.session import (
    EventDraft,
    EventNotFound,
    EventRejected,
    Rebuilder,
    Session,
    SessionBusy,
    SessionReadOnly,
    SessionRuntime,
    drafts,
)
from harnpy.storage import Store


def numbers(events: list[object]) -> list[int]:
    return [event.seq for event in events]  # type: ignore[attr-defined]


def texts(session: Session) -> list[str]:
    return [message["content"] for message in session.messages()]


def test_reading_a_log(store: Store) -> None:
    with SessionRuntime(store) as runtime:
        session = runtime.create(id="s")
        for text in "abc":
            session.append(drafts.user(text), EventDraft("note"))
        last = session.events()[-1]
        fork = session.fork("f")
        for each in (session, fork, runtime.open("s", until=7)):
            events = each.events()
            assert numbers(events) == [1, 2, 3, 4, 5, 6, 7]
            assert numbers(each.events(after=5)) == numbers(each.events(5)) == [6, 7]
            assert numbers(each.events(after=1, until=events[3].id)) == [2, 3, 4]
            assert numbers(each.events(reverse=True, limit=2)) == [7, 6]
            assert numbers(each.events(types=["note"], limit=2)) == [3, 5]
            assert numbers(each.events(types=["note"], reverse=True, after=3, until=6)) == [5]
            assert numbers(each.events(until=datetime.now(UTC)))[-1] == 7
            assert all(event.session_id == each.id for event in events)
            with pytest.raises(EventNotFound):
                each.events(until="no")
            with pytest.raises(EventNotFound):
                each.events(until=datetime(1999, 1, 1, tzinfo=UTC))
        assert (session.leaf_id, fork.events()[-1].fork_origin) == (
            last.id, {"session_id": "s", "event_id": last.id},
        )  # fmt: skip

        def write(txn: Session) -> None:
            txn.append(EventDraft("note"))
            assert numbers(txn.events(types=["note"], reverse=True, limit=2)) == [8, 7]
            assert txn.events(limit=1)[0].type == "session_created"

        runtime.execute("s", write)


def test_an_abandoned_branch_stays_in_the_log(store: Store) -> None:
    with SessionRuntime(store) as runtime:
        session = runtime.create(id="s", seed=[{"content": "a"}])
        session.add_history([{"content": "b"}])
        first, left = session.events()[1:3]
        session.set("metadata.k", 1)
        session.set("model", {"model": "m"})
        session.move_leaf(first.id, "it led nowhere")
        assert (texts(session), session.metadata, session.model_settings.model) == (["a"], {"k": 1}, None)
        assert [entry.event_type for entry in session.entries()] == ["message_added", "branch_summary"]
        assert session.window()[1]["content"] == (
            "The following is a summary of a branch that this conversation came back from:\n"
            "<summary>\nit led nowhere\n</summary>"
        )
        session.add_history({"content": "c"})
        assert numbers(session.events(branch=True)) == [1, 2, 7, 8]
        assert numbers(session.events(branch=True, reverse=True, types=["message_added"])) == [8, 2]
        assert [event.seq for event in session.branch(left.id)] == [1, 2, 3]
        assert session.branch("") == []
        runtime.evict("s")
        fork = session.fork("f")
        for each in (runtime.get("s"), fork):
            moved, summary = each.events(after=5, until=7)
            here = each.events()[1].id
            assert (moved.data, summary.data["from_event_id"]) == ({"target_event_id": here}, here)
            assert (each.window(), each.leaf_id) == (session.window(), each.events()[-1].id)
        fork.move_leaf("")
        assert (fork.window(), fork.leaf_id) == ([], fork.events()[0].id)
        assert session.history(include_reset=True)[1]["content"] == "b"


def test_a_leaf_can_not_move_anywhere(store: Store) -> None:
    with SessionRuntime(store) as runtime:
        session = runtime.create(id="s", seed=[{"content": "a"}, {"content": "b"}])
        first, second = session.events(types=["message_added"])
        with pytest.raises(EventRejected, match=r'^session tree: target event "no" not found$'):
            session.move_leaf("no")
        with pytest.raises(EventRejected, match=r"leaf target cannot be the leaf event itself$"):
            session.move_leaf(second.id)
        with pytest.raises(EventRejected, match=r"^session branch summary: summary is required$"):
            session.move_leaf(first.id, "  ")
        assert session.version == 3
        (turn,) = session.append(drafts.turn_started("bot"))
        with pytest.raises(SessionBusy):
            session.move_leaf(first.id)
        session.append(EventDraft("turn_completed", {}, turn=turn))
        session.move_leaf(first.id)
        with pytest.raises(EventRejected, match="the leaf event itself"):
            session.move_leaf(first.id)
        with pytest.raises(SessionReadOnly):
            runtime.open("s", until=3).move_leaf(first.id)


def test_an_event_of_another_branch_moves_the_leaf_before_it() -> None:
    session = Session("s")
    session.add_history([{"content": "a"}, {"content": "b"}])
    first = session.events()[1].id
    (here,) = session.append(EventDraft("message_added", {"role": "user", "content": "c"}, parent_id=first))
    assert (texts(session), session.version, here.seq, here.parent_id) == (["a", "c"], 5, 5, first)
    (last,) = session.append(EventDraft("message_added", {"role": "user", "content": "d"}, parent_id=here.id))
    assert (texts(session), last.seq) == (["a", "c", "d"], 6)


def test_a_compaction_that_a_caller_made(store: Store) -> None:
    with SessionRuntime(store) as runtime:
        session = runtime.create(id="s", seed=[{"content": text} for text in "abc"])
        kept, cutoff = session.entries()[-1], session.leaf_id
        session.append_context("rules", kind="harness")
        session.append_user("d")
        session.append(
            drafts.compaction_triggered(
                "mine",
                cutoff_event_id=cutoff,
                entries=[
                    {"message": {"role": "user", "content": "a and b"}, "context_kind": "summary"},
                    {"event_id": kept.event_id, "message": kept.message},
                ],
                read_files=["b.txt", "a.txt"],
                modified_files=["b.txt"],
            )
        )
        files = "<working_set>\nModified files:\n- b.txt\nRead-only files:\n- a.txt\n</working_set>"
        assert [message["content"] for message in session.window()] == ["rules", "a and b", files, "c", "d"]
        assert session.history()[:3] == [{"role": "user", "content": text} for text in "abc"]
        runtime.evict("s")
        assert runtime.get("s").window() == session.fork("f").window() == session.window()
        short = Rebuilder(files_limit=0).messages(session)
        assert "- b.txt" not in short[2]["content"]
        assert Rebuilder().entries(session) == session.entries()
        before = session.window()
        session.append(drafts.compaction_triggered("counts for nothing"))
        assert session.window() == before
        session.append(drafts.compaction_triggered("all gone", cutoff_event_id=session.leaf_id, messages=[]))
        assert session.messages() == []


def test_a_fork_at_an_event_and_at_a_moment(store: Store) -> None:
    with SessionRuntime(store) as runtime:
        session = runtime.create(id="s", seed=[{"content": "a"}, {"content": "b"}])
        alone = Session("s")
        alone.add_history([{"content": "a"}, {"content": "b"}])
        for each in (session, alone):
            first = each.events()[1]
            assert texts(each.fork(at=first.id)) == texts(each.fork(at=2)) == ["a"]
            assert texts(each.fork(at=datetime.now(UTC))) == ["a", "b"]
            with pytest.raises(EventNotFound):
                each.fork(at="no")
            with pytest.raises(EventNotFound):
                each.fork(at=9)
        assert [hit.seq for hit in runtime.search("a", "s", types=["message_added"])] == [2]
        assert runtime.search("a", "s", types=["context_added"]) == []


def test_a_result_that_was_taken_back_is_no_result(store: Store) -> None:
    """10 §A1.8: tools are repaired along the branch."""
    with SessionRuntime(store) as runtime:
        session = runtime.create(id="s")
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        session.append(
            drafts.user("go"),
            drafts.message({"role": "assistant", "content": "wait", "tool_calls": [call]}),
            drafts.tool_started("f", "{}", "c"),
        )
        session.append(drafts.tool_completed("f", "c", "done"))
        assert [message["role"] for message in session.window()] == ["user", "assistant", "tool"]
        started = session.events(types=["tool_started"])[0]
        session.move_leaf(started.id)
        assert [message.get("tool_calls") for message in session.window()] == [None, None]
        session.append(drafts.tool_completed("f", "c", "done again"))
        assert session.window()[-1]["content"] == "done again"
