"""How much slower is Harn than the same program written in Python?

    python bench/vm.py [--rounds N] [--check]

Both sides run in this process, alternately, inside one big data-stack chunk; the figure is
the median of the rounds' ratios. `--check` exits 1 when a *must* budget is missed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter
from types import FunctionType

from fixtures import FIXTURES, Fixture
from options import parser

from harnpy import Vm


def repeats(run: Callable[[], object], seconds: float = 0.02) -> int:
    """How often to call ``run`` so that one measurement takes about ``seconds``."""
    start = perf_counter()
    run()
    return max(1, int(seconds / max(perf_counter() - start, 1e-6)))


def timed(run: Callable[[], object], count: int) -> float:
    start = perf_counter()
    for _ in range(count):
        run()
    return (perf_counter() - start) / count


def ratio(vm: Vm, fixture: Fixture, rounds: int) -> float:
    function = vm.run_source(fixture.harn, file=fixture.name)
    body = function.call

    def harn() -> object:
        return body(1)

    if harn() != fixture.python():
        raise SystemExit(f"{fixture.name}: the twins disagree: {harn()} and {fixture.python()}")
    count = repeats(fixture.python)
    found = []
    for _ in range(rounds):
        python = timed(fixture.python, count)
        found.append(timed(harn, max(1, count // 2)) / python)
    return median(found)


def ratio_of_first_calls(vm: Vm, fixture: Fixture, rounds: int) -> float:
    """The same of programs that run once, as programs mostly do: Python specialises what runs often."""
    function = vm.run_source(fixture.harn, file=fixture.name)
    found = []
    for _ in range(rounds):
        python, harn = unspecialised(fixture.python), unspecialised(function.call)
        seconds = timed(python, 1)
        found.append(timed(lambda harn=harn: harn(1), 1) / seconds)
    return median(found)


def unspecialised(run: Callable[..., object]) -> Callable[..., object]:
    """Return ``run``, a function, as it was before its first call."""
    assert isinstance(run, FunctionType)
    return FunctionType(run.__code__.replace(), run.__globals__, None, run.__defaults__, run.__closure__)


def main() -> int:
    command = parser(__doc__, rounds=7)
    command.add_argument("--only", default="", help="the fixtures with this in their names")
    options = command.parse_args()
    vm = Vm()
    missed = 0
    print(f"{'fixture':34} {'x Python':>8} {'must':>6} {'stretch':>8}")
    for fixture in FIXTURES:
        if options.only not in fixture.name:
            continue
        found = vm.enter(lambda fixture=fixture: ratio(vm, fixture, options.rounds))
        verdict = "" if found <= fixture.must else "  over"
        verdict = "  stretch" if found <= fixture.stretch else verdict
        missed += found > fixture.must
        print(f"{fixture.name:34} {found:8.2f} {fixture.must:6.1f} {fixture.stretch:8.1f}{verdict}")
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
