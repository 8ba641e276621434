"""What every earlier harnpy has stored opens today, exports the same and can be written to. Spec: 10 §C6.

Each folder with a number is a generation: see README.md.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm
from harnpy.eventlog import LogEvent, StoreEventLog
from harnpy.eventlog.bearer import BearerSessions, TouchSession
from harnpy.eventlog.waitpoints import Waitpoints
from harnpy.session import ChildSpec, FileArtifactStore, SessionQuery, SessionRuntime, ToolAmbiguous
from harnpy.storage import open_store
from tests.stored import exports, places
from tests.stored.tokens import TOKENS

HERE = Path(__file__).parent
GENERATIONS = sorted(path.parent.name for path in HERE.glob("*/expected"))
#: What the log of a session may hold (10 §A1.2, §C3.1), and a type that nobody knows.
TYPES = set(
    """session_created status_changed action_executed register_set transcript_event message_added
    context_added history_replaced compaction_started compaction_triggered projection_snapshotted leaf_moved
    branch_summary turn_started step_started step_completed tool_started tool_output_delta tool_completed
    escalation_retried turn_completed approval_requested approval_resolved approval_canceled external_input
    wait_started wait_resolved handoff child_requested child_started child_progressed child_blocked
    child_completed child_failed child_canceled child_merged artifact_recorded store_repaired
    weather_changed""".split()
)
#: The kind of a store and its URL.
Opened = tuple[str, str]
STILL_HERE = {"role": "user", "content": "Still here?"}


@pytest.fixture(params=GENERATIONS)
def generation(request: pytest.FixtureRequest) -> Path:
    return HERE / str(request.param)


@pytest.fixture
def expected(generation: Path) -> exports.Texts:
    """What the stores and the project of the generation exported when it was made."""
    return exports.kept(generation / "expected")


@pytest.fixture(params=places.KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(generation: Path, kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A store of the generation, copied."""
    postgres = str(request.getfixturevalue("bare_postgres")) if kind == "postgres" else None
    return places.copied(kind, generation, tmp_path, postgres)


@pytest.fixture
def each(generation: Path, tmp_path: Path, bare_postgres: str) -> list[Opened]:
    """All stores of the generation, copied: the frameworks take longer to import than to use."""
    return [(kind, places.copied(kind, generation, tmp_path, bare_postgres)) for kind in places.KINDS]


def compare(found: exports.Texts, expected: exports.Texts, kind: str = "") -> None:
    """Hold that each text is what it was; lists of lines first, which pytest shows well."""
    for name, text in found.items():
        then = expected[f"{kind} {name}" if name in exports.OWN else name]
        assert exports.lines_of(text) == exports.lines_of(then), name
        assert text == then, name


def test_a_generation_holds_every_type_of_event(expected: exports.Texts) -> None:
    logs = [text for name, text in expected.items() if name.startswith("logs/")]
    assert {json.loads(line)["type"] for log in logs for line in exports.lines_of(log)} >= TYPES


def test_sessions_export_the_same(url: str, kind: str, expected: exports.Texts) -> None:
    found = exports.of_sessions(url)
    logs = {name for name in expected if name.startswith("logs/")}
    assert {name for name in found if name.startswith("logs/")} == logs
    compare(found, expected, kind)
    compare(exports.of_transcripts(url), expected)


def test_topics_export_the_same(url: str, expected: exports.Texts) -> None:
    compare(exports.of_topics(url), expected)


def test_nothing_is_wrong_with_a_store(url: str) -> None:
    with closing(open_store(url)) as store:
        assert store.fsck().findings == []
        assert store.gc(dry_run=True, older_than=0).streams == ["deleted"]


def test_threads_of_langgraph_export_the_same_and_go_on(each: list[Opened], expected: exports.Texts) -> None:
    from langgraph.types import Command

    from harnpy.adapters.langgraph import HarnpySaver
    from tests.stored.graph import graph

    for kind, url in each:
        compare(exports.of_threads(url), expected, kind)
        with closing(open_store(url)) as store:
            for thread in ("interrupted", "copied", "pruned"):
                config = {"configurable": {"thread_id": thread}}
                result = graph(HarnpySaver(store)).invoke(Command(resume="yes"), config)
                assert result == {"said": ["start", "a", "b"], "answer": "yes"}


