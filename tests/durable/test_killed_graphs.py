"""A graph of six stages on both engines, its processes killed at every stage and at random moments.

Spec: 10 §C12.1 e and g, §C19.4.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.counts import COUNT
from tests.durable.processes import timeless
from tests.support import PATIENCE, ROOT, Popen
from tests.workflow.engines.kinds import KINDS

STEPS = [
    "begin", "stage:look:1", "stage:draft:2", "stage:each:3", "stage:good:4", "stage:check:5", "stage:all:6",
]  # fmt: skip

#: The ids of items of a map follow from the run's.
_OF_RUN = re.compile(r"artifact_[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


class Graph:
    """The graph on one engine and store, each run under an id of its own."""

    def __init__(self, kind: str, url: str, directory: Path, popen: Popen) -> None:
        self._words = [KINDS[kind].engine, url]
        self._directory, self._popen = directory, popen

    def begin(self, id: str, dies_after: int = -1) -> Any:
        return self._popen(
            [sys.executable, "-m", "tests.durable.killed_graph", *self._words, id, str(dies_after)],
            cwd=self._directory,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self._directory), "PYTHONPATH": str(ROOT)},
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def end(self, id: str) -> tuple[Any, int]:
        """Run it to its end; return its record, and how often the model was asked by all processes."""
        process = self.begin(id)
        printed, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
        record, keys = json.loads(printed)
        assert keys == STEPS
        text = _OF_RUN.sub("artifact_ID", json.dumps(record).replace(id, "run"))
        return timeless(json.loads(text)), self.asked()

    def asked(self) -> int:
        asked = self._directory / "asked"
        count = len(asked.read_text().splitlines())
        asked.unlink()
        return count


@pytest.fixture(params=KINDS if COUNT.campaign else ["local-sqlite"])
def graph(request: pytest.FixtureRequest, tmp_path: Path, popen: Popen) -> Graph:
    (tmp_path / "a.txt").write_text("hello")
    url = KINDS[request.param].url
    if "{postgres}" in url:
        url = url.format(postgres=request.getfixturevalue("postgres"))
    return Graph(request.param, url.format(directory=tmp_path), tmp_path, popen)


def test_killed_behind_every_step_and_at_any_moment(graph: Graph) -> None:
    expected, asked = graph.end("whole")
    for number in range(len(STEPS)) if COUNT.campaign else [3]:
        id = f"step{number}"
        process = graph.begin(id, number)
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == -signal.SIGKILL, errors
        assert graph.end(id) == (expected, asked)
    for seed in COUNT.seeds(COUNT.killed_graphs):
        id, chance = f"moment{seed}", Random(seed)
        process = graph.begin(id)
        try:
            process.communicate(timeout=chance.uniform(0.3, 1.5))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=PATIENCE)
        record, count = graph.end(id)
        assert record == expected
        assert count <= asked + 2  # two branches of the map ask at once
