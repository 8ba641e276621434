"""Canto's names on its face, and what they do in the corners.

Spec: 10 §A1.1, §A1.4, §A1.5, §A1.6, §A1.9, §A1.12, §A1.17, §B2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from harnpy.faces import canto
from harnpy.faces.canto import ChildSpec, Event, Runner, Store, WaitData
from harnpy.session import Session as HarnSession
from harnpy.session.agent_turn import Turn
from harnpy.session.artifacts import FileArtifactStore
from harnpy.session.errors import (
    BudgetExceeded,
    EventDecodeError,
    EventRejected,
    InvalidArgument,
    SessionExists,
    TransferError,
)
from harnpy.session.resize_policy import ResizePolicy
from harnpy.storage.errors import Unsupported

FUNCTIONS = """
AssistantMessage AttachWriteThrough DistillRun=Distill EnsureTurnID ExportRun ExportRunTree
FindToolExecutionByKey IsWorkspaceFileReferenceArtifact MarshalEventJSON MetadataFromContext New
NewArtifactRecordedEvent NewChildBlockedEvent NewChildCanceledEvent NewChildCompletedEvent
NewChildFailedEvent NewChildMergedEvent NewChildProgressedEvent NewChildRequestedEvent NewChildStartedEvent
NewCompactionEvent NewContext NewEscalationRetriedEvent NewEvent NewJSONLStore NewMessage
NewProjectionSnapshot NewProjectionSnapshotter NewRebuilder NewReplayer NewSQLiteStore
NewStepCompletedEvent NewStepStartedEvent NewToolCompletedEvent NewToolStartedEvent NewTurnCompletedEvent
NewTurnStartedEvent NewUserMessage NewWaitResolvedEvent NewWaitStartedEvent RecordArtifact StoreArtifact
SystemMessage ToolMessage TurnIDFromContext UnmarshalEventJSON UserMessage WithMetadata WithReplayReducer
WithTurnID CompactSession
""".split()

CLASSES = """
ArtifactRecordedData ArtifactRef ChildBlockedData ChildCanceledData ChildCompletedData ChildFailedData
ChildMergedData ChildMode ChildProgressedData ChildRequestedData ChildRunLog ChildStartedData ChildStatus
CompactionSnapshot ContextEntry ContextKind ContextPlacement Episode EpisodeCall EscalationRetriedData Event
EventType ForkOptions ForkOrigin HistoryEntry JSONLStore Offloader ProjectionSnapshot
CompactQueue BudgetGuard TokenGuard ProjectionSnapshotter
ProjectionTrigger PromptCacheData Rebuilder Replayer RunLog RunTurn Runner SQLiteStore Session
SessionAncestry StepCompletedData StepStartedData Store Subscription Summarizer ToolCompletedData
ToolExecutionRecord ToolHistory ToolStartedData TurnCompletedData TurnStartedData WaitData Writer
""".split()

METHODS = {
    "Event": "ArtifactRecordedData ChildBlockedData ChildCanceledData ChildCompletedData ChildFailedData "
    "ChildMergedData ChildProgressedData ChildRequestedData ChildStartedData CompactionSnapshot "
    "EscalationRetriedData ForkOrigin ProjectionSnapshot StepCompletedData StepStartedData ToolCompletedData "
    "ToolStartedData TurnCompletedData TurnStartedData UnmarshalData WaitData",
    "Session": "ActiveEvents All Append AppendBranchSummary AppendContext AppendPrompt AppendUser Backward "
    "Branch BranchEvents EffectiveEntries EffectiveMessages EffectiveSettings Events Fork HasWatchers ID "
    "IsWaiting LastAssistantMessage LastEvent LastMessage LeafID Messages MoveLeaf MoveLeafWithSummary "
    "ObserveEvents State TotalCost Watch WithReducer WithWriter",
    "Store": "BranchSession Children Close EventsAfter Fork ForkWithOptions Lineage Load LoadUntil Parent "
    "Save SaveAncestry Search",
    "Subscription": "Close Events",
    "Replayer": "Apply NewSession Replay",
    "Rebuilder": "RebuildEntries RebuildMessages",
    "ProjectionSnapshotter": "Snapshot SnapshotIfNeeded",
    "Runner": "Bootstrap Delegate Evict Run ScheduleChild Send SendStream SpawnChild WaitChild Watch",
}


def snake(name: str) -> str:
    """A name of Go's as Python spells it."""
    name = name.split("=")[-1].replace("JSONL", "Jsonl").replace("SQLite", "Sqlite")
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def test_every_name_of_the_document_is_on_the_face() -> None:
    missing = [name for name in map(snake, FUNCTIONS) if name not in canto.__all__]
    missing += [name for name in CLASSES if name not in canto.__all__]
    for owner, names in METHODS.items():
        kind = getattr(canto, owner)
        missing += [f"{owner}.{name}" for name in map(snake, names.split()) if not hasattr(kind, name)]
    assert missing == []


