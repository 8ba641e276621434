"""HARNPY_CHAOS_SCHED: ready tasks in an order of chance, and what is promised all the same (05 §1, §4)."""

from __future__ import annotations

import re
from io import StringIO

import pytest

from harnpy import Vm
from harnpy.cli.testing.conformance import find_cases, run_case
from harnpy.vm.errors import VmError
from tests.clock import SimulatedClock, simulated_time
from tests.conformance_plugin import ROOT, TIMEOUT_MS, run_directory
from tests.counts import COUNT
from tests.worlds import OwnWorld

SEEDS = [str(seed) for seed in range(1, 21)]


class Steps(OwnWorld):
    """A clock that moves only in `sleep`, and one environment variable."""

    def __init__(self, chaos: str | None) -> None:
        self.out, self.err = StringIO(), StringIO()
        super().__init__(self.out.write, self.err.write, clock=SimulatedClock(tick=0))
        self._chaos = chaos

    def get(self, name: str) -> str | None:
        return self._chaos if name == "HARNPY_CHAOS_SCHED" else None


def run(source: str, chaos: str | None) -> tuple[str, str]:
    """What the program printed, and what it wrote to stderr at once."""
    host = Steps(chaos)
    Vm(world=host).run_source(source)
    return host.out.getvalue(), host.err.getvalue()


STARTS = "parallel each [1, 2, 3, 4, 5] { n -> eprintln(n) }"


@pytest.mark.parametrize("off", [None, "", "0"])
def test_tasks_start_in_order_without_it(off: str | None) -> None:
    assert run(STARTS, off)[1].split() == list("12345")


def test_tasks_start_in_any_order_with_it() -> None:
    orders = {run(STARTS, seed)[1] for seed in SEEDS}
    assert len(orders) > len(SEEDS) // 2
    assert all(sorted(order.split()) == list("12345") for order in orders)


def test_a_seed_is_an_order() -> None:
    source = (
        'parallel each range(6).to_list() { n ->\n for i in range(3) { eprintln("${n} ${i}")\n sleep(1) } }'
    )
    for seed in SEEDS:
        assert run(source, seed) == run(source, seed)


def test_a_seed_is_a_number() -> None:
    with pytest.raises(VmError, match="HARNPY_CHAOS_SCHED must be an int, the seed; got `often`"):
        run(STARTS, "often")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("source", "printed"),
    [
        # Output in the order of indices, results too.
        (
            "println(parallel each [30, 10, 20] { ms ->\n sleep(ms)\n println(ms)\n return ms })",
            "30\n10\n20\n[30, 10, 20]\n",
        ),
        # Sleepers wake in the order of their times, though nobody runs before all of them are due.
        (
            """
            let c = channel("c")
            let tasks = [5, 3, 1, 4, 2].map({ ms -> spawn {
              sleep(ms)
              send(c, ms)
            } })
            sleep(0)
            for t in tasks { await(t) }
            println(range(5).map({ _ -> receive(c) }).to_list())
            """,
            "[1, 2, 3, 4, 5]\n",
        ),
        # Items arrive in the order in which they were sent.
        (
            """
            let c = channel("c", 1)
            let sender = spawn { for n in range(5) { send(c, n) } }
            println(range(5).map({ _ -> receive(c) }).to_list())
            """,
            "[0, 1, 2, 3, 4]\n",
        ),
        # Who stands in line first is served first: the sleeps say who that is.
        (
            """
            let c = channel("c")
            let tasks = [2, 3, 1].map({ ms -> spawn {
              sleep(ms)
              return "${ms} got ${receive(c)}"
            } })
            sleep(10)
            for word in ["a", "b", "c"] { send(c, word) }
            println(tasks.map({ t -> await(t) }))
            """,
            "[2 got b, 3 got c, 1 got a]\n",
        ),
    ],
    ids=["output", "sleepers", "items", "line"],
)
def test_promises_are_kept(seed: str, source: str, printed: str) -> None:
    assert run(source, seed)[0] == run(source, None)[0] == printed


def test_sleepers_of_the_same_time_wake_in_any_order() -> None:
    source = "parallel each [1, 2, 3, 4, 5] { n ->\n sleep(7)\n eprintln(n) }"
    assert len({run(source, seed)[1] for seed in SEEDS}) > len(SEEDS) // 2


#: Programs that show what is given up: tasks and children of a supervisor start in order.
ORDER_MATTERS = {
    "children_run_again_when_they_fail",
    "spawned_tasks_start_in_fifo_order",
    "stopping",
    "strategies",
}
CONCURRENT = re.compile(r"\b(spawn|parallel|parallel_race|channel|stream|gen fn|supervisor_start)\b")
PROGRAMS = [
    case
    for area in ("channels", "generators", "hitl", "iterators", "sync", "tasks")
    for case in find_cases(ROOT / area)
    if case.kind != "skip"
    and case.path.stem not in ORDER_MATTERS
    and CONCURRENT.search(case.path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("part", range(4))
def test_concurrent_programs_do_the_same_in_any_order(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in COUNT.seeds(COUNT.task_orders):
        monkeypatch.setenv("HARNPY_CHAOS_SCHED", str(seed))
        for case in PROGRAMS[part::4]:
            with run_directory(), simulated_time():
                result = run_case(case, TIMEOUT_MS)
            assert result.status != "fail", f"{case.path}, HARNPY_CHAOS_SCHED={seed}: {result.detail}"
