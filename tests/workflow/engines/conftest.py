"""The engines that the contract is tested on."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harnpy.workflow.engines.contract import Engine
from tests.counts import COUNT
from tests.forked import Forks
from tests.support import PATIENCE, ROOT, Popen
from tests.workflow.engines.bodies import Journal
from tests.workflow.engines.kinds import KINDS, open_engine

#: What CI tries on DBOS, which takes ten times as long for each; a campaign tries all.
_ON_DBOS = {
    "dbos-postgres": {
        "test_a_run_is_its_steps_and_what_its_body_returns",
        "test_an_id_that_exists_is_that_run",
        "test_a_run_that_failed_goes_on_behind_its_steps",
        "test_a_body_that_does_something_else_diverges",
        "test_a_fork_goes_on_from_a_step",
        "test_cancelling_reaches_what_is_running",
        "test_a_wait_returns_what_was_said",
        "test_a_queue_keeps_its_limits",
        "test_lists_are_filtered",
        "test_a_run_that_has_ended_can_be_deleted",
        "test_a_running_step_ends_before_its_worker",
        "test_a_run_that_is_left_is_another_worker_s",
    },
    "dbos-sqlite": {"test_a_run_is_its_steps_and_what_its_body_returns"},
}
#: Whether DBOS can have its tables in SQLite here.
_HAS_SQLITE = sys.version_info < (3, 12) or sqlite3.sqlite_version_info >= (3, 42)
_NO_SQLITE = "DBOS needs SQLite 3.42 with this Python"
needs_sqlite = pytest.mark.skipif(not _HAS_SQLITE, reason=_NO_SQLITE)
#: What CI doesn't try on one of the stores of `local`: what the other one shows as well, or is refused before
#: a store is asked.
_LEFT_OUT = {
    "local-sqlite": {"test_of_those_who_resume_one_wins"},
    "local-postgres": {
        "test_a_job_that_nobody_does_starts_nothing",
        "test_a_limit_that_no_queue_has",
        "test_a_queue_keeps_its_limits",
        "test_a_run_that_is_unknown",
        "test_a_schedule_can_be_another_one",
        "test_a_schedule_that_can_t_be_read",
        "test_a_step_that_is_no_json_fails",
        "test_a_step_that_is_unknown_is_no_place_for_a_fork",
        "test_a_wait_keeps_its_first_deadline",
        "test_of_times_that_have_passed_the_last_one_starts_a_run",
        "test_what_can_t_be_asked_for_starts_nothing",
    },
}
#: Of the tests of DBOS alone, those that only a campaign tries.
_LARGE = {
    "test_a_worker_that_is_gone_keeps_its_slot",
    "test_a_run_that_is_handed_on_keeps_its_deadline",
    "test_a_schedule_starts_each_run_once_whoever_works",
    "test_an_application_with_a_dbos_of_its_own_takes_the_engine_in",
    "test_sqlite_serves_one_process",
    "test_it_keeps_no_process_from_its_end",
}
#: What DBOS does by itself, and is no part of ours.
_ITSELF = "TestDbosItself"
#: How a worker is lost, by the store.
_LOST = {"local-sqlite": "kill", "local-postgres": "stop"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if COUNT.campaign:
        return
    left_out = [item for item in items if not _is_tried(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _is_tried(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function) or not item.nodeid.startswith("tests/workflow/engines/"):
        return True
    given = item.callspec.params if hasattr(item, "callspec") else {}
    name, kind = item.originalname, str(given.get("kind", ""))
    if name in _LARGE or name in _LEFT_OUT.get(kind, ()) or getattr(item.cls, "__name__", "") == _ITSELF:
        return False
    return name in _ON_DBOS.get(kind, {name}) and given.get("how") in (None, _LOST.get(kind))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store."""
    url = KINDS[kind].url
    if "{postgres}" in url:
        url = url.format(postgres=request.getfixturevalue("postgres"))
    if kind == "dbos-postgres":
        forget_runs(url)
        request.getfixturevalue("anchor").open(url)
    elif kind == "dbos-sqlite":
        if not _HAS_SQLITE:
            pytest.skip(_NO_SQLITE)
        request.getfixturevalue("anchor").close()
    return url.format(directory=tmp_path)


def forget_runs(url: str, schema: str = "harn_dbos") -> None:
    """Empty the tables of DBOS but for an `Anchor`'s queue: making them anew takes a second."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema]
        ).fetchall()
        which = {
            "dbos_migrations": "false",
            "application_versions": "false",
            "queues": "name NOT LIKE 'harn.%'",
        }
        deletes = [f"DELETE FROM {schema}.{name} WHERE {which.get(name, 'true')}" for (name,) in tables]
        connection.execute("; ".join(["SET session_replication_role = replica", *deletes]))


class Anchor:
    """Keeps DBOS launched from test to test: that takes as long as most of them."""

    def __init__(self) -> None:
        self._engine: Engine | None = None

    def open(self, url: str) -> None:
        if self._engine is None:
            self._engine = open_engine("dbos-postgres", url)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
            self._engine = None


@pytest.fixture(scope="module")
def anchor() -> Iterator[Anchor]:
    anchor = Anchor()
    yield anchor
    anchor.close()


@pytest.fixture(scope="session")
def dbos_forks() -> Iterator[Callable[[], Forks]]:
    """What workers of DBOS are forked from: to import it takes longer than all that they do."""
    started: list[Forks] = []

    def forks() -> Forks:
        if not started:
            started.append(Forks(ROOT, "harnpy.workflow.engines.dbos"))
        return started[0]

    yield forks
    for each in started:
        each.end()


Open = Callable[..., Engine]
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def engines(kind: str, url: str) -> Iterator[Open]:
    """Open an engine on the store of the test; all of them are closed in the end."""
    engines: list[Engine] = []

    def one_more(**options: Any) -> Engine:
        engines.append(open_engine(kind, url, **options))
        return engines[-1]

    yield one_more
    for engine in engines:
        engine.close()


@pytest.fixture
def engine(engines: Open) -> Engine:
    return engines()


@pytest.fixture
def process(kind: str, url: str, popen: Popen, dbos_forks: Callable[[], Forks]) -> Iterator[Start]:
    """Start a process that works on the store of the test; see `processes`."""
    started: list[subprocess.Popen[str]] = []

    def one_more(work: str, *arguments: object) -> subprocess.Popen[str]:
        command = [
            sys.executable,
            "-m",
            "tests.workflow.engines.processes",
            work,
            kind,
            url,
            *map(str, arguments),
        ]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        begin = popen if KINDS[kind].engine != "dbos" or COUNT.campaign else dbos_forks().popen
        started.append(begin(command, cwd=ROOT, text=True, **pipes))
        return started[-1]

    yield one_more
    for each in started:
        each.kill()
        each.communicate(timeout=PATIENCE)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")
