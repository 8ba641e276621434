"""What Canto's package document says of sessions, as a program on the face. Spec: 10 §A1, §B2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harnpy.faces import canto
from harnpy.faces.canto import (
    ArtifactRecordedData,
    CompactionSnapshot,
    ContextEntry,
    ContextKind,
    EventType,
    ForkOptions,
    JSONLStore,
    Rebuilder,
    Session,
    SQLiteStore,
    ToolCompletedData,
    ToolStartedData,
    TurnCompletedData,
    TurnStartedData,
)

CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path":"."}'}}
SUMMARY = "<conversation_summary>\nThey looked at files.\n</conversation_summary>"


def turn(session: Session) -> None:
    """An agent's turn: what `agent.Turn(ctx, sess)` of the document appends."""
    id = session.id()
    session.append(canto.new_turn_started_event(id, TurnStartedData(agent_id="coder")))
    session.append(canto.new_message(id, {"role": "assistant", "content": "", "tool_calls": [CALL]}))
    started = ToolStartedData("ls", '{"path":"."}', "c1", idempotency_key="key")
    session.append(canto.new_tool_started_event(id, started))
    completed = ToolCompletedData("ls", "c1", output="a.txt", idempotency_key="key")
    session.append(canto.new_tool_completed_event(id, completed))
    session.append(canto.new_message(id, canto.tool_message("ls", "c1", "a.txt")))
    session.append(canto.new_message(id, canto.assistant_message("There is a.txt.")))
    end = TurnCompletedData("coder", 1, turn_stop_reason="completed")
    session.append(canto.new_turn_completed_event(id, end))


@pytest.fixture(params=["jsonl", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    made = canto.new_jsonl_store if request.param == "jsonl" else canto.new_sqlite_store
    with made(str(tmp_path / "sessions")) as store:
        yield store


def test_the_document(store: JSONLStore | SQLiteStore) -> None:
    session = store.load("s")
    assert (session.events(), session.last_event(), session.is_waiting()) == ([], None, False)

    # cancel := session.AttachWriteThrough(ctx, sess, store); defer cancel(); agent.Turn(ctx, sess)
    cancel = canto.attach_write_through(session, store)
    session.append_user("Which files are there?")
    turn(session)
    assert len(store.load("s").events()) == len(session.events()) == 8, "every event is there at once"
    cancel()
    session.append_user("This isn't stored.")
    assert (len(session.events()), len(store.load("s").events())) == (9, 8)
    session = store.load("s")

    # "MessageAdded events are conversational transcript. ContextAdded events are model-visible context,
    # replayed as ordinary user-role context [and] can be placed before the transcript."
    session.append_context(ContextEntry("Be brief.", kind=ContextKind.HARNESS))
    roles = [(entry.message["role"], entry.context_kind) for entry in session.effective_entries()]
    assert roles == [
        ("user", "harness"), ("user", None), ("assistant", None), ("tool", None), ("assistant", None)
    ]  # fmt: skip
    tool = session.effective_entries()[3].tool
    assert tool == {"id": "c1", "name": "ls", "args": '{"path":"."}', "idempotency_key": "key"}

    # "Lifecycle events are durable but hidden."; "Messages returns the raw transcript."
    assert [event.type for event in session.all()].count(EventType.TURN_STARTED) == 1
    assert len(session.messages()) == 4
    assert session.last_assistant_message() == canto.assistant_message("There is a.txt.")

    # "Replayer reconstructs a Session from an event stream without re-emitting side effects."
    counting = canto.with_replay_reducer(
        lambda state, event: {**state, event.type: state.get(event.type, 0) + 1}
    )
    replayed = canto.new_replayer(counting).replay("s", session.events())
    assert replayed.effective_messages() == session.effective_messages()
    assert replayed.state()["message_added"] == 4

    # "Rebuilder reconstructs the post-compaction view from durable snapshots plus later appended events."
    last = session.last_event()
    assert last is not None
    kept = [entry.shown() for entry in session.effective_entries() if entry.placement == "prefix"]
    summary = {"context_kind": "summary", "placement": "prefix", "message": canto.user_message(SUMMARY)}
    snapshot = CompactionSnapshot(
        "summarize", cutoff_event_id=last.id, entries=[*kept, summary], read_files=["a.txt"]
    )
    session.append(canto.new_compaction_event("s", snapshot))
    session.append_user("And now?")
    shown = [message["content"] for message in Rebuilder().rebuild_messages(session)]
    files = "<working_set>\nRead-only files:\n- a.txt\n</working_set>"
    assert shown == ["Be brief.", SUMMARY, files, "And now?"]
    assert len(session.messages()) == 5, "the log is untouched"
    taken = next(event for event in session.backward() if event.type == EventType.COMPACTION_TRIGGERED)
    found = taken.compaction_snapshot()
    assert found is not None
    assert (found.strategy, found.cutoff_event_id, taken.turn_started_data()) == ("summarize", last.id, None)

    # "RecordArtifact and StoreArtifact": descriptors in the log.
    data = ArtifactRecordedData({"id": "a", "kind": "report", "uri": "file:a"})
    assert canto.record_artifact(session, data).producer_session_id == "s"

    # "Forked sessions preserve lineage by minting fresh event IDs and recording fork_origin metadata."
    fork = session.branch("f", ForkOptions("try", "another way"))
    origin = fork.events()[0].fork_origin()
    assert origin == canto.ForkOrigin("s", session.events()[0].id)
    assert fork.events()[0].id != session.events()[0].id
    assert fork.effective_messages() == session.effective_messages()
    assert [ancestry.session_id for ancestry in store.lineage("f")] == ["s", "f"]
    child = store.children("s")[0]
    assert (child.branch_label, child.fork_reason, child.depth) == ("try", "another way", 1)
    assert store.parent("f") == store.lineage("f")[0]
    assert store.parent("s") is None

    # Stores.
    until = store.load_until("s", session.events()[0].id)
    assert [message["content"] for message in until.messages()] == ["Which files are there?"]
    assert [event.type for event in store.search("s", "BRIEF")] == [EventType.CONTEXT_ADDED]
    assert [event.seq for event in store.events_after("s", last.seq)] == [last.seq + n for n in (1, 2, 3)]
    record = canto.find_tool_execution_by_key(session, "key")
    assert record is not None
    assert (record.started, record.completed) == (None, ToolCompletedData("ls", "c1", "a.txt", None, "key"))
    run = canto.export_run(session)
    assert [turn.output["content"] for turn in run.turns] == ["", "There is a.txt."]
    assert canto.distill(run).calls == [{"tool": "ls", "args": '{"path":"."}', "result": "a.txt"}]