@pytest.fixture
def store() -> Iterator[Store]:
    with Store("memory:") as store:
        yield store


def test_events_have_an_id_once_they_are_appended() -> None:
    session = canto.new("s")
    event = canto.new_user_message("s", "hi")
    assert (event.id, event.seq) == ("", 0)
    with canto.with_metadata({"client": "cli", "a": 1}), canto.with_metadata(a=2), canto.with_turn_id("T"):
        assert canto.metadata_from_context() == {"client": "cli", "a": 2}
        session.append(event)
    assert (event.seq, event.metadata, event.turn_id) == (2, {"client": "cli", "a": 2}, "T")
    line = canto.marshal_event_json(event)
    assert line.startswith(
        b'{"id":"' + event.id.encode() + b'","session_id":"s","turn_id":"T","seq":2,"parent_id"'
    )
    copy = canto.unmarshal_event_json(line)
    assert canto.marshal_event_json(copy) == line
    other = canto.new("s")
    other.append(copy)
    assert other.events()[0].id == event.id
    with pytest.raises(ValueError, match="'type' is missing"):
        canto.unmarshal_event_json(b'{"id":"x","session_id":"s"}')


def test_payloads_are_read_by_type() -> None:
    session = canto.new("s")
    session.append(canto.new_wait_started_event("s", WaitData("approval", "x-1")))
    event = session.events()[0]
    assert event.wait_data() == WaitData("approval", "x-1")
    assert (event.turn_started_data(), session.is_waiting()) == (None, True)
    with pytest.raises(EventDecodeError, match="step_started"):
        Event("s", "step_started", {"agent_id": 7}).step_started_data()
    session.append(canto.new_event("s", "weather.seen", {"sun": True}))
    assert [event.type for event in session.backward()] == ["weather.seen", "wait_started"]
    assert session.events()[1].unmarshal_data() == {"sun": True}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"role": "system", "content": "x"}, "session append: message has invalid role"),
        ({"role": "assistant", "content": " "}, "session append: assistant message has no content"),
        (
            {"role": "tool", "content": "x", "tool_id": "c"},
            "session append: tool message has no matching pending",
        ),
    ],
)
def test_messages_that_no_model_takes(message: dict[str, str], text: str, store: Store) -> None:
    replayed = canto.new_replayer().replay("s", [])
    for session in (canto.new("s"), store.load("s"), canto.new("t").fork("u"), replayed):
        session.append_user("hi")
        with pytest.raises(EventRejected, match=text):
            session.append(canto.new_message("s", message))
        assert len(session.events()) == 1


def test_writers(store: Store) -> None:
    session = canto.new("s")
    session.append_user("before")
    with pytest.raises(Unsupported, match="branch session: session has no durable writer"):
        session.branch("f")
    assert session.with_writer(store) is session
    assert store.load("s").events() == []
    session.append_user("after")
    assert [message["content"] for message in store.load("s").messages()] == ["before", "after"]
    store.save(canto.new_user_message("s", "by name"))
    session.log.refresh()
    assert len(session.messages()) == 3
    late = canto.new("s").with_writer(store)
    late.append_user("found there")
    assert len(late.messages()) == 4
    other = canto.new("s")
    other.append_user("mine")
    with pytest.raises(SessionExists):
        other.with_writer(store).append_user("too late")
    branched = store.branch_session(canto.new("p"), "b")
    assert [ancestry.session_id for ancestry in store.lineage("b")] == ["p", "b"]
    assert branched.events() == []


