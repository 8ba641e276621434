"""`event_log.*` on a kept log. Spec: 08 §15.1, 10 §C22."""

from __future__ import annotations

import contextvars
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest

from harnpy import Vm, VmError
from harnpy.eventlog import LogEvent, MemoryEventLog, SqliteEventLog, StoreEventLog, install_event_log
from harnpy.project import ManifestError

TELLS = 'return event_log.emit("t", "k", {n: 1}, {who: "a"})'


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("BACKEND", "DIR", "SQLITE_PATH", "QUEUE_DEPTH"):
        monkeypatch.delenv(f"HARN_EVENT_LOG_{name}", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "harn.toml").write_text('[event_log]\nstore = "sqlite:events.db"')
    return tmp_path


def test_a_later_program_goes_on_where_this_one_ended(project: Path) -> None:
    assert [Vm().run_source(TELLS) for _ in range(2)] == [1, 2]
    following = 'let s = event_log.subscribe("t", 1)\nreturn s.next().value'
    event = Vm().run_source(following)
    assert (event["id"], event["kind"], event["payload"], event["headers"]["who"]) == (2, "k", {"n": 1}, "a")
    assert (project / "events.db").exists()


def test_a_subscriber_gets_what_other_processes_append(project: Path) -> None:
    with closing(SqliteEventLog(project / "events.db")) as log:
        vm, other = Vm(), Thread(target=log.append, args=("t", LogEvent("late")))
        vm.register("other() -> nil", other.start)
        assert vm.run_source('other()\nreturn event_log.subscribe("t").next().value.kind') == "late"
        other.join()


def test_without_the_effect_nothing_is_kept(project: Path) -> None:
    everything = ["read", "list", "write", "delete", "process", "network", "environment", "model", "person"]
    with pytest.raises(VmError, match=r"keeping '.*events\.db' is not permitted"):
        Vm(capabilities=everything).run_source(TELLS)
    with closing(SqliteEventLog(project / "events.db")) as log:
        assert log.latest("t") is None


def test_an_installed_log_comes_first() -> None:
    def use() -> StoreEventLog:
        log = MemoryEventLog()
        install_event_log(log)
        Vm().run_source(TELLS)
        return log

    log = contextvars.Context().run(use)
    assert log.latest("t") == 1


def test_without_any_it_is_in_memory(project: Path) -> None:
    (project / "harn.toml").write_text("")
    assert [Vm().run_source(TELLS) for _ in range(2)] == [1, 1]
    assert [path.name for path in project.iterdir()] == ["harn.toml"]


def test_the_environment_comes_before_the_manifest(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARN_EVENT_LOG_BACKEND", "file")
    assert Vm().run_source(TELLS) == 1
    assert (project / ".harn/events/FORMAT").exists()
    monkeypatch.setenv("HARN_EVENT_LOG_BACKEND", "kafka")
    with pytest.raises(VmError, match="event_log: unsupported event log backend 'kafka'"):
        Vm().run_source(TELLS)


def test_a_manifest_that_cannot_be_used(project: Path) -> None:
    (project / "harn.toml").write_text("[event_log]\nqueue = 1")
    with pytest.raises(ManifestError, match=r"`\[event_log\]` has no key `queue`"):
        Vm().run_source(TELLS)


def test_a_task_of_the_program_finds_the_installed_log_too() -> None:
    def use() -> StoreEventLog:
        log = MemoryEventLog()
        install_event_log(log)
        Vm().run_source('return await(spawn { event_log.emit("t", "k") })')
        return log

    assert contextvars.Context().run(use).latest("t") == 1
