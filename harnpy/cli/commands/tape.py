"""`harnpy replay` and what else is done with tapes: recorded runs of programs. Spec: 09 §14, 13."""

from __future__ import annotations

import os
import sys
from functools import partial
from time import sleep
from typing import TYPE_CHECKING, Any

import click

from harnpy.cli import FAILED
from harnpy.cli.command_options import html_option, trust_option
from harnpy.cli.console import complain, paint
from harnpy.cli.replays import unchanged_disk

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy import Vm
    from harnpy.tape import Branching, Tape
    from harnpy.tape.worlds import TapedWorld


@click.command("replay", short_help="Replay a tape without effects, or show how a run went.")
@click.argument("run")
@click.argument("file", required=False)
@html_option
def replay(run: str, file: str | None, page: str | None) -> int:
    """Run the program of a tape again: it sees what it saw when it was recorded by `harnpy run --record`,
    prints the same, and nothing outside is touched. With FILE, that program runs in its place, and the first
    effect that differs is said.

    RUN may be a bundle that was made from a tape (`harnpy bundle export`).

    Of a stored run, given its file or id: show how it went, and whether it passes its own fixture.
    """
    from harnpy.cli.commands.run import started

    return started(lambda: _replay(run, file, page))


def _replay(run: str, file: str | None, page: str | None) -> int:
    from harnpy.tape import TapeError, is_tape, names_tape

    try:
        bundled = None if is_tape(run) else _bundled(run)
    except TapeError as error:
        return _failed(error)
    if bundled is None and not names_tape(run):
        from harnpy.cli.commands import runs

        if file is not None:
            raise click.UsageError(f"'{run}' isn't a tape, so no program can be run on it")
        return runs.replay(run, page)
    if page is not None:
        raise click.UsageError("a tape has no page: `--html` is for stored runs")
    from harnpy.tape import Replaying, read_tape

    try:
        tape = read_tape(run) if bundled is None else bundled
        world = Replaying(tape)
    except TapeError as error:
        return _failed(error)
    return perform(world, tape, file)


def _bundled(path: str) -> Tape | None:
    """Return the tape in a bundle; None for any other file. Raises `TapeError` for one that was changed."""
    import json

    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("_type") != "harn_session_bundle":
        return None
    from harnpy.tape import TapeError
    from harnpy.tape.bundles import tape_in
    from harnpy.workflow.bundle import BundleError, import_bundle

    if "tape" not in (document.get("replay") or ()):
        return None
    try:
        import_bundle(document)
    except BundleError as error:
        raise TapeError(f"{path} can't be replayed: {error}") from None
    return tape_in(document, path)


@click.command("branch", short_help="Go on live from a model's call of a recorded run.")
@click.argument("run", metavar="RUN.tape")
@click.option(
    "--at",
    type=int,
    required=True,
    metavar="K",
    help="The call of a model that is made live; 1 is the first.",
)
@click.option(
    "--message", metavar="JSON", help="What the user says last in call K: a text, or a message dict."
)
@click.option("--model", metavar="[PROVIDER/]M", help="The model of call K and of all behind it.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="An option of call K, as temperature=0."
)
@click.option(
    "--edit", "edits", multiple=True, metavar="FILE[=OTHER]", help="Read FILE as it is now, or OTHER for it."
)
@click.option("--code", metavar="FILE", help="Run the program in FILE instead of the tape's.")
@click.option("--keep", metavar="DIR", help="Put the files that the branch has written there.")
@click.option("-o", "--out", metavar="OUT.tape", help="The branch's tape, or the directory of several.")
@click.option("--attended", is_flag=True, help="Ask at the terminal when the program asks a person.")
@click.option("--variants", metavar="FILE", help="Make the branches that this YAML file lists, side by side.")
@click.option("--runs", type=click.IntRange(1), default=1, metavar="N", help="How often each variant runs.")
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="How many run at once; by default one a CPU, 4 at most.",
)
@click.option("--judge", metavar="PACK", help="Judge each run by the rubrics of this eval pack.")
@click.option("--llm-mock", metavar="FILE", help="Answer the judges' calls from FILE, one fixture per line.")
@html_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@trust_option
def branch(
    run: str,
    at: int,
    message: str | None,
    model: str | None,
    settings: tuple[str, ...],
    edits: tuple[str, ...],
    code: str | None,
    keep: str | None,
    out: str | None,
    attended: bool,
    **of_variants: Any,
) -> int:
    """Run the program of a tape again: up to the K-th call of a model it sees what was recorded, then it goes
    on live. What it writes goes to an overlay, which is dropped at the end; its sessions are forks of the
    recorded ones, and the branch is a tape itself.

    With --variants, each branch that FILE lists runs --runs times, in a process of its own, and what they
    come to is shown beside the recorded run: means with 95 % intervals. A variant is a dict with a name, and
    what it changes: message, model, set, edit, code. Their tapes go to the directory --out.
    """
    if of_variants["variants"] is not None:
        if message or model or settings or edits or code or keep or attended:
            raise click.UsageError(
                "with --variants, what changes is in the file, and nothing else can be given"
            )
        from harnpy.cli.tapes import vary

        return vary(run, at, out, **of_variants)
    if of_variants.pop("runs") != 1 or any(of_variants.values()):
        which = "--runs, --jobs, --judge, --llm-mock, --html and --json"
        raise click.UsageError(f"{which} are for --variants FILE")
    from harnpy.cli.commands.run import person_at_terminal
    from harnpy.tape import Branching, Changes, TapeError
    from harnpy.tape.overlay import check_keep
    from harnpy.world import World

    options = {name: _json(value, "--set") for name, value in (_pair(each, "--set") for each in settings)}
    files = {name: other or name for name, _, other in (each.partition("=") for each in edits)}
    changes = Changes(None if message is None else _json(message, "--message"), model, options, files, code)
    try:
        if keep is not None:
            check_keep(keep)
        world = Branching(run, at, changes, out=out, real=person_at_terminal() if attended else World())
        with world:
            status = perform(world, world.tape, world.program)
            if world.is_made:
                complain(_told(world, keep))
                if keep is not None:
                    world.keep(keep)
    except TapeError as error:
        return _failed(error)
    return status


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.UsageError(f"`{option} {text}` says no value: write {option} {name or 'KEY'}=VALUE")
    return name, value


