"""Erased sessions leave no text in any file that harnpy wrote: stores, indexes, records, logs. Issue 30."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from harnpy.eventlog.agent_events import topic_of
from harnpy.eventlog.topics import LogEvent, StoreEventLog
from harnpy.storage import open_store
from tests.conftest import Command

MARK = "tell nobody that the heron sleeps"
STORES = {"sqlite": "sqlite:.harn/sessions.db", "jsonl": "jsonl:.harn/s", "postgres": "{postgres}"}
PROGRAM = """
import "std/session"

let MARK = "tell nobody that the heron sleeps"
let STORE = {store: true}
let talk = agent_session_open("talk", STORE)
for turn in 0 to 5 {
  agent_loop("${MARK}, said ${turn}", nil, {session_id: "talk", provider: "mock"})
}
agent_session_fork("talk", "fork")
agent_loop("And ${MARK} again", nil, {session_id: "fork", provider: "mock"})
agent_session_compact("talk", {keep_last: 1})
session_artifact_put("talk", {id: "mine", kind: "note"}, MARK)
session_artifact_put("talk", {id: "ours", kind: "note"}, "not secret")
checkpoint("said", "${MARK}, said 0")
checkpoint("other", 1)
store_set("said", "${MARK}, said 1")
let node = {mode: "agent", model_policy: {provider: "mock", session_id: "talk"}}
llm_mock({text: "Done. ##DONE##"})
workflow_execute("go", {entry: "a", nodes: {a: node}})
agent_session_open("other", STORE)
agent_session_inject("other", {role: "user", content: "the weather is fine today"})
session_artifact_record("other", {id: "ours", kind: "note"})
for id in ["talk", "fork", "other"] { agent_session_close(id) }
"""


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    url = STORES[request.param]
    return str(request.getfixturevalue("postgres")) if request.param == "postgres" else url


def holding(directory: Path) -> list[str]:
    """The files below it in which the text can be read."""
    files = (path for path in directory.rglob("*") if path.is_file() and path.name != "program.harn")
    return sorted(str(path.relative_to(directory)) for path in files if MARK.encode() in path.read_bytes())


def test_no_file_holds_what_was_said(harnpy: Command, tmp_path: Path, store: str) -> None:
    (tmp_path / "program.harn").write_text(PROGRAM)
    logs = {"HARN_LLM_TRANSCRIPT_DIR": "logs", "HARN_EVENT_LOG_DIR": "logs"}
    done = harnpy("run", "program.harn", HARN_SESSION_STORE=store, **logs)
    assert (done.returncode, done.stderr) == (0, "")
    with closing(open_store(f"sqlite:{tmp_path}/.harn/events.sqlite")) as events:
        StoreEventLog(events).append(topic_of("talk"), LogEvent("said", {"text": MARK}))
    assert len(harnpy("sessions", "--store", store, "search", "heron").stdout.splitlines()) > 5
    before = holding(tmp_path)
    print(before)
    assert len(before) >= (7 if store.startswith("postgres") else 9), before

    refused = harnpy("sessions", "--store", store, "delete", "--hard", "--everywhere", "talk", **logs)
    assert refused.returncode == 1
    assert "their forks hold what was said, too: fork; name them" in refused.stderr
    assert holding(tmp_path) == before

    erased = harnpy("sessions", "--store", store, "delete", "--hard", "--everywhere", "talk", "fork", **logs)
    assert erased.returncode == 0, erased.stderr
    assert erased.stdout.startswith(
        "erased session fork\nerased session talk\nerased artifact mine\nerased file"
    )
    assert ("write-ahead log" in erased.stderr) == store.startswith("postgres")
    assert holding(tmp_path) == []
    # What isn't theirs is still there.
    assert "weather" in harnpy("sessions", "--store", store, "search", "weather").stdout
    assert "heron" not in harnpy("sessions", "--store", store, "search", "heron").stdout
    assert harnpy("sessions", "--store", store, "fsck").returncode == 0
    assert json.loads((tmp_path / ".harn/checkpoints/program.json").read_text()) == {"other": 1}
    assert [path for path in tmp_path.rglob("objects/*") if path.name == "ours"] != []


@pytest.mark.parametrize("name", ["sqlite", "jsonl"])
def test_what_was_deleted_before_is_gone_too(harnpy: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "program.harn").write_text(PROGRAM)
    sessions = ("sessions", "--store", STORES[name])
    assert harnpy("run", "program.harn", HARN_SESSION_STORE=STORES[name]).returncode == 0
    # The fork keeps what it shares, in a stem; so does a settled one, in a log of its own.
    assert harnpy(*sessions, "delete", "--hard", "talk").returncode == 0
    assert harnpy(*sessions, "delete", "--hard", "--everywhere", "fork").returncode == 0
    store = ".harn/sessions.db" if name == "sqlite" else ".harn/s"
    assert [path for path in holding(tmp_path) if path.startswith(store) and "artifacts" not in path] == []


def test_a_fork_leaves_the_text_of_its_parent(harnpy: Command, tmp_path: Path) -> None:
    (tmp_path / "program.harn").write_text(PROGRAM)
    sessions = ("sessions", "--store", STORES["sqlite"])
    assert harnpy("run", "program.harn", HARN_SESSION_STORE=STORES["sqlite"]).returncode == 0
    assert harnpy(*sessions, "delete", "--hard", "--everywhere", "fork").returncode == 0
    assert "heron" in harnpy(*sessions, "show", "--history", "talk").stdout
    assert "again" not in harnpy(*sessions, "search", "heron again").stdout
    usage = harnpy(*sessions, "delete", "--everywhere", "talk")
    assert (usage.returncode, "add --hard" in usage.stderr) == (2, True)
