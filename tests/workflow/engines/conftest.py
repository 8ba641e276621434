"""The engines that the contract is tested on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harnpy.workflow.engines import open_engine as opened
from harnpy.workflow.engines.contract import Body, Engine
from tests.support import ROOT, Popen
from tests.workflow.engines.bodies import BODIES, Journal


class Kind(NamedTuple):
    """An engine on a store. ``url`` has a place for the directory of the test, or for the server."""

    engine: str
    url: str
    #: Options of an engine whose leases end soon, for workers that stand still.
    hasty: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}


KINDS = {
    "local-sqlite": Kind("local", "sqlite:{directory}/runs.db?durability=relaxed", {"ttl": 0.5}),
    "local-postgres": Kind("local", "{postgres}", {"ttl": 0.5}),
}


def open_engine(
    kind: str, url: str, bodies: Mapping[str, Body] = BODIES, *, hasty: bool = False, **options: Any
) -> Engine:
    """Open an engine of that kind on the store at ``url``."""
    found = KINDS[kind]
    more = {**found.options, **(found.hasty if hasty else {}), **options}
    return opened(found.engine, url, bodies=bodies, **more)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store."""
    url = KINDS[kind].url
    if "{postgres}" in url:
        return url.format(postgres=request.getfixturevalue("postgres"))
    return url.format(directory=tmp_path)


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
def process(kind: str, url: str, popen: Popen) -> Iterator[Start]:
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
        started.append(popen(command, cwd=ROOT, text=True, **pipes))
        return started[-1]

    yield one_more
    for each in started:
        each.kill()
        each.communicate()


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")
