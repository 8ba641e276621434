"""`harnpy sessions`, each verb as a command. Spec: 10 §C21."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harnpy.agent.loop.loop import run_loop
from harnpy.agent.runtime import Runtime
from harnpy.cli.app import main
from harnpy.session import SessionRegistry, SessionRuntime, distill, export_run
from harnpy.session.events import EventDraft
from harnpy.session.stored import StoredSession
from harnpy.storage import open_store
from harnpy.world import World
from tests.guarantees import harm
from tests.worlds import models_with

Capture = pytest.CaptureFixture[str]
Said = tuple[int, str, str]

#: A store in a file of the first version.
FORMER = Path(__file__).parents[2] / "guarantees" / "fixtures" / "2026-11" / "store-1.db"
URLS = {"jsonl": "jsonl:store", "sqlite": "sqlite:store.db", "postgres": None}


@pytest.fixture(params=URLS)
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with a conversation `talk`, cut to two messages, and a fork of it, `talk-b`."""
    monkeypatch.chdir(tmp_path)
    url = URLS[request.param] or str(request.getfixturevalue("postgres"))
    store = open_store(url)
    talk = StoredSession.begin("talk", store, World())
    for number in range(3):
        talk.append(said("user", f"question {number} about the deploy\nin two lines"))
        talk.append(said("assistant", f"answer {number}"))
    talk.shrink("trim", talk.view.window.trimmed(2))
    talk.fork("talk-b").append(said("user", "another road"))
    store.close()
    return url


def said(role: str, content: str) -> EventDraft:
    return EventDraft("message_added", {"role": role, "content": content})


