"""`harnpy sessions` when something is wrong: one line, status 1, and nothing is lost. Spec: 10 §C21."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harnpy.session.stored import StoredSession
from harnpy.storage import Store, open_store
from harnpy.world import World
from tests.cli.commands.test_sessions import Run, in_json, said, sessions, url
from tests.guarantees import harm
from tests.support import ROOT

__all__ = ["in_json", "sessions", "url"]

Json = Callable[..., Any]

#: Every verb that names a session, as it names one.
NAMING = {
    "show": ["show", "talk"],
    "events": ["show", "talk", "--events"],
    "history": ["show", "talk", "--history"],
    "fork": ["fork", "talk", "new"],
    "rewind": ["rewind", "talk"],
    "redo": ["redo", "talk"],
    "delete": ["delete", "talk"],
    "export": ["export", "talk"],
}
#: Those that a loop must not drive meanwhile.
CHANGING = {name: NAMING[name] for name in ("rewind", "redo", "delete")} | {
    "delete for good": ["delete", "talk", "--hard"]
}


def is_one_error(said: tuple[int, str, str]) -> bool:
    status, out, err = said
    return status == 1 and out == "" and err.startswith("error: ") and err.count("\n") == 1


@pytest.fixture
def damaged(url: str) -> str:
    """The store with a session of its own, `sick`, of which an event can't be read."""
    with closing(open_store(url)) as store:
        sick = StoredSession.begin("sick", store, World())
        for number in range(3):
            sick.append(said("user", f"symptom {number}"))
    harm.damage(url, "sick", 3)
    return url


@pytest.fixture
def driven(url: str) -> Iterator[Store]:
    """The store, while somebody elsewhere drives `talk`."""
    with closing(open_store(url)) as store:
        lease = store.lease("session:talk", "elsewhere:boot:1:1")
        yield store
        lease.release()


@pytest.mark.parametrize("verb", NAMING.values(), ids=NAMING)
def test_a_session_that_is_not_there(sessions: Run, verb: list[str]) -> None:
    said = sessions(verb[0], "nobody", *verb[2:])
    assert said == (1, "", "error: Session not found: 'nobody'\n")
    assert sessions("search", "x", "nobody") == said
    assert sessions("delete", "nobody", "--hard") == said


@pytest.mark.parametrize("verb", NAMING.values(), ids=NAMING)
def test_a_log_that_is_damaged(damaged: str, sessions: Run, verb: list[str]) -> None:
    said = sessions(verb[0], "sick", *verb[2:])
    assert is_one_error(said), said
    assert "Invalid session file [" in said[2]
    assert sessions("show", "talk")[0] == 0


def test_one_damaged_session_hides_no_other(
    damaged: str, sessions: Run, in_json: Json, tmp_path: Path
) -> None:
    status, out, err = sessions("list")
    assert status == 0
    assert "talk" in out
    assert "sick" in out + err
    [listed] = in_json("list")
    assert {item["id"] for item in listed["items"]} | {each["id"] for each in listed["errors"]} == {
        "talk", "talk-b", "sick"
    }  # fmt: skip
    assert "talk" in sessions("tree")[1]
    assert sessions("search", "deploy")[1].count("talk:") == 3
    status, _, err = sessions("export", "--all", "-o", "out")
    assert sorted(path.stem for path in (tmp_path / "out").iterdir()) == ["talk", "talk-b"]
    assert sessions("gc", "--dry-run")[0] == 0
    status, _, err = sessions("copy", damaged, "jsonl:copied")
    assert sessions("show", "talk", store="jsonl:copied") == sessions("show", "talk")


