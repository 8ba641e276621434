"""`harnpy test [PATH]`: pipelines that are tests, each run by itself. Spec: 09 §3.1–3.2."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import chdir, closing
from dataclasses import dataclass, field
from functools import partial
from os import cpu_count, walk
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Literal

from harnpy.cli import FAILED, NOTHING, OK, console
from harnpy.cli.console import complain, counted, paint, say
from harnpy.cli.project_setup import require_trust
from harnpy.cli.testing import test_results
from harnpy.cli.testing.differences import HEAD
from harnpy.cli.testing.sandbox import Outcome, run_program
from harnpy.cli.testing.test_results import Result, tally
from harnpy.cli.testing.worker_processes import worker_processes
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.parser import parse
from harnpy.vm.modules import Modules
from harnpy.vm.resolve import is_test

if TYPE_CHECKING:
    from harnpy import Vm
    from harnpy.cli.testing.coverage import Coverage, FileCoverage

#: What the lines below a failed test begin with that show its output.
OUTPUT = "output:"
#: Lines of a test's output that the report shows, the last ones.
_MOST_LINES = 100


@dataclass(frozen=True, slots=True)
class TestFile:
    """A file's test pipelines, in file order, or the reason why it has none."""

    __test__ = False

    path: Path
    tests: tuple[str, ...]
    error: str = ""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line."""

    path: Path
    filter: str | None
    timeout_ms: float
    parallel: bool
    skill_dirs: tuple[str, ...] = ()
    evaluator: str = "compile"
    coverage: bool = False
    lcov: Path | None = None
    html: Path | None = None
    verbose: bool = False
    durations: int | None = None
    junit: Path | None = None
    json: bool = False


@dataclass(frozen=True, slots=True)
class FileRun:
    """The results of a file's tests, what they ran, where that is measured, and what they loaded."""

    results: list[Result]
    coverage: list[FileCoverage] = field(default_factory=list)
    #: The modules that they have imported.
    loaded: frozenset[str] = frozenset()


def run(options: Options) -> int:
    """Run the tests below a path and return the exit status."""
    files = find_tests(options.path, options.filter)
    if not files:
        complain_of_none(options)
        if options.junit:
            test_results.write_junit(options.junit, [], quiet=options.json)
        return NOTHING
    runs = run_files(files, options)
    return FAILED if any(result.status == "fail" for run in runs for result in run.results) else OK


def find_tests(path: Path, filter: str | None = None) -> list[TestFile]:
    """The files at or below `path` that have tests, sorted by path; `filter` is a substring of the name."""
    files = (_test_file(file, filter or "") for file in _candidates(path))
    return [file for file in files if file.tests or file.error]


def run_tests(
    file: TestFile,
    timeout_ms: float,
    skill_dirs: Sequence[str] = (),
    evaluator: str = "compile",
    covered: bool = False,
) -> FileRun:
    """Run the tests of one file. Their working directory is the file's."""
    if file.error:
        return FileRun([Result("<file error>", "fail", 0.0, file.error, file=str(file.path))])
    path = file.path.resolve()
    run_test = partial(
        run_program,
        path,
        timeout_ms=timeout_ms,
        shown=file.path,
        default_provider="mock",
        skill_dirs=skill_dirs,
        evaluator=evaluator,
    )
    coverage = None
    if covered:
        from harnpy.cli.testing.coverage import Coverage

        coverage = Coverage(left_out=is_test)
    loaded: set[str] = set()
    results = []
    with chdir(path.parent):
        for test in file.tests:
            vms: list[Vm] = []
            results.append(
                _judged(file, test, run_test(entry=test, attach=partial(_attached, vms, coverage)))
            )
            loaded.update(*(vm.state(Modules).files() for vm in vms))
    return FileRun(results, coverage.files() if coverage else [], frozenset(loaded))


def _attached(vms: list[Vm], coverage: Coverage | None, vm: Vm) -> None:
    vms.append(vm)
    if coverage is not None:
        coverage.attach(vm)


def _judged(file: TestFile, test: str, outcome: Outcome) -> Result:
    failure = _failure(outcome)
    status: Literal["pass", "fail"] = "fail" if failure else "pass"
    return Result(test, status, outcome.ms, failure, file=str(file.path), output=outcome.output)


