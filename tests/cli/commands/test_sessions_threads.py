"""`harnpy sessions` on threads of LangGraph and sessions of the Agents SDK. Spec: 10 §C20, §C21."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from harnpy.adapters.langgraph import HarnpySaver
from harnpy.adapters.openai_agents import HarnpySession
from harnpy.adapters.threads import ThreadCodec
from harnpy.cli.app import main
from harnpy.cli.thread_views import show_thread
from harnpy.storage import open_store
from tests.adapters.test_conversations import asked, graph, record, session, thread
from tests.session.transfer.test_databases import GRAPHS
from tests.storage.notes import NOTES, notes

Capture = pytest.CaptureFixture[str]
Said = tuple[int, str, str]
Run = Callable[..., Said]
Json = Callable[..., list[Any]]

URLS = {"jsonl": "jsonl:store", "sqlite": "sqlite:store.db", "postgres": None}


@pytest.fixture(params=URLS)
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with a session and a thread `both`, a thread `horse` that waits, and a session `agents`."""
    monkeypatch.chdir(tmp_path)
    url = URLS[request.param] or str(request.getfixturevalue("postgres"))
    with closing(open_store(url)) as store:
        session(store, "both", "a session says hello")
        asked(store, "horse")
        HarnpySaver(store).copy_thread("horse", "both")
        agents = HarnpySession("agents", store)
        asyncio.run(agents.add_items([{"role": "user", "content": "from the Agents SDK"}]))
    return url


