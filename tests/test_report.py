"""The page of the rows that harnpy is held to, and the soak: both run, and judge as they say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.forked import Forks
from tests.support import PATIENCE, ROOT
from tests.test_bench import Run, is_there, output

pytestmark = pytest.mark.long

_FEW = ["--rounds", "1", "--size", "0.01"]
#: The packages of rivals, by row.
# The Agents SDK comes with LangGraph; `agents` itself would be that of `bench/`.
_RIVALS = {"turns": "langgraph", "threads": "langgraph", "postgresql": "psycopg"}
_ROWS = [
    *("turns", "send", "threads", "at-once", "tasks", "memory", "cold", "imports", "programs", "original"),
    *("data", "postgresql", "shared", "search", "fork"),
]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Run a script in a process that is forked from one which has imported the rivals."""
    forks = Forks(ROOT, "langgraph.graph", "langgraph.prebuilt", "openai.types.responses")
    yield lambda *command: output(forks.popen, *command)
    forks.end()


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A script of bench/, as a module of its own."""
    known = set(sys.modules)
    monkeypatch.syspath_prepend(ROOT / "bench")
    yield import_module
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(ROOT / "bench")):
            del sys.modules[name]


@pytest.mark.parametrize("row", _ROWS)
def test_every_row_has_the_figures_of_its_parts(row: str, run: Run, bench: Any) -> None:
    if not is_there(_RIVALS.get(row, "pytest")):
        pytest.skip("its rival isn't installed")
    figures = json.loads(run("bench/report.py", "--measure", row, *_FEW))
    # A difference of two times may be negative, so short.
    found = {part.name: part.figure(figures) for part in bench("rows").ROWS[row].parts}
    assert {name for name, figure in found.items() if figure is None} == set()


def test_there_are_fifteen_rows(bench: Any) -> None:
    assert list(bench("rows").ROWS) == _ROWS


def reported(*more: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "bench/report.py", *_FEW, "--rows", "fork", *more]
    return subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=PATIENCE)


def test_the_page_shows_a_row_beside_its_rival_its_base_and_what_is_stored(tmp_path: Path) -> None:
    before, kept = tmp_path / "before.json", tmp_path / "kept.json"
    before.write_text('{"about": {"harnpy": "abc"}, "rows": {"fork": {"1,000 messages": {"figure": 1e9}}}}')
    done = reported("--base", ROOT, "--against", before, "--json", kept)
    assert done.returncode == 0, done.stdout + done.stderr
    row = next(line for line in done.stdout.splitlines() if line.startswith("| **fork**"))
    assert "| `list.copy` |" in row
    assert "| 1000000000 |" in row
    part = json.loads(kept.read_text("utf-8"))["rows"]["fork"]["1,000 messages"]
    assert part.keys() >= {"figure", "goal", "met", "spread", "stored", "base"}
    assert part["stored"] == 1e9


def test_a_check_fails_for_what_is_worse_than_before(tmp_path: Path) -> None:
    before = tmp_path / "before.json"
    before.write_text('{"about": {"harnpy": "abc"}, "rows": {"fork": {"1,000 messages": {"figure": 1e-9}}}}')
    done = reported("--against", before, "--check")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "worse than the stored run (0.00)" in done.stdout
    assert reported("--against", before).returncode == 0


@pytest.mark.parametrize(
    ("figure", "spread", "stored", "base", "complaint"),
    [
        (1.04, 0.01, 1.0, None, "fork, it: 4% worse than the stored run (1.00), A/A 1.0%"),
        (1.04, 0.03, 1.0, None, None),  # within twice the spread
        (1.02, 0.0, 1.0, None, None),  # within 3%
        (1.5, 0.01, 1.0, 1.5, None),  # the base is measured in the same run
        (1.5, 0.01, 1.0, 1.2, "fork, it: 25% worse than the base (1.20), A/A 1.0%"),
        (2.02, 0.01, 1.98, None, "fork, it: misses 2.00, which the stored run met"),
        (2.02, 0.01, 2.01, None, None),
        (None, 0.0, 2.5, None, "fork, it: the stored run has it, here it isn't measured (no bench)"),
        (None, 0.0, None, None, None),
    ],
)
def test_what_is_worse_than_before(
    figure: float | None,
    spread: float,
    stored: float | None,
    base: float | None,
    complaint: str | None,
    bench: Any,
) -> None:
    part = bench("rows").Part("it", 2)
    line = bench("report").Line("fork", part, figure, "", spread, stored, base, "no bench")
    assert list(line.complaints()) == ([] if complaint is None else [complaint])


def test_more_is_better_where_the_goal_says_at_least(bench: Any) -> None:
    part = bench("rows").Part("it", 30, at_least=True)
    line = bench("report").Line("turns", part, 20.0, "", 0.01, 40.0, None, "")
    assert list(line.complaints()) == [
        "turns, it: 100% worse than the stored run (40.0), A/A 1.0%",
        "turns, it: misses 30.0, which the stored run met",
    ]


def test_a_row_is_at_its_goal_when_all_its_parts_are(bench: Any) -> None:
    def page(*figures: float) -> str:
        parts = bench("rows").ROWS["tasks"].parts
        lines = [
            bench("report").Line("tasks", part, figure, "", 0.0, None, None, "")
            for part, figure in zip(parts, figures, strict=True)
        ]
        return str(bench("report").page(lines, {}, has_base=False))

    assert "0 of 1 rows are at their goal: none." in page(0.2, 0.6)
    assert "1 of 1 rows are at their goal: tasks." in page(0.2, 0.4)


def test_a_soak_says_what_is_left(run: Run) -> None:
    printed = run("bench/soak.py", "--rounds", "2")
    assert "2 rounds in" in printed
    assert "memory: not judged" in printed
    assert printed.endswith("no descriptor, thread, task or greenlet is left\n")


def test_memory_is_judged_by_minutes_behind_the_first_five(bench: Any) -> None:
    soak = bench("soak")

    def growth(*residents: int) -> Any:
        """Three samples a minute, two of them far off."""
        minutes = [(minute, each) for minute, found in enumerate(residents) for each in (1, found, 10**9)]
        return soak.growth([soak.Sample(minute, each, 100) for minute, each in minutes])

    assert growth(10, 20, 30, 40, 50, 100, 103, 99)["resident memory"] == 1.03
    assert growth(10, 20, 30, 40, 50, 100, 104, 99)["resident memory"] == 1.04
    assert growth(10, 20, 30, 40, 50, 100) is None


def test_what_is_left_is_named(bench: Any, tmp_path: Path) -> None:
    soak = bench("soak")
    before = soak.alive()
    with (tmp_path / "open").open("w"):
        found = soak.more(before, soak.alive())
    assert found == [f"descriptors left: {tmp_path / 'open'}"]
    assert soak.more(before, soak.alive()) == []
