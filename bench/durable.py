"""What does a durable step cost, beside the commit that it is, and beside DBOS's?

    python bench/durable.py [--rounds N] [--steps N] [--check]

One run of so many steps that do nothing, whose outputs are a hundred characters: by the engine `local` in a
SQLite store, by DBOS Transact in a SQLite database, and the same rows in a bare table of `sqlite3`, one
commit each, all three with a write-ahead log. Once as stores are by default, where each commit waits for the
disk (`synchronous = FULL`), and once without (`NORMAL`), where the disk's share doesn't hide the rest. DBOS's
own database has a rollback journal and FULL, which is a row of its own; the last one is what a step of `dbos`
costs beside DBOS's. Sides take turns, in one process; a row is the median of the rounds.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from dbos import DBOS, DBOSConfig
from options import parser
from sqlalchemy import Engine, event
from storage import Report

from harnpy.workflow.engines import open_engine
from harnpy.workflow.engines.contract import Job, RunContext

OUTPUT = {"text": "x" * 100}
JOB = Job("steps", "steps", {})


class Steps:
    """The body of a run, and how long a step of its last one took."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.seconds = 0.0

    def __call__(self, job: Job, run: RunContext) -> None:
        began = perf_counter()
        for n in range(self.count):
            run.step(f"step:{n}", lambda: OUTPUT)
        self.seconds = (perf_counter() - began) / self.count


#: What `synchronous` is called in a store's URL.
DURABILITIES = {"FULL": "full", "NORMAL": "relaxed"}


def engine(name: str, path: Path, count: int, synchronous: str) -> float:
    """Return how long a step takes by an engine of ours."""
    body = Steps(count)
    url = f"sqlite:{path}?durability={DURABILITIES[synchronous]}"
    opened = open_engine(name, url, bodies={"steps": body})
    opened.start(JOB).result()
    opened.close()
    return body.seconds


class Theirs:
    """DBOS without us."""

    def __init__(self, count: int) -> None:
        self.seconds = 0.0
        self.synchronous = "FULL"
        logging.getLogger("dbos").addHandler(logging.NullHandler())

        @DBOS.workflow(name="bench")
        def run() -> None:
            began = perf_counter()
            for n in range(count):
                DBOS.run_step({"name": f"step:{n}"}, lambda: OUTPUT)
            self.seconds = (perf_counter() - began) / count

        self._run = run

        @event.listens_for(Engine, "connect")
        def connected(connection: Any, record: object) -> None:
            if isinstance(connection, sqlite3.Connection):
                connection.execute(f"PRAGMA synchronous = {self.synchronous}")

    def step(self, path: Path, journal: str) -> float:
        """Return how long a step takes by DBOS, in a database with that journal."""
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA journal_mode = {journal}")
        DBOS(config=DBOSConfig(name="bench", system_database_url=f"sqlite:///{path}"))
        DBOS.launch()
        DBOS.start_workflow(self._run).get_result()
        DBOS.destroy()
        return self.seconds


def bare(path: Path, count: int, synchronous: str) -> float:
    """Return how long a commit of a row takes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("CREATE TABLE steps (run TEXT, n INTEGER, output TEXT, PRIMARY KEY (run, n))")
        began = perf_counter()
        for n in range(count):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                "INSERT INTO steps VALUES (?, ?, ?)", ("run", n, '{"text": "' + "x" * 100 + '"}')
            )
            connection.execute("COMMIT")
        return (perf_counter() - began) / count


def measured(theirs: Theirs, rounds: int, count: int, synchronous: str) -> dict[str, float]:
    """Return how long a step takes on each side."""
    theirs.synchronous = synchronous
    found: dict[str, list[float]] = {}
    sides: dict[str, Callable[[Path], float]] = {
        "bare": lambda path: bare(path, count, synchronous),
        "local": lambda path: engine("local", path, count, synchronous),
        "theirs": lambda path: theirs.step(path, "WAL"),
        "journal": lambda path: theirs.step(path, "DELETE"),
        "dbos": lambda path: engine("dbos", path, count, synchronous),
    }
    with TemporaryDirectory() as directory:
        for number in range(rounds):
            for side, step in sides.items():
                found.setdefault(side, []).append(step(Path(directory) / f"{side}{number}.db"))
    return {side: median(each) for side, each in found.items()}


def main() -> int:
    options = parser(__doc__, rounds=5)
    options.add_argument("--steps", type=int, default=300, help="steps of a run")
    chosen = options.parse_args()
    theirs, report = Theirs(chosen.steps), Report()
    for synchronous in DURABILITIES:
        took = measured(theirs, chosen.rounds, chosen.steps, synchronous)
        musts = (1.6, 0.2) if synchronous == "FULL" else (None, None)

        def row(name: str, side: str, beside: str, must: float | None = None) -> None:
            report.row(name, took[side] * 1e6, "µs", took[side] / took[beside], must)  # noqa: B023

        print(f"\nsqlite:, WAL, {synchronous}: a step of a run of {chosen.steps}")
        report.row("a bare commit", took["bare"] * 1e6, "µs")
        row("engine local, beside the bare commit", "local", "bare", musts[0])
        row("engine local, beside DBOS 3.4", "local", "theirs", musts[1])
        row("DBOS 3.4, beside the bare commit", "theirs", "bare")
        row("DBOS 3.4 with a rollback journal, beside WAL", "journal", "theirs")
        row("engine dbos, beside DBOS 3.4", "dbos", "theirs")
    return int(chosen.check and report.missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