def test_items_of_the_agents_sdk_export_the_same_and_go_on(
    each: list[Opened], expected: exports.Texts
) -> None:
    from harnpy.adapters.openai_agents import HarnpySession

    async def go_on(session: Any) -> None:
        before = await session.get_items()
        await session.add_items([STILL_HERE, STILL_HERE])
        assert await session.pop_item() == STILL_HERE
        assert await session.get_items() == [*before, STILL_HERE]

    for _, url in each:
        compare(exports.of_items(url), expected)
        with closing(open_store(url)) as store:
            asyncio.run(go_on(HarnpySession("sdk", store)))


def test_every_session_can_be_written_to(url: str, expected: exports.Texts) -> None:
    with SessionRuntime(url) as runtime:
        ids = [info.id for info in runtime.list(SessionQuery(limit=1000)).items]
        for id in ids:
            session = runtime.open(id)
            seen = session.seq
            session.append_message(STILL_HERE)
            session.fork(f"{id[:150]}, forked").append_message(STILL_HERE)
            assert [session.seq, session.messages()[-1]] == [seen + 1, STILL_HERE]
    with SessionRuntime(url) as runtime:
        for id in ids:
            *before, last = exports.lines_of(runtime.export(id))
            assert before == exports.lines_of(expected[f"logs/{id}"])
            assert json.loads(last)["data"] == STILL_HERE
            fork = runtime.open(f"{id[:150]}, forked")
            assert fork.messages() == [*runtime.open(id).messages(), STILL_HERE]
            assert fork.info.parent_id == id
        assert runtime.store.fsck().findings == []


def test_turns_go_on(url: str, generation: Path, tmp_path: Path) -> None:
    with SessionRuntime(url) as runtime:
        done: list[str] = []

        def _dies(messages: Any, turn: Any) -> Any:
            room = turn.tool("book", {"nights": 2}, lambda args: done.append("booked"), idempotent=True)
            yield {"role": "assistant", "content": f"You have {room}."}
            try:
                turn.tool("pay", {"euros": 120}, lambda args: done.append("paid"))
            except ToolAmbiguous:
                yield "I may have paid."

        result = runtime.send("unfinished", "For two nights.", agent=_dies, idempotency_key="mail-17")
        assert [result.text, done] == ["I may have paid.", []]
        assert [message["content"] for message in result.messages][-2:] == [
            "You have room 7.",
            "I may have paid.",
        ]

        def never(*given: object) -> str:
            pytest.fail("it has been done")

        recorded = runtime.send("support", "When does it come?", agent=never, idempotency_key="mail-2")
        assert recorded.text == "It is at the station, and comes on Monday."
        runtime.execute("support", never, idempotency_key="mail-1")
        assert runtime.send("support", "Hello?", agent=lambda messages: str(len(messages))).text == "11"

        branches = runtime.open("branches")
        window = branches.messages()
        runtime.send("branches", "And now?", agent=lambda messages: "This.")
        branches.rewind()
        assert branches.messages() == window
        branches.redo()
        branches.trim(1)
        cuts = runtime.open("cuts")
        cuts.resize("llm", keep_last=1, summarize=lambda prompt: "In short.")
        assert [message["content"].splitlines()[-1] for message in cuts.messages()][-2:] == [
            "In short.",
            "and now?",
        ]
        child = runtime.run_child("boss", ChildSpec(task="the roof", agent=lambda messages: "Nothing."))
        assert child.summary == "Nothing."
    with SessionRuntime(url) as runtime:
        assert [message["content"] for message in runtime.open("branches").messages()] == ["This."]
        assert runtime.info("unfinished").execution == "completed"
        assert runtime.open("support").messages()[-1]["content"] == "11"
    artifacts = shutil.copytree(generation / "artifacts", tmp_path / "artifacts")
    body, label = FileArtifactStore(str(artifacts)).open("label-42", verify=True)
    with body:
        assert [body.read(), label.producer_session_id] == [b"%PDF-1.7 ...\x00\xff", "support"]


