"""The fifteen rows of `bench/report.py`: what each measures, beside which rival, and what it is meant to be.

A row's function measures it once, both sides in turns in this process, with the functions of the bench
scripts, and returns its figures by their names; ``size`` is 1, or less to see that all of it runs. Scripts
are imported where they are used, so that no row pays for another one's imports.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Container, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fixtures import Fixture

    from harnpy import Vm

Figures = dict[str, float]


class Part(NamedTuple):
    """A figure that has a goal: that of its name or, by ``of_all``, one of the row's."""

    name: str
    goal: float
    unit: str = "×"
    #: Whether it is to be at least the goal: how many times faster we are.
    at_least: bool = False
    of_all: Callable[[Figures], tuple[float, str]] | None = None

    def figure(self, figures: Figures) -> tuple[float, str] | None:
        """Return it, and what it is the figure of if the name doesn't say so; None when it isn't there."""
        if self.of_all is not None:
            return self.of_all(figures) if figures else None
        return (figures[self.name], "") if self.name in figures else None

    def meets(self, figure: float) -> bool:
        return figure >= self.goal if self.at_least else figure <= self.goal

    def worse(self, now: float, before: float) -> float:
        """By which part it is slower, or more, than before; negative when it is less."""
        return (before / now if self.at_least else now / before) - 1


class Row(NamedTuple):
    title: str
    rival: str
    measure: Callable[[float], Figures]
    parts: tuple[Part, ...]
    #: What the page says below the table.
    note: str = ""


def largest(figures: Figures) -> tuple[float, str]:
    name = max(figures, key=figures.__getitem__)
    return figures[name], name


def smallest(figures: Figures) -> tuple[float, str]:
    name = min(figures, key=figures.__getitem__)
    return figures[name], name


def middle(figures: Figures) -> tuple[float, str]:
    return median(figures.values()), ""


def few(count: int, size: float, least: int = 1) -> int:
    return max(least, round(count * size))


@contextmanager
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="harnpy-report-") as name:
        yield Path(name)


def turns(size: float) -> Figures:
    import agents

    def rate(side: agents.Side, tools: bool) -> float:
        with_all = few(200, size, 2)
        return with_all / sum(asyncio.run(side.converse(with_all, tools)))

    ours, theirs = agents.Harnpy(), agents.LangGraph()
    found = {}
    for name, tools in (("plain", False), ("with a tool", True)):
        for side in (ours, theirs):
            asyncio.run(side.converse(few(20, size, 2), tools))  # imports what it needs, and gets warm
        before, rival, after = rate(ours, tools), rate(theirs, tools), rate(ours, tools)
        found[name] = mean((before, after)) / rival
    return found