def test_a_check_finds_the_damage_and_a_repair_loses_nothing_that_was_readable(
    damaged: str, sessions: Run, in_json: Json
) -> None:
    before = [sessions("export", id) for id in ("talk", "talk-b")]
    status, out, _ = sessions("fsck")
    assert (status, "sick" in out) == (1, True)
    [report] = in_json("fsck")
    assert [finding["name"] for finding in report["findings"]] == ["sick"]
    sessions("fsck", "--repair")
    assert [sessions("export", id) for id in ("talk", "talk-b")] == before
    assert sessions("fsck")[0] == 0
    assert sessions("show", "sick") == (0, "user: symptom 0\nuser: symptom 2\n", "")
    with closing(open_store(damaged)) as store:
        sick = StoredSession.load("sick", store, World())
        assert sick is not None
        assert [event.type for event in sick.events()][2] == "store_repaired"
        sick.append(said("user", "well again"))
    assert sessions("show", "sick")[1].endswith("user: well again\n")


@pytest.mark.parametrize("verb", CHANGING.values(), ids=CHANGING)
def test_a_session_that_somebody_drives_is_not_changed(driven: Store, sessions: Run, verb: list[str]) -> None:
    before = sessions("show", "talk", "--events")
    said = sessions(*verb)
    assert is_one_error(said), said
    assert "session:talk is held by elsewhere:boot:1:1 until " in said[2]
    assert sessions("show", "talk", "--events") == before


def test_a_session_that_somebody_drives_can_be_read_forked_and_copied(
    driven: Store, sessions: Run, url: str
) -> None:
    for verb in (
        ["show", "talk"],
        ["export", "talk"],
        ["fork", "talk", "mine"],
        ["search", "deploy", "talk"],
    ):
        assert sessions(*verb)[0] == 0
    assert sessions("copy", url, "jsonl:copy")[0] == 0
    for verb in (["list"], ["tree"], ["fsck"], ["gc", "--dry-run"]):
        assert sessions(*verb)[0] == 0


def test_every_verb_speaks_json(sessions: Run, in_json: Json, url: str) -> None:
    with closing(open_store(url)) as store:
        talk = StoredSession.load("talk", store, World())
        assert talk is not None
        turn = talk.record("turn_started", {"agent_id": "a"})
        talk.record("turn_completed", {"agent_id": "a", "turn_stop_reason": "completed"}, turn)
    sessions("export", "talk", "-o", "t.jsonl")
    assert in_json("rewind", "talk") == in_json("redo", "talk") == []
    assert [message["role"] for message in in_json("show", "talk", "--history")] == ["user", "assistant"] * 3
    [event, *_] = in_json("export", "talk")
    assert event["type"] == "session_created"
    [imported] = in_json("import", "t.jsonl", "--id", "again")
    assert imported == {"path": "t.jsonl", "session_id": "again"}
    [copied] = in_json("copy", url, "jsonl:copy")
    assert (sorted(copied["copied"]), copied["errors"]) == (["again", "talk", "talk-b"], [])
    [forked] = in_json("fork", "talk", "new", "--at", "3")
    assert (forked["id"], forked["fork_seq"]) == ("new", 3)
    assert in_json("delete", "new") == [{"deleted": "new"}]
    [collected] = in_json("gc")
    assert (collected["streams"], collected["stems"]) == (["new"], 0)


@pytest.mark.parametrize("verb", [["list"], ["show", "talk", "--events"], ["export", "talk"], ["tree"]])
def test_a_reader_that_goes_away_is_said_in_one_line(url: str, verb: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "harnpy", "sessions", "--store", url, *verb]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, env=environment)
    os.close(writing)
    assert ended.returncode == 1
    assert ended.stderr == "error: cannot write to stdout: Broken pipe (os error 32)\n"


def test_a_store_that_is_none_is_an_error_of_one_line(sessions: Run, tmp_path: Path) -> None:
    (tmp_path / "plain.db").write_text("no database\n" * 100)
    for store in ("sqlite:plain.db", "nowhere:x", "postgresql://u:hunter2@127.0.0.1:1/x", "jsonl:plain.db"):
        said = sessions("list", store=store)
        assert is_one_error(said), said
        assert "hunter2" not in said[2]


def test_a_document_per_line_is_what_json_means(sessions: Run, in_json: Json) -> None:
    for verb in (["list"], ["tree"], ["show", "talk"], ["search", "deploy"], ["fsck"], ["gc", "--dry-run"]):
        for document in in_json(*verb):
            json.dumps(document, allow_nan=False)
