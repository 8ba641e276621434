"""Many random programs under both evaluators: `python -m tests.vm.differential.campaign --programs 200000`.

Prints each difference once, with the seed of its program, and how many programs ran in a second. `--reduce`
prints the smallest program that still shows it. `--variations` runs changed conformance programs instead of
generated ones. `--program SEED` prints what one seed stands for, and `--file FILE` compares, and reduces, a
program of yours.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

from harnpy.syntax import ast, parser
from harnpy.vm import front_end
from tests.vm.differential.outcomes import EVALUATORS, UNCOMPARED, Outcome, Program, outcome, outcomes
from tests.vm.differential.programs import program_of
from tests.vm.differential.reduce import reduced
from tests.vm.differential.variations import variation_of

#: Programs that a process runs before it reports.
_BATCH = 200
#: Texts whose trees are kept: a program's and its module's, and the inputs of a session.
_TREES = 32

Found = tuple[int, str]
Source = Callable[[int], Program]
Report = tuple[Counter[str], list[Found]]


def signature(program: Program, evaluators: Sequence[str] = EVALUATORS) -> str | None:
    """What kind of difference a program shows; None when the evaluators agree."""
    outcomes = [outcome(program, evaluator) for evaluator in evaluators]
    return _signature(outcomes)


def smallest(program: Program, evaluators: Sequence[str] = EVALUATORS) -> Program:
    """The program made small, as long as it shows the same kind of difference."""
    kind = signature(program, evaluators)
    return reduced(program, lambda smaller: signature(smaller, evaluators) == kind) if kind else program


def _signature(outcomes: list[Outcome]) -> str | None:
    first, last = outcomes[0], outcomes[-1]
    endings = {seen.ending for seen in outcomes}
    if endings & UNCOMPARED:
        return None
    if "python" in endings:
        return "; ".join(_last_line(seen) for seen in outcomes if seen.ending == "python")
    if first == last:
        return None
    if first.ending != last.ending:
        return f"{_headline(first)} / {_headline(last)}"
    if first.output != last.output:
        return f"other output, then {first.ending}"
    return f"{_headline(first)} / {_headline(last)}"


def _headline(seen: Outcome) -> str:
    text = seen.text.partition("\n")[0] if seen.ending == "error" else ""
    return re.sub(r"\d+|`\w+`", "…", f"{seen.ending} {text}")


def _last_line(seen: Outcome) -> str:
    lines = seen.text.strip().splitlines()
    places = [line for line in lines if line.startswith("  File") and "<harn " not in line]
    return f"{lines[-1]} in {places[-1].rpartition(' in ')[2] if places else '?'}"


def run_batch(source: Source, evaluators: Sequence[str], seeds: range) -> Report:
    """How many programs of each ending there were, and the first difference of each kind."""
    endings: Counter[str] = Counter()
    found: dict[str, int] = {}
    for seed in seeds:
        program = source(seed)
        outcomes = [outcome(program, evaluator) for evaluator in evaluators]
        endings[outcomes[0].ending] += 1
        kind = _signature(outcomes)
        if kind is not None:
            found.setdefault(kind, seed)
    return endings, [(seed, kind) for kind, seed in found.items()]


def parse_once() -> None:
    """Give all evaluators one tree of a text, which none of them changes: that saves a fifth of the time."""

    @lru_cache(_TREES)
    def tree(source: str, file: str = "<script>") -> ast.Program:
        return parser.parse(source, file=file)

    parser.parse_cached = tree
    vars(front_end)["parse_cached"] = tree


def campaign(source: Source, seeds: range, jobs: int, evaluators: Sequence[str]) -> Iterator[Report]:
    """The reports of all batches, as they come."""
    batches = [seeds[at : at + _BATCH] for at in range(0, len(seeds), _BATCH)]
    work = partial(run_batch, source, evaluators)
    if jobs <= 1:
        parse_once()
        yield from map(work, batches)
        return
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=parse_once)
    try:
        yield from pool.map(work, batches)
    finally:
        pool.shutdown(cancel_futures=True)


def show(program: Program, evaluators: Sequence[str], reduce: bool) -> None:
    """Print a program and what each evaluator does with it."""
    if reduce:
        program = smallest(program, evaluators)
    print(f"{program}\n{outcomes(program, evaluators)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: 1 when the evaluators disagree."""
    options = _options(arguments)
    # No two programs are alike, so caching them would only fill the disk.
    os.environ["HARNPY_NO_CACHE"] = "1"
    evaluators = tuple(options.evaluators.split(","))
    source = variation_of if options.variations else program_of
    if options.file or options.program is not None:
        text = options.file.read_text(encoding="utf-8") if options.file else ""
        show(Program(text) if text else source(options.program), evaluators, options.reduce)
        return 0
    # Ended from outside, the processes that run the programs end too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(number))
    start, endings, known = perf_counter(), Counter[str](), set[str]()
    seeds = range(options.seed, options.seed + options.programs)
    for more, found in campaign(source, seeds, options.jobs, evaluators):
        endings += more
        for seed, kind in found:
            if kind not in known:
                known.add(kind)
                print(f"\n=== {kind} (seed {seed})", flush=True)
                show(source(seed), evaluators, options.reduce)
    count, seconds = sum(endings.values()), perf_counter() - start
    shares = ", ".join(f"{number} {ending}" for ending, number in endings.most_common())
    print(f"{count} programs, {count / seconds:.0f} in a second: {shares}; kinds of difference: {len(known)}")
    return 1 if known else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.vm.differential.campaign")
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--seed", type=int, default=0, help="of the first program; the next has the next number"
    )
    parser.add_argument("--reduce", action="store_true", help="make the programs that are shown small")
    parser.add_argument("--variations", action="store_true", help="changed conformance programs")
    parser.add_argument("--program", type=int, metavar="SEED", help="show this program only")
    parser.add_argument("--file", type=Path, help="show the program in this file only")
    parser.add_argument("--evaluators", default=",".join(EVALUATORS), help="one alone is watched for crashes")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
