"""`harnpy test --tape`: recorded runs as tests of the programs as they are now. Spec: 09 §3.4, 13 §10."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from harnpy.cli import FAILED, NOTHING, OK
from harnpy.cli.console import complain, counted, one_line, say
from harnpy.cli.project_setup import bind_project
from harnpy.cli.testing import test_results
from harnpy.cli.testing.sandbox import TimedOut, time_limit
from harnpy.cli.testing.test_results import Result
from harnpy.cli.testing.user_tests import Options, say_result, say_summary
from harnpy.tape import Recording, TapeError, read_tape
from harnpy.tape.regression import DOES_NOT_RUN, done_live, failure_of, program_of
from harnpy.tape.worlds import TapedWorld
from harnpy.world import World
from harnpy.world.streams import RealStreams

if TYPE_CHECKING:
    from harnpy.embedding import Vm


#: Runs a program in a world, given what to do with the Vm.
Run = Callable[[TapedWorld, str, Callable[[Any], Any]], int]


def run(paths: Sequence[Path], options: Options, *, record: Run | None, agrees: bool) -> int:
    """Replay the tapes at ``paths``, and those below a directory, and return the exit status. ``record``
    records those anew that differ, if somebody at the terminal says so, or ``agrees``."""
    tapes = sorted({tape for path in paths for tape in _tapes(path) if (options.filter or "") in str(tape)})
    if not tapes:
        complain(f"No tapes found in {', '.join(map(str, paths))}")
        if options.junit:
            test_results.write_junit(options.junit, [], quiet=options.json)
        return NOTHING
    if not options.json:
        say(f"Running {counted(len(tapes), 'tape')}...\n")
    start = perf_counter()
    results: list[Result] = []
    with test_results.progress(len(tapes)) as line:
        for tape in tapes:
            result = _result(tape, options.timeout_ms)
            if result.status == "fail" and record is not None:
                line.clear()
                result = _updated(tape, result, record, agrees, options.json)
            results.append(result)
            line.clear()
            say_result(result, options)
            line.count(result)
    say_summary(results, (perf_counter() - start) * 1000, options)
    if options.junit:
        test_results.write_junit(options.junit, results, quiet=options.json)
    return FAILED if any(result.status == "fail" for result in results) else OK


def _tapes(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(folder, name) for name in names if name.endswith(".tape"))


def _result(tape: Path, timeout_ms: float) -> Result:
    printed = StringIO()
    world = World(streams=RealStreams(printed.write, printed.write, StringIO()))
    begun = perf_counter()
    try:
        with time_limit(timeout_ms):
            failure = failure_of(str(tape), world, _prepared)
    except TimedOut:
        failure = f"timed out after {timeout_ms:.0f}ms"
    ms = (perf_counter() - begun) * 1000
    status: test_results.Status = "fail" if failure else "pass"
    return Result(tape.name, status, ms, failure, file=str(tape), output=printed.getvalue())


def _prepared(vm: Vm, program: str) -> None:
    bind_project(vm, program)


def _updated(path: Path, result: Result, record: Run, agrees: bool, as_json: bool) -> Result:
    """Show how a tape differs, and record it anew where that is wanted; return its result then. A tape whose
    program doesn't run stays."""
    try:
        tape = read_tape(str(path))
    except TapeError:
        return result
    program = program_of(tape, os.getcwd())
    if program is None or result.detail.startswith(DOES_NOT_RUN.format(path)):
        return result
    complain(one_line(f"{path}: {result.detail}"))
    entry = os.path.relpath(program)
    complain(one_line(f"  Recording it anew runs {entry} live; the last run had {done_live(tape)}."))
    if not agrees and not _says_yes():
        return result
    begun = perf_counter()
    args = tape.job.body["args"]
    # Where results are JSON, nothing else is on stdout.
    real = World(streams=RealStreams(sys.stderr.write, sys.stderr.write)) if as_json else None
    record(Recording(str(path), real), entry, lambda vm: vm.run_file(entry, args=args))
    sys.stdout.flush()
    ms = (perf_counter() - begun) * 1000
    return Result(path.name, "pass", ms, "recorded anew", file=str(path))


def _says_yes() -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        complain("  Nobody is there to be asked: `--update --yes` records it anew.")
        return False
    sys.stderr.write("  Record it anew? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
