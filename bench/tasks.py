"""What does a Harn task cost compared with an asyncio task?

    python bench/tasks.py [--rounds N] [--check]

Spawning and finishing an empty task, yielding and coming back, awaiting a coroutine, and memory of parked
tasks. Both sides alternate in this process; a row is the median of the rounds' ratios. Then how long a
program that another thread cancels goes on, the longest of the rounds.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median
from threading import Event, Thread
from time import perf_counter
from typing import Any

from options import parser

from harnpy import Cancelled, Vm
from harnpy.vm.declare import Declaration

TASKS = 2_000


async def _nothing() -> None:
    """An empty task."""


async def asyncio_spawn() -> None:
    for _ in range(TASKS):
        await asyncio.create_task(_nothing())


async def _gives_way() -> None:
    for _ in range(100):
        await asyncio.sleep(0)


async def asyncio_yield() -> None:
    await asyncio.gather(*(_gives_way() for _ in range(20)))


async def _answer(n: int) -> int:
    await asyncio.sleep(0)
    return n


async def asyncio_await() -> None:
    for i in range(500):
        await asyncio.create_task(_answer(i))


def asyncio_seconds(run: Callable[[], object]) -> float:
    async def timed() -> float:
        start = perf_counter()
        await run()  # type: ignore[misc]
        return perf_counter() - start

    return asyncio.run(timed())


def harn_seconds(vm: Vm, function: object) -> float:
    start = perf_counter()
    vm.call(function)
    return perf_counter() - start


SPAWN = f"fn bench() {{ for i in 0 to {TASKS} exclusive {{ await(spawn {{ nil }}) }} }}\nreturn bench"
YIELD = "fn bench() { parallel 20 { _i -> for i in 0 to 100 exclusive { give_way() } } }\nreturn bench"
AWAIT = "fn bench() { for i in 0 to 500 exclusive { answer(i) } }\nreturn bench"
ROWS = [
    ("spawn + await an empty task", SPAWN, asyncio_spawn, 0.25),
    ("give way and come back", YIELD, asyncio_yield, 0.5),
    ("await a coroutine that waits", AWAIT, asyncio_await, 3.5),
]


def give_way(vm: Vm) -> None:
    vm.tasks.give_way()


def give_way_in_two_steps(vm: Vm) -> None:
    """For the base of a report, which may have no other way."""
    tasks: Any = vm.tasks
    tasks.resume(tasks.current)
    tasks.suspend()


def machine() -> Vm:
    """A Vm with the builtins of the programs above."""
    vm = Vm()
    way = give_way if hasattr(vm.tasks, "give_way") else give_way_in_two_steps
    vm.builtins.register(Declaration("give_way() -> nil", "bench", way))
    vm.register("answer(n: int) -> int", _answer)
    return vm


def ratio(vm: Vm, source: str, native: Callable[[], object], rounds: int) -> float:
    """The median of the rounds."""
    function = vm.run_source(source)
    ratios = []
    for _ in range(rounds):
        native_seconds = asyncio_seconds(native)
        ratios.append(harn_seconds(vm, function) / native_seconds)
    return median(ratios)


def parked_bytes(count: int) -> float:
    """Resident memory of one parked task."""
    vm = Vm()
    seen: list[int] = []
    vm.register("measure() -> nil", lambda: seen.append(resident()))
    source = f"measure()\nlet all = parallel {count} {{ i -> sleep(400ms) }}\n"
    watcher = f"spawn {{ sleep(200ms)\n measure() }}\n{source}"
    vm.run_source(watcher)
    return (seen[1] - seen[0]) / count


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


#: What a program that is cancelled is doing.
CANCELLED = {
    "a loop": "begun()\nwhile true { }",
    "a sleep": "begun()\nsleep(1h)",
    "a coroutine": "begun()\nforever()",
    "1,000 tasks that wait": "spawn { begun() }\nparallel 1000 { i -> sleep(1h) }",
    "a cleaning loop": "try { begun()\n sleep(1h) } finally { while true { } }",
}


def milliseconds_to_end(source: str, evaluator: str) -> float:
    """How long a program goes on that another thread has cancelled."""
    vm, begun = Vm(evaluator=evaluator), Event()
    ended: list[float] = []
    vm.register("begun() -> nil", begun.set)
    vm.register("forever() -> nil", lambda: asyncio.sleep(3600))

    def run() -> None:
        with suppress(Cancelled):
            vm.run_source(source)
        ended.append(perf_counter())

    thread = Thread(target=run)
    thread.start()
    begun.wait()
    start = perf_counter()
    vm.cancel()
    thread.join()
    return (ended[0] - start) * 1000


def main() -> int:
    options = parser(__doc__, rounds=7).parse_args()
    vm, missed = machine(), 0
    for name, source, native, budget in ROWS:
        found = ratio(vm, source, native, options.rounds)
        missed += found > budget
        print(f"{name:30} {found:6.2f} x asyncio   must {budget}{'  over' if found > budget else ''}")
    kib = parked_bytes(10_000) / 1024
    missed += kib > 16
    print(f"{'10,000 parked tasks':30} {kib:6.1f} KiB each   must 16{'  over' if kib > 16 else ''}")
    for name, source in CANCELLED.items():
        for evaluator in ("compile", "walk"):
            ms = max(milliseconds_to_end(source, evaluator) for _ in range(options.rounds))
            missed += ms > 50
            what = f"cancel {name}, {evaluator}"
            print(f"{what:38} {ms:6.1f} ms   must 50{'  over' if ms > 50 else ''}")
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
