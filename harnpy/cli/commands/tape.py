"""`harnpy replay` and what else is done with tapes: recorded runs of programs. Spec: 09 §14, 13."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from harnpy.cache import VARIABLE
from harnpy.cli import FAILED
from harnpy.cli.command_options import html_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.tape import Tape
    from harnpy.tape.worlds import TapedWorld


@click.command("replay", short_help="Run a recorded program again, without effects, or show how a run went.")
@click.argument("run")
@click.argument("file", required=False)
@html_option
def replay(run: str, file: str | None, page: str | None) -> int:
    """Run the program of a tape again: it sees what it saw when it was recorded by `harnpy run --record`,
    prints the same, and nothing outside is touched. With FILE, that program runs in its place, and the first
    effect that differs is said.

    Of a stored run, given its file or id: show how it went, and whether it passes its own fixture.
    """
    from harnpy.tape import is_tape

    if not (is_tape(run) or os.path.exists(f"{run}.partial")):
        from harnpy.cli.commands import runs

        if file is not None:
            raise click.UsageError(f"'{run}' is no tape, so no program can be run on it")
        return runs.replay(run, page)
    if page is not None:
        raise click.UsageError("a tape has no page: `--html` is for stored runs")
    from harnpy.tape import Replaying, TapeError, read_tape

    try:
        tape = read_tape(run)
        world = Replaying(tape)
    except TapeError as error:
        return _failed(error)
    return perform(world, tape, file)


def perform(world: TapedWorld, tape: Tape, file: str | None = None) -> int:
    """Run a tape's program, or the one in ``file``, in a world of tapes, with the options that the tape has;
    return the exit status, as that of `harnpy run`."""
    from harnpy import Vm
    from harnpy.cli.commands import run

    body, command = tape.job.body, tape.header.command
    options = run.Options.from_tape(command, body["entry"])

    def again(vm: Any, options: run.Options) -> Any:
        if command.get("inline"):
            vm.settings.home = body["cwd"]
        return vm.run_recorded() if file is None else vm.run_file(file, args=body["args"])

    with unchanged_disk(world):
        return run.perform(Vm(world), options, run.instrumented(options, world, again))


@contextmanager
def unchanged_disk(world: TapedWorld) -> Iterator[None]:
    """Have nothing cached on the disk meanwhile, where the world is closed."""
    if not world.rules.is_closed or os.environ.get(VARIABLE):
        yield
        return
    former, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    os.environ[VARIABLE] = "writes"
    try:
        yield
    finally:
        del os.environ[VARIABLE]
        sys.dont_write_bytecode = former


def _failed(error: Exception) -> int:
    from harnpy.cli.console import report_failure

    sys.stdout.flush()
    return report_failure(error, debug=False) or FAILED