def _failure(outcome: Outcome) -> str:
    if outcome.error is not None:
        report = outcome.report.rstrip("\n").replace("error: compile error: ", "Compile error: ", 1)
        return "\n".join([report, *outcome.difference])
    return f"exit({outcome.exit_code})" if outcome.exit_code else ""


def _candidates(path: Path) -> Iterable[Path]:
    if not path.is_dir():
        return [path]
    found = (Path(folder, name) for folder, _, names in walk(path) for name in names)
    return sorted(file for file in found if file.suffix == ".harn" and _mentions_tests(file))


def _mentions_tests(file: Path) -> bool:
    try:
        text = file.read_bytes()
    except OSError:
        return True  # it becomes a `<file error>`
    return b"test_" in text or b"@test" in text


def _test_file(path: Path, filter: str) -> TestFile:
    try:
        program = parse(path.read_text(encoding="utf-8", errors="replace"), file=str(path))
    except (OSError, SyntaxFault) as error:
        return TestFile(path, (), console.rendered_error(error).rstrip("\n"))
    names = [item.name for item in program.items if isinstance(item, ast.Pipeline) and is_test(item)]
    return TestFile(path, tuple(name for name in names if filter in name))


def complain_of_none(options: Options) -> None:
    """Say that no test was found, which is a failure."""
    complain(
        f"No test pipelines found in {options.path}"
        if options.filter is None
        else f"no test matches `--filter {options.filter}`"
    )


def run_files(files: list[TestFile], options: Options) -> list[FileRun]:
    """Run the tests of files, with the report as they end, and write what else was asked for."""
    count = sum(max(len(file.tests), 1) for file in files)
    require_trust(file.path for file in files)
    if not options.json:
        say(f"Running {counted(count, 'test')} from {counted(len(files), 'file')}...\n")
    start = perf_counter()
    done: list[FileRun] = []
    with closing(_run_files(files, options)) as runs, test_results.progress(count) as line:
        for found in runs:
            done.append(found)
            for result in found.results:
                line.clear()
                say_result(result, options)
                line.count(result)
    results = [result for found in done for result in found.results]
    say_summary(results, (perf_counter() - start) * 1000, options)
    if options.junit:
        test_results.write_junit(options.junit, results, quiet=options.json)
    if options.coverage:
        from harnpy.cli.testing.coverage import write_reports

        write_reports([each for found in done for each in found.coverage], options.lcov, options.html)
    return done


def _run_files(files: list[TestFile], options: Options) -> Generator[FileRun]:
    """Return the results of each file, in the order of the files."""
    work = partial(
        run_tests,
        timeout_ms=options.timeout_ms,
        skill_dirs=options.skill_dirs,
        evaluator=options.evaluator,
        covered=options.coverage,
    )
    if not options.parallel:
        yield from map(work, files)
        return
    with worker_processes(cpu_count() or 1) as mapper:
        yield from mapper(work, files)


def say_result(result: Result, options: Options) -> None:
    """Report one test as it has ended."""
    if options.json:
        say(result.as_user_test(options.verbose))
        return
    say(test_results.status_line(result, place=result.file, timed=result.status == "pass"))
    differs = False
    for line in details(result, options.verbose):
        differs = line.startswith((HEAD, "expected: ")) or (differs and line != OUTPUT)
        say(f"        {test_results.coloured(line) if differs else line}".rstrip())


def details(result: Result, verbose: bool) -> Iterator[str]:
    """Yield the lines below that of a test: why it failed, and what it wrote, if it failed or `verbose`."""
    if result.detail:
        yield from result.detail.split("\n")
    if result.output and (verbose or result.status == "fail"):
        lines = result.output.removesuffix("\n").split("\n")
        yield OUTPUT
        if len(lines) > _MOST_LINES:
            yield f"  … {counted(len(lines) - _MOST_LINES, 'line')} before"
        yield from (f"  {line}" for line in lines[-_MOST_LINES:])


def say_summary(results: list[Result], ms: float, options: Options) -> None:
    """Report how many tests have passed and failed, and which took how long."""
    count = tally(results)
    if options.json:
        say(count.as_user_tests(ms))
        return
    failed = f"{count.failed} failed, " if count.failed else ""
    text = f"{count.passed} passed, {failed}{count.total} total ({ms:.0f} ms)"
    say()
    say(paint(text, "red" if count.failed else "green", sys.stdout))
    if options.durations is not None:
        say()
        for line in test_results.statistics(results, options.durations):
            say(line)