class OwnStore:
    """A caller's own store: what it was given, which may be refused."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.is_full = False

    def save(self, event: Event) -> None:
        if self.is_full:
            raise OSError("no space")
        self.lines.append(canto.marshal_event_json(event))

    def __len__(self) -> int:
        return 0


def test_a_writer_of_the_callers_own_has_each_event_first(store: Store) -> None:
    own = OwnStore()
    session = canto.new("s")
    session.append_user("before")
    told: list[str] = []
    session.observe_events(lambda event: told.append(event.type))
    canto.attach_write_through(session, own)
    session.append_prompt([canto.user_message("a"), canto.assistant_message("b")])
    canto.record_artifact(session, canto.ArtifactRecordedData({"id": "r"}))
    own.is_full = True
    with pytest.raises(OSError, match="no space"):
        session.append_user("lost")
    with pytest.raises(OSError, match="no space"):
        session.move_leaf("")
    assert [event.type for event in session.events()] == [*["message_added"] * 3, "artifact_recorded"]
    assert told == ["message_added", "message_added", "artifact_recorded"]
    session.detach()
    session.append_user("kept in memory")
    read = [canto.unmarshal_event_json(line) for line in own.lines]
    assert [(event.id, event.data) for event in read] == [
        (event.id, event.data) for event in session.events()[1:4]
    ]
    with pytest.raises(InvalidArgument, match="a writer has a method `save"):
        session.with_writer(object())  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="not on OwnStore: give that to a session as its writer"):
        Runner(own)  # type: ignore[arg-type]
    assert canto.Session("new", writer=own).with_writer(store).fork("f").events() == []


def test_everything_that_is_written_is_stored(store: Store, tmp_path: Path) -> None:
    files = FileArtifactStore(str(tmp_path / "artifacts"))
    for number, write in enumerate(
        [
            lambda session: canto.record_artifact(session, canto.ArtifactRecordedData({"id": "r"})),
            lambda session: canto.store_artifact(
                session, files, canto.ArtifactRecordedData({"id": "r"}), b"x"
            ),
            lambda session: canto.ProjectionSnapshotter().snapshot(session),
            lambda session: canto.ProjectionSnapshotter(0, timedelta(0)).snapshot_if_needed(session),
            lambda session: session.append_user("hi"),
        ]
    ):
        session = store.load(f"s{number}")
        write(session)
        assert [event.id for event in store.load(f"s{number}").events()] == [
            event.id for event in session.events()
        ]


def test_a_search_with_operators(tmp_path: Path) -> None:
    with canto.SQLiteStore(str(tmp_path / "s.db")) as store:
        session = store.load("s")
        for text in ("deploy works", "deploy fails", "build fails", 'they said "AND" or not'):
            session.append_user(text)
        found = {
            query: [event.data["content"] for event in store.search("s", query)]
            for query in ("deploy NOT works", "build OR works", "depl*", '"AND" or', "fails deploy")
        }
        assert found == {
            "deploy NOT works": ["deploy fails"],
            "build OR works": ["deploy works", "build fails"],
            "depl*": ["deploy works", "deploy fails"],
            '"AND" or': ['they said "AND" or not'],
            "fails deploy": ["deploy fails"],
        }
        for number in range(60):
            session.append_user(f"deploy {number}")
        assert len(store.search("s", "deploy")) == 62
    with canto.JSONLStore(str(tmp_path / "logs")) as other:
        other.load("s").append_user("deploy")
        with pytest.raises(Unsupported, match="searches exist on SQLite only"):
            other.search("s", "deploy OR build")


def test_events_that_were_read_keep_their_times(store: Store, tmp_path: Path) -> None:
    session = canto.new("s")
    with canto.with_turn_id("t1"):
        session.append(canto.new_turn_started_event("s", canto.TurnStartedData("bot")))
        session.append(Event("s", "weather", {"sun": True}, {"by": "me"}, 0.5))
        session.append(canto.new_turn_completed_event("s", canto.TurnCompletedData("bot", 1)))
    lines = [canto.marshal_event_json(event) for event in session.events()]
    lines = [re.sub(rb'(?<="timestamp":")....', b"2001", line) for line in lines]
    former = [shown(canto.unmarshal_event_json(line)) for line in lines]
    copies = [store, canto.JSONLStore(str(tmp_path / "copy"))]
    for copy in copies:
        for line in lines:
            copy.save(canto.unmarshal_event_json(line))
        copy.runtime.evict("s")
        assert list(map(shown, copy.load("s").events())) == former
        assert copy.load("s").log.view.open_turns == {}
    copies[1].close()
    in_memory = canto.new("s")
    for line in lines:
        in_memory.append(canto.unmarshal_event_json(line))
    assert list(map(shown, in_memory.events())) == former
    in_memory.append_user("now")
    assert in_memory.events()[-1].timestamp > "2020"


def shown(event: Event) -> list[Any]:
    names = ("id", "seq", "turn_id", "type", "timestamp", "data", "metadata", "cost")
    return [getattr(event, name) for name in names]


def test_watches_and_reducers(store: Store) -> None:
    session = store.load("s").with_reducer(lambda state, event: {**state, "last": event.type})
    assert session.state() == {}
    watch = session.watch()
    told: list[str] = []
    leave = session.observe_events(lambda event: told.append(event.type))
    assert session.has_watchers()
    session.append_user("hi")
    leave()
    seen = watch.next(timeout=5)
    assert seen is not None
    assert (seen.data["content"], told, session.state()) == (
        "hi",
        ["message_added"],
        {"last": "message_added"},
    )
    session.append_user("ho")
    watch.close()
    watch.close()
    assert [event.data["content"] for event in watch.events()] == ["ho"]
    assert not session.has_watchers()
    assert session.fork("f").state() == {"last": "message_added"}


def test_branches_within_a_session() -> None:
    session = canto.new("s")
    assert session.leaf_id() == ""
    session.append_prompt([canto.user_message(text) for text in ("a", "b")])
    first, second = session.events()
    session.move_leaf_with_summary(first.id, "b was tried")
    session.append_user("c")
    texts = [message["content"] for message in session.effective_messages()]
    assert (texts[0], texts[2]) == ("a", "c")
    assert "b was tried" in texts[1]
    assert [event.type for event in session.active_events()] == [
        "message_added",
        "branch_summary",
        "message_added",
    ]
    assert [event.id for event in session.branch_events(second.id)] == [first.id, second.id]
    assert session.branch_events("") == []
    session.move_leaf("")
    assert session.effective_messages() == []
    with pytest.raises(EventRejected, match='target event "gone" not found'):
        session.move_leaf("gone")


def test_replaying_event_by_event() -> None:
    session = canto.new("s")
    session.append_prompt([canto.user_message(text) for text in ("a", "b")])
    replayer = canto.new_replayer()
    target = replayer.new_session("s")
    for event in session.all():
        replayer.apply(target, event)
    assert target.messages() == session.messages()
    with pytest.raises(TransferError, match='session id mismatch: session="s" event="t"'):
        replayer.apply(target, canto.new_user_message("t", "x"))


def test_snapshots_and_compaction(store: Store) -> None:
    session = store.load("s")
    for number in range(8):
        session.append_user(f"question {number} " + "x" * 200)
        session.append(canto.new_message("s", canto.assistant_message(f"answer {number}")))
    snapshotter = canto.new_projection_snapshotter()
    assert not snapshotter.snapshot_if_needed(session)
    assert snapshotter.snapshot(session)
    assert canto.compact_session(session, lambda prompt: "They talked.", max_tokens=100)
    assert len(session.effective_messages()) == 7
    assert "They talked." in session.effective_messages()[0]["content"]
    assert not canto.compact_session(session, lambda prompt: "", max_tokens=100_000)
    with pytest.raises(InvalidArgument, match="compact session: max tokens must be > 0"):
        canto.compact_session(session, lambda prompt: "", max_tokens=0)


def test_the_runner(store: Store) -> None:
    runner = Runner(store, lambda messages: f"{len(messages)} messages")
    watch = runner.watch("s")
    assert runner.send("s", "hi").text == "1 messages"
    assert [event.kind for event in runner.send_stream("s", "ho")][-1] == "result"
    store.load("s").append_user("and?")
    assert runner.run("s").text == "5 messages"
    begun = watch.next(0)
    assert begun is not None
    assert begun.type == "turn_started"
    assert not runner.evict("s")
    watch.close()
    assert runner.evict("s")
    assert isinstance(store.load("s").log, HarnSession)


def test_children_of_a_runner(store: Store) -> None:
    runner = Runner(store, lambda messages: f"done: {messages[-1]['content']}")
    runner.send("s", "hi")
    result = runner.delegate("s", ChildSpec(task="count", context="to 3"))
    assert (result.status, result.summary) == ("completed", "done: Task: count\nContext: to 3")
    ref = runner.spawn_child(
        "s", ChildSpec(mode=canto.ChildMode.FORK, messages=[canto.user_message("go on")])
    )
    assert runner.wait_child(ref.child_id, 10).status == canto.ChildStatus.COMPLETED
    assert [step.session_id for step in store.lineage(ref.session_id)] == ["s", ref.session_id]
    due = runner.schedule_child("s", ChildSpec(task="later", due_at=0))
    assert runner.wait_child(due.child_id, 10).status == "completed"
    session = store.load("s")
    seen = [data.summary for event in session.all() if (data := event.child_completed_data()) is not None]
    assert seen == ["done: Task: count\nContext: to 3", "done: go on", "done: Task: later"]
    tree = canto.export_run_tree(session, store.load)
    assert tree.child_runs is not None
    assert [child.status for child in tree.child_runs] == ["completed"] * 3
    assert all(child.run is not None for child in tree.child_runs)


def test_ancestry_of_logs_that_are_elsewhere(store: Store) -> None:
    record = canto.SessionAncestry("b", "a", branch_label="try", depth=1, created_at="2026-01-05T09:30:00Z")
    store.save_ancestry(record)
    assert [step.branch_label for step in store.lineage("b")] == ["try"]
    assert store.parent("b") is None
    store.save_ancestry(canto.SessionAncestry("a", created_at="2026-01-04T09:30:00Z"))
    store.save_ancestry(canto.SessionAncestry("a", branch_label="no", created_at="2026-01-05T00:00:00Z"))
    assert [(step.session_id, step.branch_label) for step in store.lineage("b")] == [("a", ""), ("b", "try")]


def test_bootstrap_guards_and_background_compaction() -> None:
    policy = ResizePolicy(summarize=lambda prompt: "They talked.", max_tokens=100)
    with Store("memory:", resize=policy) as store:

        def spends(messages: list[dict[str, str]], turn: Turn) -> Iterator[str]:
            for _ in range(3):
                with turn.step() as step:
                    step.cost = 0.25
                    step.usage = {"total_tokens": 10}
                    yield "so far "

        runner = Runner(store, spends)
        runner.bootstrap("s", cwd="/work", files=["b.txt", "a/"], tools=["ls"])
        entry = store.load("s").effective_entries()[0]
        assert entry.context_kind == canto.ContextKind.BOOTSTRAP
        with pytest.raises(BudgetExceeded, match=r"^budget exceeded: 0.5000 >= 0.5000$"):
            runner.send("s", "go", budget=canto.BudgetGuard(0.5))
        with pytest.raises(BudgetExceeded, match=r"^token budget exceeded: 20 > 15$"):
            runner.send("s", "go on", budget=canto.TokenGuard(15))
        session = store.load("s")
        for number in range(8):
            session.append_user(f"question {number} " + "x" * 200)
        report = canto.CompactQueue(store, "summarize").enqueue("s").result(10)
        assert report is not None
        assert report.shrunk
        assert entry.message in session.effective_messages()


@pytest.mark.parametrize("is_stored", [False, True])
def test_threads_share_a_session(store: Store, is_stored: bool) -> None:
    session = store.load("s") if is_stored else canto.new("s")

    def say(name: str) -> None:
        for number in range(20):
            session.append(canto.new_user_message("s", f"{name}{number}"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(say, "abcd"))
    assert [event.seq for event in session.events()] == list(range(2, 82))
    texts = [message["content"] for message in session.messages()]
    for name in "abcd":
        assert [text for text in texts if text[0] == name] == [f"{name}{number}" for number in range(20)]