def _json(text: str, option: str) -> Any:
    """Return what JSON text says; other text is a text, unless it begins as JSON does."""
    import json

    try:
        return json.loads(text)
    except ValueError as error:
        if text[:1] in ("{", "[", '"'):
            raise click.UsageError(f"the value of {option} isn't JSON: {error}") from None
        return text


def _told(world: Branching, keep: str | None) -> str:
    """Return what there is to say of a branch."""
    from harnpy.cli.console import counted

    lead = f"branch of {world.tape.path} at call {world.call} -> {world.path}"
    changed = len(world.written()) + len(world.deleted())
    if not changed:
        return f"{lead}; it changed no file"
    files = counted(changed, "file")
    if keep is not None:
        return f"{lead}; {files} of the overlay {'is' if changed == 1 else 'are'} in {keep}"
    was = "was" if changed == 1 else "were"
    them = "it" if changed == 1 else "them"
    return f"{lead}; {files} in the overlay {was} dropped: --keep DIR keeps {them}"


@click.command("compare", short_help="Show how one run differs from another: two tapes, or two records.")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@html_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare(before: str, after: str, page: str | None, as_json: bool) -> int:
    """Show how the run B differs from the run A.

    Of two tapes, which are replayed without effects: where they part, call by call of a model, cost and time,
    what was printed, files, sessions. Of two stored runs, given their files or ids: what `harnpy runs diff`
    shows.
    """
    from harnpy.cli.commands import runs

    return runs.compare_any(before, after, page, as_json)


@click.command("watch", short_help="Run a program again at each save, on its last run's tape.")
@click.argument("file")
@click.argument("args", nargs=-1, metavar="[-- ARGS]...")
@click.option("--once", is_flag=True, help="Run it once on the tape, and end with its status.")
@click.option("--tape", "path", metavar="FILE", help="Where the tape is kept; by default it goes at the end.")
def watch(file: str, args: tuple[str, ...], once: bool, path: str | None) -> int:
    """Run FILE, and again whenever it, a module of it or a file that it has read is saved: from the tape of
    its last run up to the first call of a model whose request has changed, live from there.

    What the program prints stays on the screen; how many calls came from the tape is said on stderr.
    """
    from contextlib import nullcontext
    from tempfile import TemporaryDirectory

    from harnpy.cli.testing.watching import next_change, stamps_of
    from harnpy.tape.watch import watched_files

    with TemporaryDirectory(prefix="harnpy-") if path is None else nullcontext("") as directory:
        tape = os.path.join(directory, "watch.tape") if path is None else path
        files = watched_files(file, tape)
        was_there = os.path.exists(file)
        while True:
            before = stamps_of(files)
            status = _watched(file, args, tape)
            if once or not was_there:  # some editors have a file gone while they save it
                return status
            files = watched_files(file, tape)
            # What was saved during the run has changed since.
            seen = {name: before.get(name, stamp) for name, stamp in stamps_of(files).items()}
            complain(paint(f"Waiting for a change of {file} or of what it reads…", "dim", sys.stderr))
            next_change(partial(stamps_of, files), seen, sleep)


def _watched(file: str, args: tuple[str, ...], tape: str) -> int:
    """Run a program that is watched; say where it has left its tape, and how much came from there."""
    from time import perf_counter

    from harnpy.tape import TapeError
    from harnpy.tape.watch import Watching

    begun = perf_counter()
    try:
        world = Watching(tape)
    except TapeError as error:
        raise click.ClickException(str(error)) from None
    status = run_taped(world, file, lambda vm: vm.run_file(file, args=args))
    sys.stdout.flush()
    if world.has_run:
        complain(paint(f"{world.calls.text}, {perf_counter() - begun:.1f} s", "dim", sys.stderr))
    return status


def perform(world: TapedWorld, tape: Tape, file: str | None = None, vm: Vm | None = None) -> int:
    """Run a tape's program, or the one in ``file``, in a world of tapes, with the options that the tape has;
    return the exit status, as that of `harnpy run`. ``vm`` is the Vm of that world, by default a new one."""
    from harnpy import Vm
    from harnpy.cli.commands import run

    body, command = tape.job.body, tape.header.command
    options = run.Options.from_tape(command, body["entry"])

    def again(vm: Any, options: run.Options) -> Any:
        if command.get("inline"):
            vm.settings.home = body["cwd"]
        return vm.run_recorded() if file is None else vm.run_file(file, args=body["args"])

    with unchanged_disk(world):
        vm = Vm(world) if vm is None else vm
        vm.on_start.append(run.collect)
        of_project = bool(body.get("project"))
        return run.perform(vm, options, run.instrumented(options, world, again), of_project=of_project)


def run_taped(world: TapedWorld, entry: str, perform: Callable[[Any], Any]) -> int:
    """Return the exit status of what ``perform`` does with a Vm in a world of tapes; ``entry`` is its
    program."""
    from harnpy import Vm
    from harnpy.cli.commands import run

    options = run.Options()
    options.file = entry
    return run.perform(Vm(world), options, lambda vm, options: perform(vm))


def _failed(error: Exception) -> int:
    from harnpy.cli.console import report_failure

    sys.stdout.flush()
    return report_failure(error, debug=False) or FAILED
