"""`harnpy test conformance`: programs with their expected output or error beside them. Spec: 09 §3.3."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from harnpy.cli import FAILED, NOTHING, OK
from harnpy.cli.console import complain, say
from harnpy.cli.project_setup import require_trust
from harnpy.cli.testing import test_results
from harnpy.cli.testing.sandbox import Outcome, run_program
from harnpy.cli.testing.test_results import Result, tally
from harnpy.cli.testing.worker_processes import worker_processes
from harnpy.formats.regex import PatternError, compiled

# The programs of a conformance run: discovery, selection, filters. Spec: 09 §3.3.


class SelectionError(Exception):
    """The root, the selection or the filter is wrong; the message says why, ``status`` the exit status."""

    def __init__(self, message: str, status: int = FAILED) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Case:
    """A program of a suite with the file that says what it must do."""

    name: str
    path: Path
    kind: Literal["expected", "error", "skip"]

    @property
    def expectation(self) -> str:
        """The text of `NAME.expected` or `NAME.error`."""
        return self.path.with_suffix("." + self.kind).read_text(encoding="utf-8", errors="replace")


def find_cases(root: Path, selection: str | None = None, filter: str | None = None) -> list[Case]:
    """The cases below `root`, in the suite's order.

    Raises `SelectionError` for a root or selection that doesn't exist, is outside or has no tests, and for a
    filter with an invalid regular expression, or that no test matches.
    """
    if not root.is_dir():
        raise SelectionError(f"Directory not found: {root}")
    start = root if selection is None else _selected(root, selection)
    cases = [case for path in _programs(start) if (case := case_of(root, path))]
    if not cases:
        raise SelectionError(f"No .harn conformance tests found under {start}", NOTHING)
    wanted = name_filter(filter)
    chosen = [case for case in cases if wanted(case.name)]
    if not chosen:
        raise SelectionError(f"no test matches `--filter {filter}`", NOTHING)
    return chosen


def name_filter(pattern: str | None) -> Callable[[str], bool]:
    """The test of `--filter`: `re:REGEX`, `a|b`, a glob that may match anywhere, or a substring."""
    if pattern is None:
        return lambda name: True
    if pattern.startswith("re:"):
        try:
            search = compiled(pattern[3:]).search
        except PatternError as error:
            raise SelectionError(f"--filter: invalid regex `{pattern[3:]}`: {error}") from None
        return lambda name: search(name) is not None
    if "|" in pattern:
        parts = [part.strip() for part in pattern.split("|")]
        return lambda name: any(part in name for part in parts)
    glob = re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)
    return lambda name: glob.search(name) is not None


def _selected(root: Path, selection: str) -> Path:
    """The file or directory that `selection` names, seen from here or from `root`."""
    target = next((path for path in (Path(selection), root / selection) if path.exists()), None)
    if target is None:
        raise SelectionError(
            f"Conformance target not found: {selection}. Expected a file or directory under {root}"
        )
    target = Path(os.path.relpath(target.resolve(), root.resolve()))
    if target.parts[:1] == ("..",):
        raise SelectionError(f"Conformance target must be inside {root}: {selection}")
    target = root / target
    if not target.is_dir() and target.suffix != ".harn":
        raise SelectionError(f"Conformance target must be a .harn file or directory: {target}")
    return target


def _programs(start: Path) -> Iterator[Path]:
    """Every `.harn` file at or below `start`, each directory in path order and descended in place."""
    if not start.is_dir():
        yield start
        return
    for entry in sorted(os.scandir(start), key=lambda entry: entry.path):
        if entry.is_dir(follow_symlinks=False):
            yield from _programs(Path(entry.path))
        elif entry.name.endswith(".harn"):
            yield Path(entry.path)


def case_of(root: Path, path: Path) -> Case | None:
    """The case of a program; None for helpers and import targets, which have no expectation."""
    name = path.relative_to(root).as_posix()
    if path.with_suffix(".conformance-skip").exists():
        return Case(name, path, "skip")
    if path.with_suffix(".expected").exists():
        return Case(name, path, "expected")
    return Case(name, path, "error") if path.with_suffix(".error").exists() else None


# Whether a program did what its `.expected` or `.error` requires. Pure. Spec: 09 §3.3.


_TIMER = re.compile(r"\[timer\] (.*): \d+ms")


def verdict(case: Case, outcome: Outcome) -> str:
    """Return why `case` fails, the first line beginning with the case's name; "" when it passes."""
    if outcome.unjudged:
        return f"{case.name}: {outcome.error}"
    if case.kind == "error":
        return _error_verdict(case, outcome.error)
    if outcome.error is not None:
        return f"{case.name}: runtime error: {outcome.error}"
    expected, actual = normalise(case.expectation), normalise(outcome.output)
    return "" if expected == actual else "\n".join([f"{case.name}:", *_diff(expected, actual)])