def sends(size: float) -> Figures:
    import runtime

    found = {}
    for history in runtime.HISTORIES:
        # A session that is to stay short has few turns.
        times = range(few(max(5, 200 // history), size))
        pairs = [runtime.turns("memory:", history, few(100, size)) for _ in times]
        found[f"behind {history:,} messages"] = median(ours / bare for ours, bare in pairs)
    return found


def threads(size: float) -> Figures:
    import runtime
    from runtime_peers import agents_sdk

    from harnpy import AgentDef

    definition = AgentDef("quick", model="quick/m", tools=())
    rates = []
    for side in (partial(runtime.ours, agent=definition), agents_sdk):
        with directory() as place, side(place) as converse:
            rates.append(runtime.rate(converse, few(100, size), few(20, size)))
    return {"turns/s": rates[0] / rates[1]}


def at_once(size: float) -> Figures:
    import agents

    return {"one turn each": agents.concurrent(1, few(200, size), turns=1)}


def tasks(size: float) -> Figures:
    import tasks

    vm, names = tasks.machine(), ("spawn and await", "yield and come back")
    return {
        name: tasks.ratio(vm, source, native, few(9, size))
        for name, (_, source, native, _) in zip(names, tasks.ROWS, strict=False)
    }


def memory(size: float) -> Figures:
    import long_logs
    import tasks

    from harnpy.session import SessionRegistry
    from harnpy.session.live import live_sessions
    from harnpy.session.stored import StoredSession
    from harnpy.storage import open_store
    from harnpy.world import World

    found = {"a parked task": tasks.parked_bytes(few(10_000, size)) / 1024}
    length = few(100_000, size, 10)
    idle = long_logs.IDLE = few(1_000, size, 10)
    with directory() as place, closing(open_store(f"sqlite:{place}/long.db")) as store:
        long_logs.write(store, length, long_logs.said())
        found["a loaded event"] = long_logs.kilobytes_held(store, length)
        for name in ("first", *(f"idle-{number}" for number in range(idle))):
            StoredSession.begin(name, store, World())
        stored = live_sessions(store, World())
        found["an idle open session, `sqlite:`"] = long_logs.kilobytes_open(stored.load)
    registry = SessionRegistry(cap=2 * idle)
    found["an idle open session, in memory"] = long_logs.kilobytes_open(registry.open)
    return found


def cold(size: float) -> Figures:
    return _started(size, "hello, cold")


def imports(size: float) -> Figures:
    import startup

    return _started(size, startup.STANDARD, *startup.IMPORTS)


def _started(size: float, *names: str) -> Figures:
    import startup

    with directory() as place:
        ways = startup.ways(place)
        chosen = {name: ways[name] for name in (startup.BARE, *names)}
        return startup.ratios(startup.timed(place, chosen, few(10, size)))


def programs(size: float) -> Figures:
    import vm as bench
    from fixtures import FIXTURES

    return _against_python([fixture.name for fixture in FIXTURES], bench.ratio, few(3, size))


#: The programs of `bench/vm.py` that are like those of the original's in which harnpy was least ahead of its
#: release, in Rust: how many times as fast harnpy was then, and how many times as long as Python it took (the
#: stored run's build). That release isn't on this machine, so Python is the common measure; as there, each
#: program runs once, in functions that were never entered.
ORIGINAL = {
    "method dispatch": (1.25, 11.1),
    "struct field read": (1.28, 4.55),
    "dict read by key": (1.44, 6.4),
    "list iteration": (1.58, 5.77),
    "arith loop": (1.65, 1.82),
    "8-local sum, locals": (2.3, 1.43),
}


def original(size: float) -> Figures:
    import vm as bench

    return {
        name: ORIGINAL[name][0] * ORIGINAL[name][1] / found
        for name, found in _against_python(ORIGINAL, bench.ratio_of_first_calls, few(200, size)).items()
    }


def _against_python(
    names: Container[str], ratio: Callable[[Vm, Fixture, int], float], rounds: int
) -> Figures:
    """Programs of `bench/vm.py`, × the same in Python."""
    from fixtures import FIXTURES

    from harnpy import Vm

    vm = Vm()
    chosen = [fixture for fixture in FIXTURES if fixture.name in names]
    return vm.enter(lambda: {each.name: ratio(vm, each, rounds) for each in chosen})


def data(size: float) -> Figures:
    import data

    found = {}
    for row in data.rows(""):
        for word, name in (("write", "JSON written"), ("chain", "a chain of iterators")):
            if row[0].startswith((word, f"a {word}")):
                found[name], _ = data.measured(row, few(2, size))
    return found


def postgresql(size: float) -> Figures:
    from appenders import bare_postgres, records
    from storage import collected, postgres_server, seconds

    appends, ratios = few(200, size), []
    with (
        postgres_server() as url,
        bare_postgres(url, "off") as bare,
        records(f"{url}&durability=relaxed") as ours,
        collected(),
    ):
        bare(few(20, size))
        ours(few(20, size))
        for _ in range(few(5, size)):
            rival = seconds(partial(bare, appends))
            ratios.append(seconds(partial(ours, appends)) / rival)
    return {"an append": median(ratios)}


def shared(size: float) -> Figures:
    import storage

    ratios = []
    for _ in range(few(3, size)):
        with directory() as place:
            bare = storage.bare_commits(place)
            ratios.append(storage.shared_commits(place) / bare)
    return {"an event": median(ratios)}


#: What an append of a message costs × one of a record, in which nobody searches, by the stored run's build,
#: which indexed nothing as it was written; and a tenth of it. Beside `sqlite3` both move with the machine.
APPEND = 1.1 * 2.2


def search(size: float) -> Figures:
    import long_logs
    from appenders import messages, records
    from storage import collected, seconds

    from harnpy.session.codec import SessionCodec
    from harnpy.session.events import Origin
    from harnpy.storage import open_store
    from harnpy.world import World

    length, ratios = few(100_000, size, 10), []
    with directory() as place:
        with closing(open_store(f"sqlite:{place}/long.db")) as store:
            texts = list(islice(long_logs.said(), length))
            wrote = seconds(lambda: long_logs.write(store, length, iter(texts)))

            def look() -> None:
                hits = store.search(f"{length // 2}", codec=SessionCodec(Origin("long", World())))
                if len(hits) != 1:
                    raise AssertionError(f"got {hits}")

            first = seconds(look)
        appends = few(200, size)
        of_messages, of_records = (f"sqlite:{place}/{name}.db?durability=relaxed" for name in "mr")
        with messages(of_messages) as said, records(of_records) as recorded:  # where the disk doesn't decide
            for _ in range(few(11, size, 2)):  # the first of them opens what it needs
                with collected():
                    rival = seconds(partial(recorded, appends))
                    ratios.append(seconds(partial(said, appends)) / rival)
    return {"the first, × what writing took": first / wrote, "an append, × a record's": median(ratios[1:])}


def forks(size: float) -> Figures:
    import sessions

    ratios = []
    for turn in range(few(15, size)):
        calls = sessions.copies(1_000, turn)
        bare = sessions.micros(calls["one list copy"], sessions.FORKS)
        ratios.append(sessions.micros(calls["fork"], sessions.FORKS) / bare)
    return {"1,000 messages": median(ratios)}


ROWS = {
    "turns": Row(
        "turns/s of a loop that is called once a turn",
        "LangGraph",
        turns,
        (Part("plain", 30, at_least=True), Part("with a tool", 40, at_least=True)),
    ),
    "send": Row(
        "a turn by `SessionRuntime.send` on `memory:`",
        "its two appends by hand",
        sends,
        (Part("behind 10 messages", 1.5), Part("behind 1,000 messages", 1.5)),
    ),
    "threads": Row(
        "100 sessions × 20 turns through 8 threads on SQLite",
        "the Agents SDK's `SQLiteSession`",
        threads,
        (Part("turns/s", 8, at_least=True),),
    ),
    "at-once": Row("200 loops at once, 50 ms a call", "the ideal", at_once, (Part("one turn each", 1.3),)),
    "tasks": Row(
        "tasks", "asyncio", tasks, (Part("spawn and await", 0.25), Part("yield and come back", 0.5))
    ),
    "memory": Row(
        "memory",
        "",
        memory,
        (
            Part("a parked task", 6, "KiB"),
            Part("an idle open session, `sqlite:`", 2, "kB"),
            Part("an idle open session, in memory", 2, "kB"),
            Part("a loaded event", 0.4, "kB"),
        ),
    ),
    "cold": Row("`harnpy run`, no cache", "`python -c pass`", cold, (Part("hello, cold", 2.5),)),
    "imports": Row(
        "starting",
        "`import asyncio, sqlite3, json`",
        imports,
        (Part("import harnpy.session", 1.5), Part("a SessionRuntime, ready", 2.5)),
    ),
    "programs": Row(
        "the programs of `bench/vm.py`",
        "the same in Python",
        programs,
        (Part("the worst", 2.5, of_all=largest), Part("the median", 1.5, of_all=middle)),
    ),
    "original": Row(
        "the original's own 11 programs",
        "its release 0.10.185, by way of Python",
        original,
        (Part("the least", 2.5, at_least=True, of_all=smallest),),
        "In *original*, the release was measured on another day, on its own 11 programs: harnpy was 1.25 to"
        " 5.9 times as fast, start-up taken off. What is shown for six of them is that factor, times what"
        " programs like them, run once, have gained since against Python; with the other five it was 4.9"
        " and more.",
    ),
    "data": Row(
        "much data",
        "the same in Python",
        data,
        (Part("JSON written", 1.5), Part("a chain of iterators", 2.5)),
    ),
    "postgresql": Row("PostgreSQL", "`psycopg`", postgresql, (Part("an append", 2.5),)),
    "shared": Row(
        "100 threads that append with FULL, a session each",
        "`sqlite3`, the rows alone",
        shared,
        (Part("an event", 1.3),),
    ),
    "search": Row(
        "search of 100,000 messages",
        "",
        search,
        (Part("the first, × what writing took", 0.1), Part("an append, × a record's", APPEND)),
    ),
    "fork": Row("fork", "`list.copy`", forks, (Part("1,000 messages", 2),)),
}
