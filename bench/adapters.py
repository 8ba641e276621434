"""What do conversations of other tools cost? A LangGraph graph on harnpy's saver against its own savers, and
transcripts of Claude Code that are imported against reading and keeping their bare lines.

    python bench/adapters.py [--rounds N] [--turns N] [--megabytes N] [--check]

Both sides of a row are measured in turns in one run; medians are printed. Each import, and each opening, is a
process of its own. A peer that isn't installed is left out, with a notice.
"""

from __future__ import annotations

import json
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from uuid import UUID

from options import environment, parser
from storage import Report, collected, postgres_server

THREAD = {"configurable": {"thread_id": "t"}}
WORDS = 'the result of deploy failed "quoted" path/to/file.py naïve → line\n'.split(" ")
#: As long as an answer is; PostgreSQL compresses words half as well as one letter again and again.
TEXT = " ".join(random.Random(7).choices(WORDS, k=80))
#: Turns at the end, whose median counts.
LAST = 20

# Graphs on savers.


@contextmanager
def saver_of(kind: str, place: str) -> Iterator[Any]:
    """A checkpointer that keeps its threads at ``place``."""
    if kind == "harnpy":
        from harnpy.adapters.langgraph import HarnpySaver
        from harnpy.storage import open_store

        with closing(open_store(place)) as store:
            yield HarnpySaver(store)
    elif place.startswith("postgresql:"):
        from langgraph.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string(place) as saver:
            saver.setup()
            yield saver
    else:
        from langgraph.checkpoint.sqlite import SqliteSaver

        with SqliteSaver.from_conn_string(place) as saver:
            yield saver


def graph_on(saver: Any) -> Any:
    """A conversation in which an answer follows each question."""
    from langgraph.graph import START, MessagesState, StateGraph

    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda state: {"messages": [("ai", TEXT)]})
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=saver)


def turns(places: dict[str, str], count: int) -> dict[str, list[float]]:
    """Milliseconds of the last turns of ``count``, taken by all savers in turns."""
    took: dict[str, list[float]] = {kind: [] for kind in places}
    with ExitStack() as stack:
        graphs = {
            kind: graph_on(stack.enter_context(saver_of(kind, place))) for kind, place in places.items()
        }
        for number in range(count):
            for kind, graph in graphs.items():
                with collected() if number >= count - LAST else ExitStack():
                    begin = perf_counter()
                    graph.invoke({"messages": [("user", TEXT)]}, THREAD)
                    took[kind].append((perf_counter() - begin) * 1e3)
    return {kind: times[-LAST:] for kind, times in took.items()}


def open_thread(kind: str, place: str) -> dict[str, float]:
    """Milliseconds until a thread is open, and the most memory that it takes, in MB."""
    with saver_of(kind, place) as saver:
        saver.get_tuple({"configurable": {"thread_id": "another"}})  # connected
        with collected():
            begin = perf_counter()
            saver.get_tuple(THREAD)
            took = (perf_counter() - begin) * 1e3
        tracemalloc.start()
        graph_on(saver).invoke({"messages": [("user", TEXT)]}, THREAD)
        return {"ms": took, "mb": tracemalloc.get_traced_memory()[1] / 1e6}


def savers(report: Report, title: str, places: dict[str, str], count: int, rounds: int) -> None:
    print(f"\n{title}: a thread of {count} turns")
    try:
        took = turns(places, count)
    except ImportError as error:
        print(f"  left out: {error}")
        return
    peer, ours = (median(took[kind]) for kind in ("langgraph", "harnpy"))
    report.row("a turn, LangGraph's saver", peer, "ms")
    report.row("a turn, HarnpySaver", ours, "ms", ours / peer, 1.1)
    found: dict[str, list[dict[str, float]]] = {kind: [] for kind in places}
    for _ in range(rounds):
        for kind, place in places.items():
            found[kind].append(child("open_thread", kind, place))
    for what, unit, must in (("opening it", "ms", 2.0), ("memory of a turn on it", "mb", 2.0)):
        peer, ours = (median(each[unit] for each in found[kind]) for kind in ("langgraph", "harnpy"))
        report.row(f"{what}, LangGraph's saver", peer, unit)
        report.row(f"{what}, HarnpySaver", ours, unit, ours / peer, must)


