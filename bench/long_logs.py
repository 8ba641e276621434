"""What does a session of 100,000 events cost: to write, to read, to search, to hold? And what does an import?

    python bench/long_logs.py [--rounds N] [--length N] [--check]

On SQLite with the durability that is the default. Times depend on the machine. Spec: 10 §C14.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import accumulate
from pathlib import Path
from random import Random
from statistics import median

from options import environment, parser
from storage import Report, collected, seconds

from harnpy.session import SessionRegistry
from harnpy.session.codec import SessionCodec
from harnpy.session.events import MESSAGE_ADDED, EventDraft
from harnpy.session.live import live_sessions
from harnpy.session.stored import StoredSession
from harnpy.storage import Store, open_store
from harnpy.world import World

BATCH = 1_000
#: How many sessions are open that nobody does anything with.
IDLE = 1_000
#: The lengths that the budgets are about, in events.
BUDGETED = 100_000


def said() -> Iterator[str]:
    """Texts of 500 bytes, of words as frequent as those of a language.

    An index costs what there is in a text: one of 500 times "x" is indexed five times as fast.
    """
    chance = Random(1)
    words = ["".join(chance.choices("etaoinshrdlucmfwyp", k=chance.randint(2, 9))) for _ in range(5_000)]
    weights = list(accumulate(1 / rank for rank in range(1, len(words) + 1)))
    number = 0
    while True:
        number += 1
        text = " ".join(chance.choices(words, cum_weights=weights, k=120))
        yield f"{number} {text}"[:500]


def write(store: Store, length: int, texts: Iterator[str]) -> StoredSession:
    session = StoredSession.begin("long", store, World())
    for begin in range(1, length, BATCH):
        count = min(BATCH, length - begin)
        messages = ({"role": "user", "content": next(texts)} for _ in range(count))
        session.write(*(EventDraft(MESSAGE_ADDED, message) for message in messages))
    return session


def kilobytes_held(store: Store, length: int) -> float:
    """The memory of a loaded session, by event."""
    tracemalloc.start()
    try:
        session = StoredSession.load("long", store, World())
        assert session is not None
        session.messages()
        return tracemalloc.get_traced_memory()[0] / length / 1000
    finally:
        tracemalloc.stop()


def kilobytes_open(open_one: Callable[[str], object]) -> float:
    """The memory of an open session in which nothing happens; ``open_one`` opens the one of a name."""
    names = [f"idle-{number}" for number in range(IDLE)]
    open_one("first")  # what all of them share
    gc.collect()
    tracemalloc.start()
    try:
        held = [open_one(name) for name in names]
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / len(held) / 1000
    finally:
        tracemalloc.stop()


def imported(module: str) -> float:
    """Milliseconds that the import of a compiled module takes a process, the interpreter's start apart."""

    def start(program: str) -> float:
        command = [sys.executable, "-c", program]
        return seconds(partial(subprocess.run, command, env=environment(), check=True)) * 1e3

    start(f"import {module}")
    return start(f"import {module}") - start("pass")


def main() -> int:
    options = parser(__doc__, rounds=5)
    options.add_argument("--length", type=int, default=BUDGETED)
    chosen = options.parse_args()
    report, length = Report(), chosen.length
    with tempfile.TemporaryDirectory() as name, closing(open_store(f"sqlite:{Path(name)}/long.db")) as store:
        texts = iter([text for text, _ in zip(said(), range(length), strict=False)])
        with collected():
            took = seconds(lambda: write(store, length, texts))
        report.row(f"write {length:,} events, {BATCH} at once", took, "s", must=10.0)
        session = StoredSession.load("long", store, World())
        assert session is not None
        codec = SessionCodec(session.origin)

        def read() -> float:
            with collected():
                return seconds(lambda: list(session.stream.read()))

        def search(**how: bool) -> float:
            found = []
            took = seconds(lambda: found.extend(store.search(f"{length // 2}", codec=codec, **how)))
            assert len(found) == 1, found
            return took * 1e3

        report.row("read and decode them", median(read() for _ in range(chosen.rounds)), "s", must=1.0)
        report.row("search, the first one", search(), "ms")
        report.row("search", median(search() for _ in range(chosen.rounds)), "ms", must=100.0)
        report.row("raw search, the first one, which indexes", search(raw=True), "ms")
        report.row("raw search", median(search(raw=True) for _ in range(chosen.rounds)), "ms")
        report.row("memory of a loaded event", kilobytes_held(store, length), "kB", must=1.5)
        for number in range(IDLE):
            StoredSession.begin(f"idle-{number}", store, World())
        StoredSession.begin("first", store, World())
        opened = kilobytes_open(live_sessions(store, World()).load)
        report.row("memory of an idle open session", opened, "kB", must=3.0)
    report.row("the same in memory", kilobytes_open(SessionRegistry(cap=2 * IDLE).open), "kB", must=2.0)
    for module in ("harnpy.storage", "harnpy.session"):
        took = median(imported(module) for _ in range(chosen.rounds))
        report.row(f"import {module}", took, "ms", must=60.0)
    return 1 if report.missed and chosen.check else 0


if __name__ == "__main__":
    sys.exit(main())
