"""What do sessions cost? Append at two lengths, fork and snapshot against one list copy, use under churn.

    python bench/sessions.py

Both sides of a ratio are measured in turns in one run; medians are printed. Budgets: DESIGN §8.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from statistics import median

from harnpy.session import SessionStore

ROUNDS = 15
MESSAGE = {"role": "user", "content": "What do you remember?"}


def micros(call: Callable[[], object], count: int) -> float:
    """Microseconds of one call."""
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count * 1e6


def filled(store: SessionStore, id: str, length: int) -> str:
    store.open(id)
    for _ in range(length):
        store.adopt(id, MESSAGE)
    return id


def bench_churn() -> None:
    """1,000 sessions of 100 messages each, through a registry of 128."""
    store = SessionStore()
    costs = []
    for block in range(10):
        begin = time.perf_counter()
        for n in range(100):
            filled(store, f"{block}-{n}", 100)
        costs.append((time.perf_counter() - begin) / (100 * 101) * 1e6)
    print("1,000 sessions × 100 messages through an LRU of 128, per operation:")
    print(f"  while it fills {costs[0]:.2f} µs, while it evicts {median(costs[2:]):.2f} µs\n")


def bench_append() -> None:
    """Behind 10 messages and behind 100,000."""
    store = SessionStore(cap=10_000)
    filled(store, "long", 100_000)
    gc.collect()
    gc.freeze()
    short, long, inject = [], [], []
    for round in range(ROUNDS):
        ids = [filled(store, f"{round}-{n}", 10) for n in range(20)]
        short.append(median(micros(lambda id=id: store.adopt(id, MESSAGE), 100) for id in ids))  # type: ignore[misc]
        long.append(median(micros(lambda: store.adopt("long", MESSAGE), 100) for _ in range(20)))
        inject.append(median(micros(lambda: store.inject("long", MESSAGE), 100) for _ in range(20)))
    ratio = median(long) / median(short)
    print(f"append at length 10       {median(short):6.2f} µs")
    print(f"append at length 100,000  {median(long):6.2f} µs   {ratio:5.2f} × at length 10")
    print(f"inject from Python        {median(inject):6.2f} µs   (the same, and a copy of the message)")


def bench_copies(length: int) -> None:
    names = ("one list copy", "fork", "fork, then read", "snapshot", "snapshot as a Harn value")
    costs: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(ROUNDS):
        store = SessionStore(cap=1000)
        filled(store, "source", length)
        messages = store.messages("source")
        store.snapshot_value("source")
        gc.collect()

        def read_fork(store: SessionStore = store) -> None:
            fork = store.session(store.fork("source"))
            assert fork
            fork.view.window.entries.items()

        calls: list[Callable[[], object]] = [
            messages.copy,
            lambda store=store: store.fork("source", store.effects.new_id()),  # type: ignore[misc]
            read_fork,
            lambda store=store: store.snapshot("source"),  # type: ignore[misc]
            lambda store=store: store.snapshot_value("source"),  # type: ignore[misc]
        ]
        for name, call in zip(names, calls, strict=True):
            costs[name].append(micros(call, 50))
    copy = median(costs["one list copy"])
    print(f"\n{length:,} messages: one list copy {copy:.2f} µs")
    for name in names[1:]:
        cost = median(costs[name])
        print(f"  {name:26}{cost:8.2f} µs   {cost / copy:5.2f} × list copy")


if __name__ == "__main__":
    bench_churn()
    bench_append()
    for length in (1_000, 10_000, 100_000):
        bench_copies(length)
