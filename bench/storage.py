"""What do durable streams cost? Appends against bare `sqlite3`, appends that share commits, branches of long
streams against those of short ones, and the bytes of a record.

    python bench/storage.py [--rounds N] [--check]

Both sides of a ratio are measured in turns in one run; medians are printed. Microseconds depend on the disk.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

from options import parser

from harnpy.storage import Row, Store, open_store

DATA = '{"role":"user","content":"' + "x" * 500 + '"}'
APPENDS = 2_000
TASKS, EACH = 100, 20
BRANCHES = 300
LENGTHS = (100, 100_000)
BARE = """CREATE TABLE records (
  rid INTEGER PRIMARY KEY, type TEXT NOT NULL, time INTEGER NOT NULL, turn INTEGER,
  more INTEGER NOT NULL DEFAULT 0, cost REAL, tool_key BLOB, data TEXT NOT NULL, rest TEXT) STRICT"""


class Plain:
    """Rows as they are: the codec isn't measured."""

    def encode(self, records: Sequence[Row]) -> list[Row]:
        return list(records)

    def decode(self, rows: Sequence[Row]) -> list[Row]:
        return list(rows)

    def texts(self, rows: Sequence[Row]) -> list[str | None]:
        return [row.data for row in rows]


def record(seq: int) -> Row:
    return Row(seq, "message_added", seq, DATA)


def timed(work: Callable[[], object]) -> float:
    begin = perf_counter()
    work()
    return perf_counter() - begin


def bare_inserts(directory: Path) -> float:
    """Microseconds of an insert, each a transaction, as `sqlite3` alone does it."""
    db = sqlite3.connect(directory / "bare.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute(BARE)

    def work() -> None:
        for seq in range(APPENDS):
            db.execute(
                "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (seq, "message_added", seq, None, 0, None, None, DATA, None),
            )

    seconds = timed(work)
    db.close()
    return seconds / APPENDS * 1e6


def appends(directory: Path) -> float:
    """Microseconds of an append of one record."""
    store = open_store(f"sqlite:{directory}/store.db?durability=relaxed")
    stream = store.stream("session", "s", Plain())
    stream.append([record(1)], 0)

    def work() -> None:
        for seq in range(1, APPENDS + 1):
            stream.append([record(seq + 1)], seq)

    seconds = timed(work)
    store.close()
    return seconds / APPENDS * 1e6


def shared_commits(directory: Path) -> float:
    """Microseconds of a record when many threads append at once and each waits for the disk."""
    store = open_store(f"sqlite:{directory}/shared.db")
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

    seconds = timed(work)
    store.close()
    return seconds / (TASKS * EACH) * 1e6


def branches(store: Store, length: int) -> float:
    """The 99th percentile of the milliseconds of a branch of a stream of that length."""
    stream = store.stream("session", f"long {length}", Plain())
    if not stream.version:
        stream.append([record(seq) for seq in range(1, length + 1)], 0)
    names = [f"{length} {number}" for number in range(BRANCHES)]
    times = sorted(timed(lambda name=name: store.branch(stream, name, record(1))) for name in names)  # type: ignore[misc]
    for name in names:
        store.delete("session", name)
    return times[BRANCHES * 99 // 100] * 1e3


def main() -> int:
    options = parser(__doc__, rounds=5).parse_args()
    rows: list[tuple[str, float, str, float | None]] = []
    found: list[tuple[float, float, float]] = []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as name:
            place = Path(name)
            found.append((bare_inserts(place), appends(place), shared_commits(place)))
    rows.append(("append / bare insert, WAL, NORMAL", median(o / b for b, o, _ in found), "×", 1 / 0.6))
    rows.append(("bare insert", median(bare for bare, _, _ in found), "µs", None))
    rows.append(("append", median(ours for _, ours, _ in found), "µs", None))
    rows.append((f"append, FULL, {TASKS} threads", median(shared for *_, shared in found), "µs", 8.0))
    with tempfile.TemporaryDirectory() as name:
        store = open_store(f"sqlite:{name}/store.db?durability=relaxed")
        pairs = [[branches(store, length) for length in LENGTHS] for _ in range(options.rounds)]
        store.close()
    rows.append((f"branch of {LENGTHS[1]:,}, p99", median(long for _, long in pairs), "ms", 2.0))
    ratio = median(long / short for short, long in pairs)
    rows.append((f"the same / branch of {LENGTHS[0]}", ratio, "×", 1.5))
    missed = 0
    for title, value, unit, must in rows:
        over = must is not None and value > must
        missed += over
        verdict = "" if must is None else f"must {must:.2f}  {'over' if over else 'met'}"
        print(f"  {title:36}{value:9.2f} {unit:4}{verdict}".rstrip())
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