_GO_ON = """
pipeline main(task) {
  let loop = agent_session_open("loop", {store: argv[0]})
  llm_mock({text: "Yes."})
  let reply = agent_loop("Still here?", nil, {session_id: loop, provider: "mock"}).visible_text
  let clients = agent_session_open("clients", {store: argv[0]})
  agent_session_attach(clients, "tui", {mode: "controller"})
  agent_session_client_inject_prompt(clients, "tui", "go on")
  agent_session_compact(clients, {keep_last: 1})
  return [reply, agent_session_snapshot(loop).messages.slice(-1)[0].content, agent_session_length(clients)]
}
"""


def test_programs_go_on(url: str) -> None:
    assert Vm().run_source(_GO_ON, args=[url]) == ["Yes.", "Yes.", 2]
    with SessionRuntime(url) as runtime:
        assert [message["content"] for message in runtime.open("loop").messages()][-2:] == [
            "Still here?",
            "Yes.",
        ]


def test_topics_go_on(url: str) -> None:
    with closing(StoreEventLog(open_store(url))) as log:
        for topic in ("orders", "compacted"):
            assert log.append(topic, LogEvent("more")) == log.latest(topic)
            assert log.verify_topic(topic) == []
        log.ack("orders", "mailer", 6)
        points = Waitpoints(log)
        assert points.complete("open", {"day": "Sunday"}).changed
        assert not points.complete("completed", 1).changed
        points.complete("signalled later")
        assert points.wait(["open", "signalled later"], wait_id="still-waiting").status == "completed"
        sessions = BearerSessions(log)
        assert sessions.touch(TouchSession(TOKENS["alive"])) is not None
        assert sessions.expire(TOKENS["alive"])
    with closing(StoreEventLog(open_store(url))) as log:
        assert log.consumer_cursor("orders", "mailer") == 6
        assert Waitpoints(log).get("open").value == {"day": "Sunday"}  # type: ignore[union-attr]
        assert BearerSessions(log).get(TOKENS["alive"]) is None


def test_commands_read_a_store_and_copy_it(generation: Path, expected: exports.Texts, tmp_path: Path) -> None:
    url = places.copied("sqlite", generation, tmp_path)
    listed = json.loads(exports.said(tmp_path, "sessions", "--store", url, "--json", "list"))
    ids = {name.removeprefix("logs/") for name in expected if name.startswith("logs/")}
    sessions = {item["id"] for item in listed["items"] if item.get("kind", "session") == "session"}
    assert sessions == ids - {"deleted"}
    exported = exports.said(tmp_path, "sessions", "--store", url, "export", "every-type")
    compare({"logs/every-type": exported}, expected)
    exports.said(tmp_path, "sessions", "copy", url, "jsonl:copy")
    with SessionRuntime(f"jsonl:{tmp_path}/copy") as runtime:
        compare({f"logs/{id}": runtime.export(id) for id in ids - {"deleted"}}, expected)


def test_a_project_exports_the_same(generation: Path, expected: exports.Texts, tmp_path: Path) -> None:
    project = shutil.copytree(generation / "project", tmp_path / "project")
    compare(exports.of_project(project), expected)


_RESUMED = """
let steps = {
  entry: "a",
  nodes: {a: {kind: "reduce"}, b: {kind: "condition"}, c: {kind: "reduce"}, d: {kind: "reduce"}},
  edges: [{from: "a", to: "b"}, {from: "b", to: "c", branch: "true"}, {from: "b", to: "d", branch: "false"}],
}
let done = workflow_execute("steps", steps, nil, {resume_path: ".harn-runs/paused.json"})
return [done.status, done.run.stages.map({ stage -> stage.node_id })]
"""


def test_a_run_is_resumed(generation: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = shutil.copytree(generation / "project", tmp_path / "project")
    monkeypatch.chdir(project)
    assert Vm().run_source(_RESUMED) == ["completed", ["a", "b", "c"]]