@pytest.fixture
def sessions(url: str, capsys: Capture) -> Run:
    """Run a verb; return the status, stdout and stderr."""

    def run(*arguments: str, store: str = url) -> Said:
        status = main(["sessions", "--store", store, *arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


@pytest.fixture
def in_json(sessions: Run) -> Json:
    """Run a verb with --json; return the documents that it prints, one a line."""
    return lambda *arguments: [json.loads(line) for line in sessions("--json", *arguments)[1].splitlines()]


def columns(text: str) -> list[list[str]]:
    return [line.split()[:2] for line in text.splitlines()[1:]]


def test_list(sessions: Run, in_json: Json) -> None:
    status, out, err = sessions("list")
    assert (status, err) == (0, "")
    assert sorted(columns(out)) == [
        ["agents", "session"],
        ["both", "session"],
        ["both", "thread"],
        ["horse", "thread"],
    ]
    assert {name for name, _ in columns(sessions("list", "--kind", "thread")[1])} == {"both", "horse"}
    assert {name for name, _ in columns(sessions("list", "--kind", "session")[1])} == {"both", "agents"}
    [document] = in_json("list", "--kind", "all", "--limit", "3")
    assert len(document["items"]) == 3
    assert document["next"] is not None
    items = {(item["kind"], item["id"]): item for item in in_json("list")[0]["items"]}
    copied = items["thread", "both"]
    assert (copied["parent_id"], copied["status"], copied["fork_seq"]) == ("horse", "", copied["seq"])
    assert {name for name, _ in columns(sessions("list", "--status", "active")[1])} == {"both", "agents"}
    assert sessions("list", "--kind", "topic")[0] == 2


def test_nothing_to_list(sessions: Run) -> None:
    assert sessions("list", store="jsonl:empty")[1] == "no sessions or threads in jsonl:empty\n"
    assert sessions("list", "--kind", "thread", store="jsonl:empty")[1] == "no threads in jsonl:empty\n"


def test_show(sessions: Run, in_json: Json) -> None:
    status, out, err = sessions("show", "horse")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "thread horse: 3 checkpoints"
    assert lines[1].split()[1:4] == ["step", "1", "(loop)"]
    assert lines[2:] == [
        "messages:",
        "user: Which horse is there?",
        "assistant: A brown mare stands in the barn.",
        "asks: Shall I feed her?",
    ]
    assert sessions("show", "both")[1] == "user: a session says hello\n"
    assert sessions("show", "thread:both")[1].splitlines()[2:] == lines[2:]
    assert sessions("show", "thread:horse")[1] == out
    [shown] = in_json("show", "horse")
    assert (shown["kind"], shown["id"], shown["unread"]) == ("thread", "horse", {})
    assert [message["type"] for message in shown["values"]["messages"]] == ["human", "ai"]
    assert shown["writes"][0]["value"][0]["value"] == "Shall I feed her?"


def test_show_the_past_of_a_thread(sessions: Run, in_json: Json, url: str) -> None:
    with closing(open_store(url)) as store:
        graph(store).invoke(Command(resume="yes"), thread("horse"))
    history = in_json("show", "horse", "--history")
    assert [checkpoint["metadata"]["step"] for checkpoint in history] == [-1, 0, 1, 2, 3]
    assert history[3]["values"] == {"answer": "yes"}
    out = sessions("show", "horse", "--history")[1]
    assert out.count("Which horse is there?") == 1
    assert "        messages +\n        assistant: Done: yes.\n" in out
    assert "        answer: yes\n" in out
    events = in_json("show", "horse", "--events")
    assert [event["seq"] for event in events] == [*range(1, len(events) + 1)]
    assert len(sessions("show", "horse", "--events")[1].splitlines()) == len(events)
    # As it was: at a checkpoint, at a record, at a time.
    for at in (history[1]["checkpoint_id"], str(history[1]["seq"]), history[1]["timestamp"]):
        [shown] = in_json("show", "horse", "--at", at)
        assert shown["checkpoint_id"] == history[1]["checkpoint_id"]
        assert len(in_json("show", "horse", "--history", "--at", at)) == 2
    assert sessions("show", "horse", "--at", "nothing") == (
        1,
        "",
        "error: Checkpoint not found in thread 'horse': 'nothing'\n",
    )
    assert sessions("show", "horse", "--at", "2000-01-01") == (
        1,
        "",
        "error: thread 'horse' has no checkpoint\n",
    )


@pytest.mark.parametrize("what", [None, "events"])
def test_follow_a_thread(url: str, capsys: Capture, what: str | None) -> None:
    """What comes is shown as it comes: checkpoints, or records."""
    with closing(open_store(url)) as store:
        looks = iter([lambda: graph(store).invoke(Command(resume="yes"), thread("horse"))])

        def changes(kind: str, name: str, after: int, timeout: float) -> int:
            for look in looks:
                look()
                return after + 1
            raise KeyboardInterrupt

        store.changes = changes  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            show_thread(store, True, "horse", what, None, follow=True)
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    if what is None:
        assert [document["metadata"]["step"] for document in said] == [1, 2, 3]
    else:
        assert [document["seq"] for document in said] == [*range(1, len(said) + 1)]


def test_search(sessions: Run, in_json: Json) -> None:
    status, out, err = sessions("search", "BROWN mare")
    assert (status, err) == (0, "")
    [line] = out.splitlines()
    assert line.startswith("thread:horse:")
    assert line.endswith("  A brown mare stands in the barn.")
    [hit] = in_json("search", "brown", "horse")
    assert (hit["kind"], hit["thread_id"], hit["text"]) == (
        "thread",
        "horse",
        "A brown mare stands in the barn.",
    )
    [hit] = in_json("search", "hello")
    assert (hit["kind"], hit["session_id"]) == ("session", "both")
    assert sessions("search", "agents")[1].startswith("agents:")
    assert sessions("search", "brown", "--kind", "session") == (0, "", "")
    assert sessions("search", "hello", "--kind", "thread") == (0, "", "")
    assert sessions("search", "hello", "both")[1].startswith("both:")
    assert sessions("search", "brown", "both", "--kind", "thread")[0] == 0
    assert sessions("search", "brown", "horse", "--kind", "session") == (
        1,
        "",
        "error: Session not found: 'horse'\n",
    )


def test_copy(sessions: Run, in_json: Json, url: str) -> None:
    with closing(open_store(url)) as store:
        for number in range(3):
            store.stream("topic", f"topic{number}", NOTES).append(notes(1, "x"), 0)
    assert sessions("copy", url, "jsonl:copy") == (
        0,
        "2 sessions, 2 threads and 3 topics copied, 0 there already\n",
        "",
    )
    [again] = in_json("copy", url, "jsonl:copy")
    assert (again["copied"], again["errors"]) == ([], [])
    topics = [f"topic:topic{number}" for number in range(3)]
    assert sorted(again["skipped"]) == ["agents", "both", "thread:both", "thread:horse", *topics]
    status, out, err = sessions("copy", url, "jsonl:one", "thread:both", "none")
    assert (status, out) == (1, "0 sessions and 2 threads copied, 0 there already\n")
    assert err.startswith("error: none: there is no session 'none' in ")
    for name in ("horse", "thread:both"):
        assert sessions("show", name, "--events", store="jsonl:copy") == sessions("show", name, "--events")
    with closing(open_store("jsonl:copy")) as store:
        assert graph(store).invoke(Command(resume="yes"), thread("horse"))["answer"] == "yes"
    assert len(in_json("show", "horse", "--history")) == 3


@pytest.mark.parametrize("verb", ["tree", "fork", "rewind", "redo", "delete", "export"])
def test_a_verb_for_sessions_says_that_a_thread_is_none(sessions: Run, verb: str) -> None:
    for name in ("horse", "thread:both"):
        status, out, err = sessions(verb, name)
        assert (status, out) == (1, "")
        assert err.startswith(f"error: '{name}' is a thread of LangGraph, and `{verb}` is for sessions: ")
    status, _, err = sessions(verb, "thread:none")
    assert (status, err) == (1, "error: Thread not found: 'none'\n")
    assert {name for name, _ in columns(sessions("list", "--kind", "thread")[1])} == {"both", "horse"}


def test_a_thread_has_no_steps(sessions: Run) -> None:
    status, out, err = sessions("show", "horse", "--step", "1")
    assert (status, out) == (1, "")
    assert err == "error: 'horse' is a thread of LangGraph, which keeps no requests to models\n"


def test_without_langgraph(sessions: Run, url: str) -> None:
    """What is shown, found and copied doesn't depend on the frameworks being installed."""
    verbs = [
        ["list"],
        ["show", "horse"],
        ["show", "horse", "--history"],
        ["show", "horse", "--events"],
        ["show", "agents"],
        ["search", "brown"],
        ["copy", url, "jsonl:copy"],
    ]
    hidden = ("langgraph", "langchain_core", "ormsgpack", "agents")
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({hidden}))\n"
        "from harnpy.cli.app import main\n"
        f"for verb in {verbs}: main(['sessions', '--store', {url!r}, *verb])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    with_them = [sessions(*verb)[1] for verb in verbs[:-1]]
    assert done.stdout == "".join(with_them) + "2 sessions and 2 threads copied, 0 there already\n"
    assert done.stderr == ""


def test_what_cannot_be_read_is_said(tmp_path: Path, sessions: Run, in_json: Json, url: str) -> None:
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    class Encrypted(JsonPlusSerializer):
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            return "msgpack+aes", b"?" * 16

    with closing(open_store(url)) as store:
        saver = HarnpySaver(store, serde=Encrypted())
        checkpoint: Any = {
            "id": "1",
            "channel_values": {"notes": "secret"},
            "channel_versions": {"notes": "1"},
        }
        config: Any = {"configurable": {"thread_id": "sealed", "checkpoint_ns": ""}}
        saver.put(config, checkpoint, {}, {"notes": "1"})
    status, out, err = sessions("show", "sealed")
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "thread sealed: 1 checkpoint"
    assert out.splitlines()[1].endswith("metadata not readable here (msgpack+aes, 16 bytes)")
    assert out.splitlines()[2] == "notes: not readable here (msgpack+aes, 16 bytes)"
    [shown] = in_json("show", "sealed")
    assert (shown["values"], shown["unread"]) == ({}, {"notes": "msgpack+aes, 16 bytes"})
    assert sessions("show", "sealed", "--history")[0] == sessions("show", "sealed", "--events")[0] == 0


def test_a_channel_that_langgraph_puts_together(sessions: Run, in_json: Json, url: str) -> None:
    """Of a delta channel, a thread has what was written: that is shown, and no guess at its value."""
    reducer = lambda state, writes: [*state, *itertools.chain.from_iterable(writes)]  # noqa: E731
    built = StateGraph(TypedDict("Notes", {"notes": Annotated[list[str], DeltaChannel(reducer)]}))
    built.add_node("feed", lambda state: {"notes": ["hay for the horse"]})
    built.add_edge(START, "feed")
    with closing(open_store(url)) as store:
        compiled = built.compile(checkpointer=HarnpySaver(store))
        state = compiled.invoke({"notes": ["go"]}, thread("delta"))
        assert state == {"notes": ["go", "hay for the horse"]}
    out = sessions("show", "delta")[1]
    assert out.endswith("notes: not readable here (LangGraph puts it together from what was written)\n")
    [shown] = in_json("show", "delta")
    assert shown["values"] == {}
    assert list(shown["unread"]) == ["notes"]
    out = sessions("show", "delta", "--history")[1]
    assert out.count('        then notes: ["go"]\n') == out.count('then notes: ["hay for the horse"]\n') == 1
    assert sessions("search", "hay")[1].endswith("  hay for the horse\n")


def test_a_run_of_the_agents_sdk(sessions: Run, url: str) -> None:
    async def talk() -> None:
        with closing(open_store(url)) as store:
            agent = Agent(name="vet", model=ScriptedModel([[assistant_message("She is well.")]]))
            kept = HarnpySession("vet", store)
            await Runner.run(
                agent, "How is the mare?", session=kept, run_config=RunConfig(tracing_disabled=True)
            )
            await kept.add_items([{"type": "reasoning", "id": "r", "summary": []}])

    asyncio.run(talk())
    assert sessions("show", "vet")[1].splitlines()[:2] == [
        "user: How is the mare?",
        "assistant: She is well.",
    ]
    assert sessions("show", "vet")[1].splitlines()[2].startswith('item: {"openai_item":{"id":"r"')
    assert sessions("search", "well")[1].startswith("vet:")
    assert sessions("copy", url, "jsonl:copy", "vet")[1] == "1 session copied, 0 there already\n"
    assert sessions("show", "vet", store="jsonl:copy") == sessions("show", "vet")


def test_two_thousand_threads_are_listed_unread(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"jsonl:{tmp_path}/store"
    with closing(open_store(f"{url}?durability=relaxed")) as store:
        for number in range(2000):
            store.stream("checkpoint", f"t{number}", ThreadCodec()).append([record(1)], 0)
    monkeypatch.setattr(ThreadCodec, "decode", None)
    for arguments, lines in ((["--kind", "thread", "--limit", "3000"], 2001), ([], 101)):
        assert main(["sessions", "--store", url, "list", *arguments]) == 0
        assert len(capsys.readouterr().out.splitlines()) == lines


def test_threads_of_other_savers_come_in(sessions: Run) -> None:
    path = str(GRAPHS)
    assert sessions("import", "--checkpoints", path) == (0, "thread:one\nthread:user 2/b\n", "")
    assert sessions("import", "--checkpoints", path)[1].count(": skipped (nothing new)\n") == 2
    assert "asks: " in sessions("show", "thread:user 2/b")[1]
    status, _, err = sessions("import", "--checkpoints", str(GRAPHS.with_name("otel.jsonl")))
    assert (status, err.count("\n")) == (1, 1)
    assert sessions("import", "--checkpoints", "--id", "x", path)[0] == 2
