"""`harnpy waitpoint`. Spec: 10 §C18, §C21."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.cli.app import main
from harnpy.eventlog import SqliteEventLog
from harnpy.eventlog.waitpoints import Waitpoints

Said = tuple[int, str, str]
Command = Callable[..., Said]


@pytest.fixture
def waitpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a verb in a project's directory; return the status, stdout and stderr."""
    for name in ("BACKEND", "DIR", "SQLITE_PATH", "QUEUE_DEPTH"):
        monkeypatch.delenv(f"HARN_EVENT_LOG_{name}", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "harn.toml").write_text('[event_log]\nstore = "sqlite:events.db"')

    def run(*arguments: str) -> Said:
        status = main(["waitpoint", *arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def test_a_waiting_program_goes_on(waitpoint: Command) -> None:
    said: list[Said] = []
    vm = Vm()
    vm.register(
        "complete() -> nil",
        lambda: said.append(waitpoint("complete", "approved", '{"by": ["legal"]}', "--by", "ada")),
    )
    value = vm.run_source("""
import { wait } from "std/waitpoint"
let waiting = spawn { wait("approved", {timeout: 1h}) }
sleep(1ms)
complete()
return await(waiting)
""")
    assert (value["value"], value["completed_by"]) == ({"by": ["legal"]}, "ada")
    assert said == [(0, "completed approved\n", "")]


def test_what_happened_is_listed(waitpoint: Command, tmp_path: Path) -> None:
    place = f"sqlite:{tmp_path}/events.db"
    assert waitpoint("list") == (0, f"no waitpoints in {place}\n", "")
    assert waitpoint("complete", "a", "--create") == (0, "completed a\n", "")
    with closing(SqliteEventLog(tmp_path / "events.db")) as log:
        points = Waitpoints(log)
        points.create("order\n7")
        points.create("open")
    assert waitpoint("cancel", "order\n7", "--reason", "returned", "--by", "bob")[:2] == (
        0,
        "cancelled order 7\n",
    )
    listed = waitpoint("list")[1].splitlines()
    assert [line.split()[0] for line in listed] == ["waitpoint", "order", "a", "open"]
    assert ("bob" in listed[1], listed[1].endswith("returned"), listed[2].endswith("null")) == (True,) * 3
    assert waitpoint("list", "--status", "cancelled")[1].splitlines() == [listed[0], listed[1]]
    as_json = json.loads(waitpoint("list", "--json")[1])
    with closing(SqliteEventLog(tmp_path / "events.db")) as log:
        assert as_json == [point.to_dict() for point in Waitpoints(log).list()]
    assert waitpoint("list", "--status", "open", "--json")[1].count('"id"') == 1


def test_json_has_the_whole_record(waitpoint: Command) -> None:
    status, out, _ = waitpoint("complete", "a", "[1]", "--create", "--json")
    record = json.loads(out)
    assert (status, record["status"], record["value"], record["changed"]) == (0, "completed", [1], True)
    status, out, err = waitpoint("cancel", "a", "--json")
    assert (status, json.loads(out), err) == (1, {**record, "changed": False}, "")


def test_a_request_is_approved_and_denied_by_the_beginning_of_its_id(
    waitpoint: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARN_REVIEWER", "ann")
    ids = [f"hitl_approval_0000000{n}-0000-7000-8000-000000000000" for n in (1, 2)]
    request = {"action": "call tool refund", "args": {"euros": 12}, "quorum": 1, "reviewers": []}
    of_bob = {"action": "deploy", "quorum": 1, "reviewers": ["bob"]}
    with closing(SqliteEventLog(tmp_path / "events.db")) as log:
        points = Waitpoints(log)
        for id in ids:
            points.create(id, {"kind": "approval", "request": request, "tool": "refund"})
        points.create("deployment", {"kind": "approval", "request": of_bob})
        points.create("parcel")
    rows = {line.split()[0]: line for line in waitpoint("list")[1].splitlines()}
    assert [rows[id].count('refund {"euros":12}') for id in ids] == [1, 1]
    assert waitpoint("approve", "hitl_") == (
        1,
        "",
        f"error: several waitpoints begin with hitl_: {ids[0]}, {ids[1]}\n",
    )
    assert waitpoint("approve", f"{ids[0][:23]}…") == (0, f"completed {ids[0]}\n", "")
    assert waitpoint("deny", "hitl_", "--reason", "too much") == (0, f"completed {ids[1]}\n", "")
    assert waitpoint("approve", "parcel")[2].startswith(
        "error: parcel is no request for an approval: `harnpy"
    )
    assert waitpoint("approve", "dep")[2] == "error: only bob may decide: --by NAME says who you are\n"
    assert waitpoint("approve", "dep", "--by", "bob")[0] == 0
    with closing(SqliteEventLog(tmp_path / "events.db")) as log:
        values = [Waitpoints(log).get(id).value for id in ids]
    assert values == [
        {"approved": True, "reviewer": "ann"},
        {"approved": False, "reason": "too much", "reviewer": "ann"},
    ]


def test_what_goes_wrong_is_one_line(waitpoint: Command, tmp_path: Path) -> None:
    place = f"sqlite:{tmp_path}/events.db"
    unknown = f"error: {place} has no waitpoint a"
    assert waitpoint("complete", "a") == (1, "", f"{unknown}; with --create it is completed all the same\n")
    assert waitpoint("cancel", "a") == (1, "", f"{unknown}\n")
    assert waitpoint("cancel", " ") == (1, "", "error: `id` must be a non-empty string\n")
    waitpoint("complete", "a", "--create", "--by", "ada")
    before = "error: a was completed before, by ada: nothing has changed\n"
    assert waitpoint("complete", "a", "2") == waitpoint("cancel", "a") == (1, "", before)
    status, _, err = waitpoint("complete", "b", "approved")
    assert status == 2
    assert err.startswith("error: the value approved is no JSON; a text is in quotes: '\"approved\"'\n")
    elsewhere = waitpoint("--store", "kafka:x", "list")
    assert elsewhere[0] == 1
    assert elsewhere[2].startswith("error: event log open error: no store is called `kafka:x`")
    assert waitpoint("--store", "sqlite:other.db", "list") == (0, "no waitpoints in sqlite:other.db\n", "")


def test_what_durable_runs_wait_for_is_found_where_they_are(waitpoint: Command, tmp_path: Path) -> None:
    (tmp_path / "harn.toml").unlink()
    assert waitpoint("list")[1].startswith("no waitpoints in sqlite:")
    (tmp_path / ".harn").mkdir(exist_ok=True)
    for name, id in (("sessions.db", "of-a-run"), ("events.sqlite", "of-a-program")):
        with closing(SqliteEventLog(tmp_path / ".harn" / name)) as log:
            Waitpoints(log).create(id)
    assert [line.split()[0] for line in waitpoint("list")[1].splitlines()] == [
        "waitpoint",
        "of-a-program",
        "of-a-run",
    ]
    for id in ("of-a-run", "of-a-program"):
        assert waitpoint("complete", id) == (0, f"completed {id}\n", "")
    status, _, err = waitpoint("cancel", "nobody's")
    assert status == 1
    assert "events.sqlite, sqlite:" in err
    with closing(SqliteEventLog(tmp_path / ".harn" / "sessions.db")) as log:
        assert [point.status for point in Waitpoints(log).list()] == ["completed"]