@pytest.fixture
def sessions(url: str, capsys: Capture) -> Callable[..., Said]:
    """Run a verb; return the status, stdout and stderr."""

    def run(*arguments: str, store: str = url) -> Said:
        status = main(["sessions", "--store", store, *arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


@pytest.fixture
def in_json(url: str, capsys: Capture) -> Callable[..., Any]:
    """Run a verb with --json; return the documents that it prints, one a line."""

    def run(*arguments: str) -> list[Any]:
        main(["sessions", "--store", url, "--json", *arguments])
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


Run = Callable[..., Said]


def test_list(sessions: Run, in_json: Callable[..., Any]) -> None:
    status, out, err = sessions("list")
    assert (status, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["id", "kind", "status", "agent", "events", "updated", "forked", "from"]
    assert [line[:4] for line in lines[1:]] == [
        ["talk-b", "session", "active", "9"],
        ["talk", "session", "active", "8"],
    ]
    assert sessions("list", "--status", "failed")[1].startswith("no sessions or threads in ")
    [document] = in_json("list")
    assert [item["id"] for item in document["items"]] == ["talk-b", "talk"]
    assert document["items"][0]["parent_id"] == "talk"
    assert document["items"][0]["kind"] == "session"
    assert (document["next"], document["errors"]) == (None, [])


def test_tree(sessions: Run, in_json: Callable[..., Any]) -> None:
    status, out, _ = sessions("tree")
    assert (status, out) == (0, "talk  active, 8 events\n└── talk-b  active, 9 events at 8\n")
    assert sessions("tree", "talk-b")[1] == "talk-b  active, 9 events at 8\n"
    assert [item["id"] for item in in_json("tree")[0]] == ["talk", "talk-b"]


def test_show(sessions: Run, in_json: Callable[..., Any]) -> None:
    assert sessions("show", "talk") == (
        0,
        "user: question 2 about the deploy\n  in two lines\nassistant: answer 2\n",
        "",
    )
    assert sessions("show", "talk", "--history")[1].count("user: ") == 3
    assert sessions("show", "talk", "--at", "3")[1].endswith("answer 0\n")
    assert [message["role"] for message in in_json("show", "talk")] == ["user", "assistant"]
    events = in_json("show", "talk-b", "--events")
    assert [event["seq"] for event in events] == list(range(1, 10))
    assert [event["type"] for event in events][-2:] == ["compaction_triggered", "message_added"]
    assert in_json("show", "talk-b", "--at", events[2]["id"])[-1] == events[2]["data"]
    assert len(in_json("show", "talk-b", "--at", "2999-01-01")) == 3
    assert "'2026-99-01' is no time" in sessions("show", "talk", "--at", "2026-99-01")[2]
    _, out, _ = sessions("show", "talk-b", "--events")
    assert out.splitlines()[-1].split()[0::2][:2] == ["9", "message_added"]


@pytest.fixture
def asked(url: str) -> None:
    """A session `asked` with a memo, whose loop has called a tool."""
    registry, models = SessionRegistry(), models_with({})
    registry.open("asked", {"store": url})
    session = registry.session("asked")
    assert session is not None
    session.set_memo({"name": "Ada"})
    models.mock.add({"tool_calls": [{"id": "c1", "name": "look", "arguments": {}}]})
    models.mock.add({"text": "a tree"})
    tool = {"name": "look", "description": "Look", "parameters": {}, "handler": lambda _: "green"}
    tools = {"_type": "tool_registry", "tools": [tool]}
    options = {
        "provider": "mock",
        "model": "small",
        "session_id": "asked",
        "tools": tools,
        "tool_format": "native",
    }
    run_loop(Runtime(models, registry), "What is it?", "Be brief.", options)
    registry.close("asked")


@pytest.mark.usefixtures("asked")
def test_show_a_step(sessions: Run, in_json: Callable[..., Any]) -> None:
    status, out, err = sessions("show", "asked", "--step", "2")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert re.fullmatch(r"step 2 \(event \d+\): mock, \S+", lines[0])
    assert lines[1:3] == ["tools: look", "system: Be brief."]
    assert lines[-6:] == [
        "user: What is it?",
        "assistant: -> look({})",
        "tool: green",
        'user: <runtime_injection kind="memo">',
        '  {"name":"Ada"}',
        "  </runtime_injection>",
    ]
    (request,) = in_json("show", "asked", "--step", "1")
    assert [message["role"] for message in request["messages"]] == ["user"]
    assert (request["step"], len(request["tail"]), len(request["tools"])) == (1, 1, 1)
    assert request["prompt_cache"]["stable_messages"] == 1


@pytest.mark.usefixtures("asked")
def test_show_a_step_that_is_not_there(sessions: Run) -> None:
    status, out, err = sessions("show", "asked", "--step", "3")
    assert (status, out) == (1, "")
    assert err == "error: session 'asked' has 2 steps: there is no step 3\n"
    assert "has no step" in sessions("show", "talk", "--step", "1")[2]
    assert sessions("show", "asked", "--step", "0")[0] == 2
    assert sessions("show", "asked", "--step", "1", "--events")[0] == 2


def test_search(sessions: Run, in_json: Callable[..., Any]) -> None:
    assert sessions("search", "DEPLOY 1")[1] == "talk:4  question 1 about the deploy in two lines\n"
    assert [hit["seq"] for hit in in_json("search", "deploy", "talk-b")] == [2, 4, 6]
    assert sessions("search", "another", "talk") == (0, "", "")


def test_fork(sessions: Run, in_json: Callable[..., Any]) -> None:
    assert sessions("fork", "talk", "talk-c") == (0, "talk-c\n", "")
    assert in_json("fork", "talk", "talk-d")[0]["parent_id"] == "talk"
    status, _, err = sessions("fork", "talk", "talk-c")
    assert (status, err) == (1, "error: Session already exists: 'talk-c'\n")


def test_fork_at_an_event(sessions: Run) -> None:
    assert sessions("fork", "talk", "early", "--at", "3")[0] == 0
    assert sessions("show", "early")[1].splitlines()[-1] == "assistant: answer 0"
    status, _, err = sessions("fork", "talk", "late", "--at", "99")
    assert (status, err) == (1, "error: Event not found in session 'talk': '99'\n")


def test_rewind_and_redo(sessions: Run, url: str) -> None:
    with closing(open_store(url)) as store:
        session = StoredSession.load("talk", store, World())
        assert session is not None
        turn = session.record("turn_started", {"agent_id": "a"})
        session.record("message_added", {"role": "assistant", "content": "a turn"}, turn)
        session.record("turn_completed", {"agent_id": "a", "turn_stop_reason": "completed"}, turn)
    before = sessions("show", "talk")
    assert sessions("rewind", "talk") == (0, "assistant: a turn\n", "")
    assert "a turn" not in sessions("show", "talk")[1]
    assert sessions("redo", "talk") == (0, "assistant: a turn\n", "")
    assert sessions("show", "talk") == before
    for verb in (["redo", "talk"], ["rewind", "talk", "2"]):
        status, out, err = sessions(*verb)
        assert (status, out, err.startswith("error: session 'talk' ")) == (1, "", True)


def test_delete(sessions: Run) -> None:
    assert sessions("delete", "talk") == (0, "deleted talk\n", "")
    assert "talk " not in sessions("list")[1]
    assert "deleted" in sessions("list", "--deleted")[1]
    status, out, _ = sessions("gc")
    assert (status, out.splitlines()[0]) == (0, "dropped session talk")
    assert "dropped 1 session, 0 stems, " in out  # and, in a directory, the file of its lease
    assert sessions("show", "talk-b")[0] == 0
    assert sessions("delete", "talk-b", "--hard")[0] == 0
    assert sessions("delete", "talk-b", "--hard")[0] == 1
    assert sessions("list")[1].startswith("no sessions")


def test_a_log_that_is_exported_and_imported_is_the_same(sessions: Run, tmp_path: Path) -> None:
    assert sessions("export", "talk-b", "-o", "b.jsonl")[:2] == (0, "session: b.jsonl\n")
    exported = (tmp_path / "b.jsonl").read_text()
    assert sessions("export", "talk-b")[1] == exported
    assert sessions("import", "b.jsonl", store="jsonl:other")[:2] == (0, "talk-b\n")
    assert sessions("export", "talk-b", store="jsonl:other")[1] == exported
    for what in ("--history", "--events"):
        there = sessions("show", "talk-b", what, store="jsonl:other")
        assert there == sessions("show", "talk-b", what)


def test_an_import_of_what_is_there(sessions: Run) -> None:
    sessions("export", "talk", "-o", "t.jsonl")
    status, _, err = sessions("import", "t.jsonl")
    assert (status, err) == (1, "error: t.jsonl: Session already exists: 'talk'\n")
    assert sessions("import", "t.jsonl", "--on-conflict", "skip")[:2] == (
        0,
        "t.jsonl: skipped (there is one already)\n",
    )
    assert sessions("import", "t.jsonl", "--id", "again")[:2] == (0, "again\n")
    assert sessions("show", "again")[1] == sessions("show", "talk")[1]
    status, out, _ = sessions("import", "t.jsonl", "--on-conflict", "rename")
    assert status == 0
    assert sessions("show", out.strip())[1] == sessions("show", "talk")[1]


def test_all_of_them_are_files_of_a_directory(sessions: Run, tmp_path: Path) -> None:
    assert sessions("export", "--all", "-o", "out")[0] == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["talk-b.jsonl", "talk.jsonl"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "there is no event in it: this is no session's log"),
        ("{", "line 1 isn't JSON"),
        ("[]", "line 1 is no event: it has no data, id, seq, session_id, timestamp, type"),
        ('{"a": 1}', "line 1 is no event"),
    ],
)
def test_a_bad_file_is_named_and_the_others_come_in(
    sessions: Run, tmp_path: Path, text: str, problem: str
) -> None:
    sessions("export", "talk", "-o", "good.jsonl")
    (tmp_path / "bad.jsonl").write_text(text)
    status, out, err = sessions("import", "bad.jsonl", "good.jsonl", store="jsonl:other")
    assert (status, out) == (1, "talk\n")
    assert err.startswith("error: bad.jsonl: ")
    assert problem in err


def test_a_log_with_a_gap_is_refused_whole(sessions: Run, tmp_path: Path) -> None:
    lines = sessions("export", "talk")[1].splitlines(keepends=True)
    (tmp_path / "gap.jsonl").write_text("".join(lines[:2] + lines[3:]))
    status, _, err = sessions("import", "gap.jsonl", store="jsonl:other")
    assert (status, "event 3 has seq 4" in err) == (1, True)
    assert sessions("list", store="jsonl:other")[1].startswith("no sessions")


def test_copy(sessions: Run, url: str) -> None:
    assert sessions("copy", url, "jsonl:copy")[:2] == (0, "2 sessions copied, 0 there already\n")
    assert sessions("copy", url, "jsonl:copy")[:2] == (0, "0 sessions copied, 2 there already\n")
    assert sessions("export", "talk-b", store="jsonl:copy") == sessions("export", "talk-b")
    assert sessions("tree", store="jsonl:copy") == sessions("tree")
    for kind in ("jsonl", "sqlite"):
        assert sessions("copy", f"{kind}:none", url) == (1, "", f"error: there is no store at {kind}:none\n")
    status, _, err = sessions("copy", url, "jsonl:copy2", "none")
    assert (status, err.startswith("error: none: there is no session 'none' in ")) == (1, True)


def test_episodes_go_where_their_session_goes(sessions: Run, url: str) -> None:
    with SessionRuntime(url) as runtime:
        episode = distill(export_run(runtime.get("talk")))
        runtime.save_episode(episode)
    assert sessions("copy", url, "jsonl:copy")[0] == 0
    assert sessions("delete", "talk", "--hard")[0] == 0
    with SessionRuntime(url) as runtime, SessionRuntime("jsonl:copy") as other:
        assert (runtime.episodes("talk"), other.episodes("talk")) == ([], [episode])


def test_checks_and_collections(sessions: Run, in_json: Callable[..., Any]) -> None:
    status, out, _ = sessions("fsck")
    assert (status, out.startswith("2 streams, "), out.endswith(", 0 problems\n")) == (0, True, True)
    assert in_json("fsck")[0]["findings"] == []
    assert sessions("gc", "--dry-run")[:2] == (0, "would drop 0 sessions, 0 stems, 0 leftovers\n")
    assert in_json("gc", "--older-than", "30d") == [{"streams": [], "stems": 0, "leftovers": []}]


def test_a_version_is_shown(sessions: Run, in_json: Callable[..., Any], url: str) -> None:
    [found] = in_json("upgrade", url)
    assert found["found"] == found["newest"]
    assert sessions("upgrade", url)[1] == f"{found['url']} has format {found['newest']}, the newest one\n"


def test_a_version_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(FORMER, "former.db")

    def said(*options: str) -> str:
        assert main(["sessions", "upgrade", "sqlite:former.db", *options]) == 0
        return capsys.readouterr().out

    assert said("--dry-run") == "would raise sqlite:former.db from format 1 to 2\n"
    assert said() == "raised sqlite:former.db from format 1 to 2\n"
    assert said() == "sqlite:former.db has format 2, the newest one\n"


def test_what_has_no_version_is_named(sessions: Run, url: str) -> None:
    assert sessions("upgrade", "sqlite:none.db") == (1, "", "error: there is no store at sqlite:none.db\n")
    assert not Path("none.db").exists()
    harm.make_newer(url)
    status, out, err = sessions("upgrade", url)
    assert (status, out) == (1, "")
    assert re.fullmatch(
        r"error: .+ has format 99, and this harnpy knows formats up to \d: update harnpy\n", err
    )


@pytest.mark.parametrize("verb", ["show", "tree", "fork", "rewind", "redo", "delete", "export"])
def test_a_session_that_is_not_there(sessions: Run, verb: str) -> None:
    assert sessions(verb, "nobody") == (1, "", "error: Session not found: 'nobody'\n")


def test_wrong_usage(sessions: Run) -> None:
    assert sessions("gc", "--older-than", "x")[0] == 2
    assert sessions("export")[0] == 2
    assert sessions("export", "--all")[0] == 2
    status, _, err = sessions("list", store="nope:x")
    assert (status, "no store is called `nope:x`" in err) == (1, True)


def test_a_run_record_is_no_session(sessions: Run, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    status, _, err = sessions("export", "run.json")
    assert (status, err) == (1, "error: this is a run record: `harnpy bundle export run.json`\n")
