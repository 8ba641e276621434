"""`harnpy bench`: how long a program takes, with a fresh state each time. Spec: 09 §6.5."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import click

from harnpy import Vm
from harnpy.builtins.bridge.live_models import models_of
from harnpy.cli import FAILED, OK
from harnpy.cli.console import complain
from harnpy.cli.show import error_text
from harnpy.cli.testing.sandbox import sandboxed_world
from harnpy.llm.trace import Trace
from harnpy.vm.errors import ExitRequest


@click.command("bench", short_help="Run a program many times and report how long it took.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-n", "--iterations", type=click.IntRange(0), default=10, show_default=True, metavar="N")
def command(file: Path, iterations: int) -> int:
    """Run FILE many times and report how long it took. Its output is discarded."""
    if iterations == 0:
        complain("error: `harnpy bench` requires at least one iteration")
        return FAILED
    runs: list[_Run] = []
    for iteration in range(1, iterations + 1):
        try:
            runs.append(_run_once(file))
        except Exception as error:
            sys.stderr.write(error_text.render(error, sys.stderr))
            complain(f"benchmark aborted on iteration {iteration}")
            return FAILED
    print(f"Benchmark: {file}\nIterations: {iterations}")
    print("\n".join(_report(runs)))
    return OK


@dataclass(frozen=True, slots=True)
class _Run:
    """One iteration: milliseconds of wall time, and what its models did."""

    ms: float
    models: Trace


def _run_once(file: Path) -> _Run:
    """Compiling counts once at most: the first run puts the program into the cache."""
    vm = Vm(sandboxed_world(lambda text: None))
    start = perf_counter()
    with suppress(ExitRequest):
        vm.run_file(str(file))
    return _Run((perf_counter() - start) * 1000, models_of(vm).trace)


def _report(runs: Sequence[_Run]) -> Iterator[str]:
    count = len(runs)
    times = [run.ms for run in runs]
    yield (
        f"Wall time: min {min(times):.2f} ms | avg {sum(times) / count:.2f} ms | max {max(times):.2f} ms"
        f" | total {sum(times):.2f} ms"
    )
    spent = sum(run.models.llm_ms for run in runs)
    yield f"LLM time: total {spent} ms | avg {spent / count:.2f} ms/run"
    calls = sum(run.models.counts["llm_call"] for run in runs)
    yield f"LLM calls: total {calls} | avg {calls / count:.2f}/run"
    asked = sum(run.models.input_tokens for run in runs)
    yield f"Input tokens: total {asked} | avg {asked / count:.2f}/run"
    answered = sum(run.models.output_tokens for run in runs)
    yield f"Output tokens: total {answered} | avg {answered / count:.2f}/run"
    cost = sum(run.models.cost for run in runs)
    yield f"Cost: total ${cost:.4f} | avg ${cost / count:.4f}/run"