def normalise(text: str) -> str:
    """Output as it is compared: no trailing whitespace, `\\n` line ends, no measured times."""
    lines = text.rstrip().replace("\r\n", "\n").split("\n")
    return "\n".join(f"[timer] {m[1]}: <ms>" if (m := _TIMER.fullmatch(line)) else line for line in lines)


def error_matches(wanted: str, error: str) -> bool:
    """True when `error` has one of the lines of `wanted`, a line with `re:` being a regular expression."""
    lines = [line.strip() for line in wanted.strip().split("\n")]
    return any(_line_matches(line, error) for line in lines if line or len(lines) == 1)


def _error_verdict(case: Case, error: str | None) -> str:
    wanted = case.expectation.strip()
    if error is None:
        return f"{case.name}: expected error containing '{wanted}', but succeeded"
    if error_matches(wanted, error):
        return ""
    return f"{case.name}:\n  expected error containing: {wanted}\n  actual error: {error}"


def _line_matches(line: str, error: str) -> bool:
    if not line.startswith("re:"):
        return line in error
    pattern = line[3:].strip()
    try:
        return compiled(pattern).search(error) is not None
    except PatternError as problem:
        complain(f"warning: invalid regex `{pattern}`: {problem}")
        return False


def _diff(expected: str, actual: str) -> list[str]:
    """A comparison by line number, with `- ` and `+ ` before the lines that differ."""
    lines: list[str] = []
    for want, got in zip_longest(expected.split("\n"), actual.split("\n")):
        if want == got:
            lines.append(f"  {want}")
            continue
        lines += [f"- {want}"] if want is not None else []
        lines += [f"+ {got}"] if got is not None else []
    return lines


Mapper = Callable[[Callable[[Case], Result], Iterable[Case]], Iterable[Result]]


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line."""

    root: Path
    selection: str | None
    filter: str | None
    timeout_ms: float
    jobs: int
    durations: int | None
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
        if options.junit and error.status == NOTHING:
            test_results.write_junit(options.junit, [], quiet=options.json)
        return error.status
    require_trust(case.path for case in cases)
    results = _run_all(cases, options)
    if options.json:
        sys.stdout.write(tally(results).as_json() + "\n")
    else:
        _report(results, options)
    if options.junit:
        test_results.write_junit(options.junit, results, quiet=options.json)
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
    """Return what `--verbose` shows below a failure."""
    if outcome.error is not None:
        return outcome.report
    if case.kind == "error":
        return f"actual output:\n{outcome.output}"
    return f"expected:\n{normalise(case.expectation)}\nactual:\n{normalise(outcome.output)}"


def _run_all(cases: list[Case], options: Options) -> list[Result]:
    results = []
    with _mapper(options.jobs) as mapper, test_results.progress(len(cases)) as line:
        judged = partial(
            run_case,
            timeout_ms=options.timeout_ms,
            skill_dirs=options.skill_dirs,
            evaluator=options.evaluator,
        )
        for result in mapper(judged, cases):
            results.append(result)
            line.clear()
            if options.json:
                sys.stdout.write(result.as_json() + "\n")
            elif result.status != "skip":
                say(test_results.status_line(result, timed=options.durations is not None or options.verbose))
            line.count(result)
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
    say(test_results.summary_line(tally(results)))
    if options.durations is not None or options.verbose:
        say()
        for line in test_results.statistics(results, options.durations or test_results.SLOWEST):
            say(line)
    if tally(results).failed:
        say("\nFailures:")
        for line in test_results.failures(results, options.verbose):
            say(line)