def threads(report: Report, count: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        places = {"langgraph": f"{name}/theirs.db", "harnpy": f"sqlite:{name}/ours.db"}
        savers(report, "sqlite", places, count, rounds)
    try:
        import langgraph.checkpoint.postgres  # noqa: F401

        with postgres_server() as url:
            savers(report, "postgresql", {"langgraph": url, "harnpy": url}, count, rounds)
    except ImportError as error:
        print(f"\npostgresql is left out: {error}")


# Imports.


class Writer:
    """Writes a transcript as Claude Code does, with lines as long as real ones."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._before: str | None = None
        self._base = {
            "isSidechain": False,
            "cwd": "/work/app",
            "sessionId": self._id(),
            "version": "2.1.197",
            "gitBranch": "main",
        }

    def write(self, path: Path, size: int) -> None:
        with path.open("w") as file:
            while file.tell() < size:
                file.writelines(f"{json.dumps(line)}\n" for line in self._turn())

    def _turn(self) -> Iterator[dict[str, Any]]:
        yield self._line("user", {"role": "user", "content": self._text(300)})
        for _ in range(6):
            calls = [f"toolu_{self._id()[:24]}" for _ in range(2)]
            thought = {"type": "thinking", "thinking": self._text(600), "signature": self._id() * 8}
            blocks = [thought, {"type": "text", "text": self._text(200)}]
            for call in calls:
                given = {"command": self._text(120)}
                blocks.append({"type": "tool_use", "id": call, "name": "Bash", "input": given})
            answer = {
                "id": f"msg_{self._id()}",
                "role": "assistant",
                "model": "claude-opus-4-8",
                "usage": {"input_tokens": 10, "output_tokens": 200},
            }
            for block in blocks:
                yield self._line("assistant", {**answer, "content": [block]})
            for call in calls:
                text = self._text(self._chance.choice([400, 2000, 6000]))
                result = {"type": "tool_result", "tool_use_id": call, "content": text}
                yield self._line(
                    "user", {"role": "user", "content": [result]}, toolUseResult={"stdout": text}
                )

    def _line(self, type: str, message: dict[str, Any], **more: Any) -> dict[str, Any]:
        before, self._before = self._before, self._id()
        line = {"parentUuid": before, **self._base, "type": type, "message": message, **more}
        return {**line, "uuid": self._before, "timestamp": "2026-01-05T09:30:00.000Z"}

    def _id(self) -> str:
        return str(UUID(int=self._chance.getrandbits(128), version=4))

    def _text(self, size: int) -> str:
        return " ".join(self._chance.choices(WORDS, k=size // 6))


def keep_lines(folder: str, place: str) -> dict[str, float]:
    """Seconds of `json.loads` of each line, and of putting their bytes into a bare table."""
    with closing(sqlite3.connect(place)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE lines (line BLOB)")
        begin = perf_counter()
        for path in sorted(Path(folder).iterdir()):
            with path.open("rb") as file:
                lines = [(line,) for line in file if json.loads(line)]
            db.executemany("INSERT INTO lines VALUES (?)", lines)
            db.commit()
        return {"s": perf_counter() - begin, "mb": most_memory()}


def import_lines(folder: str, place: str) -> dict[str, float]:
    """Seconds of an import of the transcripts."""
    from harnpy.session import import_sessions
    from harnpy.storage import open_store

    with closing(open_store(f"sqlite:{place}")) as store:
        store.head("session", "nobody")  # connected
        begin = perf_counter()
        report = import_sessions([folder], store)
        took = perf_counter() - begin
        assert not report.errors, report.errors
        return {"s": took, "mb": most_memory()}


def most_memory() -> float:
    """The most memory that this process ever had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def imports(report: Report, title: str, sizes: list[int], rounds: int) -> None:
    """``sizes`` are those of the transcripts, in bytes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "transcripts")
        folder.mkdir()
        chance = random.Random(7)
        for number, size in enumerate(sizes):
            Writer(chance).write(folder / f"{number}.jsonl", size)
        lines = sum(path.read_bytes().count(b"\n") for path in folder.iterdir())
        print(f"\n{title}, {lines:,} lines")
        bare, ours = [], []
        for number in range(rounds):
            bare.append(child("keep_lines", str(folder), f"{name}/{number}.bare"))
            ours.append(child("import_lines", str(folder), f"{name}/{number}.db"))
        least, took = (median(each["s"] for each in found) for found in (bare, ours))
        report.row("json.loads, and executemany of the lines", least, "s")
        report.row("import_sessions into SQLite", took, "s", took / least, 2.0)
        most = median(each["mb"] for each in ours)
        report.row("its memory", most, "MB", must=200 + lines * 100 / 1e6)


def child(work: str, *arguments: str) -> dict[str, float]:
    """Return what a function of this module returns in a process of its own."""
    command = [sys.executable, __file__, "--work", work, *arguments]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


WORK: dict[str, Callable[..., dict[str, float]]] = {
    "open_thread": open_thread,
    "keep_lines": keep_lines,
    "import_lines": import_lines,
}


def main() -> int:
    if sys.argv[1:2] == ["--work"]:
        print(json.dumps(WORK[sys.argv[2]](*sys.argv[3:])))
        return 0
    options = parser(__doc__, rounds=3)
    options.add_argument("--turns", type=int, default=300, help="turns of a thread, 0: no threads")
    options.add_argument("--megabytes", type=int, default=60, help="of transcripts")
    chosen = options.parse_args()
    report = Report()
    if chosen.turns:
        threads(report, chosen.turns, chosen.rounds)
    usual, whole = 3_000_000, chosen.megabytes * 1_000_000
    imports(report, "transcripts of up to 3 MB", [min(usual, whole)] * max(1, whole // usual), chosen.rounds)
    imports(report, "one transcript", [whole], chosen.rounds)
    return 1 if report.missed and chosen.check else 0


if __name__ == "__main__":
    sys.exit(main())
