"""`harnpy test conformance`: programs with their expected output or error beside them. Spec: 09 §3.3."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from harnpy.cli import FAILED, OK
from harnpy.cli.console import complain, say
from harnpy.cli.testing import result_lines
from harnpy.cli.testing.judge import normalise, verdict
from harnpy.cli.testing.results import Result, junit, tally
from harnpy.cli.testing.sandbox import Outcome, run_program
from harnpy.cli.testing.suite import Case, SelectionError, find_cases
from harnpy.cli.testing.workers import worker_processes

Mapper = Callable[[Callable[[Case], Result], Iterable[Case]], Iterable[Result]]


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked for."""

    root: Path
    selection: str | None
    filter: str | None
    timeout_ms: float
    jobs: int
    timing: bool
    verbose: bool
    json: bool
    junit: Path | None
    skill_dirs: tuple[str, ...] = ()
    evaluator: str = "compile"


def run(options: Options) -> int:
    """Run the selected programs, report them, and return the exit status."""
    try:
        cases = find_cases(options.root, options.selection, options.filter)
    except SelectionError as error:
        complain(str(error))
        return FAILED
    results = _run_all(cases, options)
    if options.json:
        sys.stdout.write(tally(results).as_json() + "\n")
    else:
        _report(results, options)
    if options.junit:
        _write_junit(options.junit, results, quiet=options.json)
    return FAILED if tally(results).failed else OK


def run_case(
    case: Case, timeout_ms: float, skill_dirs: Sequence[str] = (), evaluator: str = "compile"
) -> Result:
    """One program, judged."""
    if case.kind == "skip":
        return Result(case.name, "skip")
    # Files that one run leaves would change the outcome of the next.
    with TemporaryDirectory(prefix="harnpy-", ignore_cleanup_errors=True) as scratch:
        outcome = run_program(
            case.path,
            timeout_ms=timeout_ms,
            skill_dirs=skill_dirs,
            scratch=scratch,
            evaluator=evaluator,
        )
    failure = verdict(case, outcome)
    if not failure:
        return Result(case.name, "pass", outcome.ms)
    return Result(case.name, "fail", outcome.ms, failure, _in_full(case, outcome))


def _in_full(case: Case, outcome: Outcome) -> str:
    """What `--verbose` shows below a failure."""
    if outcome.error is not None:
        return outcome.report
    if case.kind == "error":
        return f"actual output:\n{outcome.output}"
    return f"expected:\n{normalise(case.expectation)}\nactual:\n{normalise(outcome.output)}"


def _run_all(cases: list[Case], options: Options) -> list[Result]:
    results = []
    with _mapper(options.jobs) as mapper, result_lines.progress(len(cases)) as count:
        judged = partial(
            run_case,
            timeout_ms=options.timeout_ms,
            skill_dirs=options.skill_dirs,
            evaluator=options.evaluator,
        )
        for result in mapper(judged, cases):
            results.append(result)
            if options.json:
                sys.stdout.write(result.as_json() + "\n")
            elif result.status != "skip":
                say(result_lines.status_line(result, timed=options.timing or options.verbose))
            count(result)
    return results


@contextmanager
def _mapper(jobs: int) -> Iterator[Mapper]:
    """An ordered `map` over `jobs` processes, or in this one."""
    if jobs <= 1:
        yield map
        return
    with worker_processes(jobs) as mapper:
        yield mapper


def _report(results: list[Result], options: Options) -> None:
    say()
    say(result_lines.summary_line(tally(results)))
    if options.timing or options.verbose:
        say()
        for line in result_lines.statistics(results):
            say(line)
    if tally(results).failed:
        say("\nFailures:")
        for line in result_lines.failures(results, options.verbose):
            say(line)


def _write_junit(path: Path, results: list[Result], quiet: bool) -> None:
    path.write_text(junit(results), encoding="utf-8")
    if not quiet:
        say(f"JUnit XML written to {path}")
