"""What do sessions cost? Inject at two lengths, fork, snapshot, history and compaction against one pass over
the list, use under churn; then the same work with the sessions of other libraries.

    python bench/sessions.py [--rounds N] [--check]

Both sides of a ratio are measured in turns in one run; medians are printed.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import peers
from options import parser
from peers import MESSAGE

from harnpy import Vm
from harnpy.session import SessionRegistry
from harnpy.session.compaction import estimate_tokens

#: How many appends, or forks, or snapshots are timed at once.
BATCH = 100
FORKS = 50

#: A program's inject is the first loop less the second.
HARN = """
fn inject(id, n) { for i in 0 to n exclusive { agent_session_inject(id, {role: "user", content: "hello"}) } }
fn nothing(id, n) { for i in 0 to n exclusive { let message = {role: "user", content: "hello"} } }
return [inject, nothing]
"""

Append = Callable[[str], float]


class Report:
    """Prints rows, and counts those over their budget."""

    def __init__(self) -> None:
        self.missed = 0

    def title(self, text: str) -> None:
        print(f"\n{text}")

    def row(self, name: str, found: float, unit: str, must: float | None = None, note: str = "") -> None:
        verdict = ""
        if must is not None:
            over = found > must
            self.missed += over
            verdict = f"must {must}  {'over' if over else 'met'}"
        print(f"  {name:38}{found:8.2f} {unit:12}{verdict:16}{note}".rstrip())


def micros(call: Callable[[], object], count: int = 1) -> float:
    """Microseconds of one call."""
    begin = perf_counter()
    for _ in range(count):
        call()
    return (perf_counter() - begin) / count * 1e6


def filled(store: SessionRegistry, id: str, length: int) -> str:
    store.open(id)
    for _ in range(length):
        store.inject_shared(id, MESSAGE)
    return id


def talk(length: int) -> tuple[SessionRegistry, list[dict[str, Any]]]:
    """A store with the session "source", and its messages, which have been read before. Each is a dict of its
    own, as in life: a list copy touches them all."""
    store = SessionRegistry(cap=1_000)
    store.open("source")
    for _ in range(length):
        store.inject("source", MESSAGE)
    session = store.session("source")
    assert session
    return store, session.messages()


def bench_churn(report: Report, rounds: int) -> None:
    """The cost of each block of 100 sessions, with room in the registry and with evictions."""
    blocks: list[list[float]] = [[] for _ in range(10)]
    for _ in range(rounds):
        store = SessionRegistry()
        for number, block in enumerate(blocks):
            begin = perf_counter()
            for n in range(100):
                filled(store, f"{number}-{n}", 100)
            block.append((perf_counter() - begin) / (100 * 101) * 1e6)
    costs = list(map(median, blocks))
    early, late = median(costs[2:6]), median(costs[6:])
    report.title("1,000 sessions × 100 messages through an LRU of 128, per operation")
    report.row("while it fills", costs[0], "µs")
    report.row("while it evicts, sessions 200 to 600", early, "µs")
    report.row("while it evicts, sessions 600 to 1,000", late, "µs")
    report.row("the late ones", late / early, "× the early", 1.2)


def bench_inject(report: Report, rounds: int) -> None:
    """Behind 10 messages and behind 100,000."""
    vm = Vm()
    store: SessionRegistry = vm.sessions
    store.set_cap(100_000)
    filled(store, "long", 100_000)
    gc.collect()
    gc.freeze()
    ways: dict[str, Append] = {
        "agent_session_inject in Harn": harn_append(vm),
        "inject from Python, which copies": lambda id: micros(lambda: store.inject(id, MESSAGE), BATCH),
        "inject_shared, which doesn't": lambda id: micros(lambda: store.inject_shared(id, MESSAGE), BATCH),
    }
    short: dict[str, list[float]] = {name: [] for name in ways}
    long: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds):
        for name, append in ways.items():
            ids = [filled(store, f"{name}-{turn}-{n}", 10) for n in range(20)]
            short[name].append(median(map(append, ids)))
            long[name].append(median(append("long") for _ in ids))
    gc.unfreeze()
    report.title("inject")
    for name in ways:
        at_10, at_100_000 = median(short[name]), median(long[name])
        report.row(name, at_10, "µs", 1.5, "at length 10")
        report.row("", at_100_000, "µs", 1.5, "at length 100,000")
        report.row("", at_100_000 / at_10, "× at 10", 1.2)


def harn_append(vm: Vm) -> Append:
    inject, nothing = vm.run_source(HARN)

    def append(id: str) -> float:
        idle = micros(lambda: vm.call(nothing, id, BATCH))
        return (micros(lambda: vm.call(inject, id, BATCH)) - idle) / BATCH

    return append


def bench_copies(report: Report, length: int, rounds: int) -> None:
    names = (
        "one list copy",
        "fork",
        "fork under an id that is given",
        "snapshot",
        "snapshot as a Harn value",
        "fork, then read",
        "history",
        "history as a Harn value",
    )
    costs: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        for name, call in copies(length, turn).items():
            costs[name].append(micros(call, 3 if name.startswith("history") else FORKS))
    copy = median(costs["one list copy"])
    report.title(f"{length:,} messages: one list copy takes {copy:.2f} µs")
    for name in names[1:]:
        cost = median(costs[name])
        must = 1.3 if name in ("fork", "snapshot", "snapshot as a Harn value") else None
        report.row(name, cost / copy, "× list copy", must, f"{cost:.2f} µs")


def copies(length: int, turn: int) -> dict[str, Callable[[], object]]:
    """What is timed on one session, in a store of its own."""
    store, messages = talk(length)
    store.snapshot_value("source")
    store.world.ids.new()  # a world makes its source of ids when it is first asked
    ids = iter([f"{turn}-{n}" for n in range(FORKS)])
    gc.collect()

    def read_fork() -> None:
        fork = store.session(store.fork("source"))
        assert fork
        fork.view.window.entries.items()

    return {
        "one list copy": messages.copy,
        "fork": lambda: store.fork("source"),
        "fork under an id that is given": lambda: store.fork("source", next(ids)),
        "snapshot": lambda: store.snapshot("source"),
        "snapshot as a Harn value": lambda: store.snapshot_value("source"),
        "fork, then read": read_fork,
        "history": lambda: store.history("source"),
        "history as a Harn value": lambda: store.history_value("source"),
    }


def bench_compaction(report: Report, length: int, rounds: int) -> None:
    """Against one pass that estimates tokens: `history` behind the summary, against a list copy."""
    history = "history as a Harn value"
    names = ("list copy", "estimate", "compact", history)
    costs: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name, call in compaction(length).items():
            costs[name].append(micros(call, 1 if name == "compact" else 10))
    cost = {name: median(found) for name, found in costs.items()}
    report.title(f"compaction of {length:,} messages: one token estimate takes {cost['estimate']:.0f} µs")
    spent = {name: f"{cost[name]:.0f} µs" for name in names}
    report.row("compact, truncate", cost["compact"] / cost["estimate"], "× estimate", note=spent["compact"])
    report.row(f"{history}, behind it", cost[history] / cost["list copy"], "× list copy", note=spent[history])


def compaction(length: int) -> dict[str, Callable[[], object]]:
    store, messages = talk(length)
    gc.collect()
    return {
        "list copy": messages.copy,
        "estimate": lambda: estimate_tokens(messages),
        "compact": lambda: store.compact("source", {"compact_strategy": "truncate"}),
        "history as a Harn value": lambda: store.history_value("source"),
    }


def main() -> int:
    options = parser(__doc__, rounds=15).parse_args()
    report = Report()
    bench_churn(report, options.rounds)
    bench_inject(report, options.rounds)
    for length in (1_000, 10_000, 100_000):
        bench_copies(report, length, options.rounds)
    bench_compaction(report, 10_000, options.rounds)
    peers.compare()
    return 1 if options.check and report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
