"""What all tests share: the `harnpy` command as a real process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from harnpy.vm.vm import RECURSION_LIMIT
from tests import postgres as postgres_server
from tests.clock import SimulatedClock, simulated_time
from tests.counts import COUNT
from tests.forked import Forks, fits
from tests.support import PATIENCE, ROOT, Command, Popen

# Containers often forbid to keep what modules are compiled to. The suite starts thousands of processes: each
# would compile its modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Programs that are waited for, or killed, print into pipes, where Python would keep lines back.
os.environ["PYTHONUNBUFFERED"] = "1"

# What trusts a project is the test's.
os.environ.pop("HARN_TRUST", None)

# What the first Vm would do: hypothesis refuses a limit that changes under it.
sys.setrecursionlimit(RECURSION_LIMIT)

#: On the PostgreSQL server, for this process of the run.
_DATABASE = f"harn_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"


def pytest_configure() -> None:
    """Set how properties are tried.

    Two cores shared by everything: how long one example takes says nothing about it. CI looks at the same
    examples every time, so that a failure there is the change's; at a desk every run looks at new ones.
    """
    settings.register_profile(
        "harnpy",
        max_examples=COUNT.examples(12),
        deadline=None,
        derandomize="CI" in os.environ and not COUNT.campaign,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    settings.load_profile("harnpy")


@pytest.fixture
def clock() -> Iterator[SimulatedClock]:
    """The test runs in simulated time."""
    with simulated_time() as clock:
        yield clock


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user trusts every project."""
    monkeypatch.setenv("HARN_TRUST", "1")


@pytest.fixture(scope="session")
def forks() -> Iterator[Callable[[], Forks]]:
    """What `harnpy` commands are forked from; started by the first."""
    started: list[Forks] = []

    def forks() -> Forks:
        if not started:
            started.append(Forks(ROOT))
        return started[0]

    yield forks
    for each in started:
        each.end()


@pytest.fixture(scope="session")
def popen(forks: Callable[[], Forks]) -> Popen:
    """Start a Python process that imports harnpy, as `subprocess.Popen` does; in a campaign, it does."""

    def popen(args: Sequence[str | Path], **options: Any) -> subprocess.Popen[Any]:
        return subprocess.Popen(args, **options) if COUNT.campaign else forks().popen(args, **options)

    return popen


@pytest.fixture
def harnpy(tmp_path: Path, forks: Callable[[], Forks]) -> Command:
    """Run `harnpy ARGS` in `tmp_path`, as a user would; return the finished process.

    In a campaign each has an interpreter of its own: nothing that a command needs is there before.
    """

    def run(*args: str | Path, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        # The user's own cache of parsed programs serves here too; everything else of HOME is the test's.
        cache = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
        home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": cache, "PYTHONPATH": str(ROOT)}
        words, environment = list(map(str, args)), {**os.environ, **home, **env}
        if fits(env) and not COUNT.campaign:
            return forks().run(words, stdin, tmp_path, environment, PATIENCE)
        return subprocess.run(
            [sys.executable, "-m", "harnpy", *words],
            cwd=tmp_path,
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
            env=environment,
        )

    return run


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a PostgreSQL server, the same for all processes of the run."""
    directory = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        directory = directory.parent
    with postgres_server.server(directory) as url:
        yield url


@pytest.fixture
def postgres(postgres_url: str) -> str:
    """The URL of an empty store."""
    return postgres_server.emptied(postgres_url, _DATABASE)


@pytest.fixture
def bare_postgres(postgres_url: str) -> str:
    """The URL of a database without a store."""
    return postgres_server.dropped(postgres_url, _DATABASE)
