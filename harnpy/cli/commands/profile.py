"""`harnpy profile`: where the time of a program goes, by function and by line. Spec: 09 §6.6."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import click

from harnpy import Vm
from harnpy.cli import FAILED, INTERRUPTED
from harnpy.cli.commands.run import exit_status
from harnpy.cli.measure.call_tree import Profile
from harnpy.cli.measure.profile_lines import profile_lines
from harnpy.cli.measure.recorder import Recorder
from harnpy.cli.measure.watching import watching
from harnpy.cli.project_setup import bind_project
from harnpy.cli.show import error_text
from harnpy.cli.show.html_option import write_page
from harnpy.cli.show.tables import show
from harnpy.vm.errors import ExitRequest
from harnpy.world import World
from harnpy.world.streams import RealStreams


@click.command("profile", short_help="Run a program and report where its time goes.")
@click.argument("file", type=click.Path())
@click.argument("args", nargs=-1)
@click.option("--top", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="Rows shown.")
@click.option("--html", "page", metavar="OUT", help="Also write a page with a flame graph.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; the program's output goes to stderr.")
def command(file: str, args: tuple[str, ...], top: int, page: str | None, as_json: bool) -> int:
    """Run FILE and report where its time goes, by function and by line.

    ARGS after `--` are the program's `argv`. Own time is that of a function's own lines and of the builtins
    that they call; total time includes the Harn functions that they call. Recording slows down calls
    and lines, but not what builtins do.
    """
    recorder = Recorder()
    status = _run(file, args, recorder, as_json)
    profile = Profile(file, recorder.roots)
    text_of = _texts()
    if as_json:
        sys.stdout.write(json.dumps(profile.as_json()) + "\n")
    else:
        show(profile_lines(profile, top, text_of))
    write_page(page, lambda: _page(profile, text_of))
    return status


def _run(file: str, args: tuple[str, ...], recorder: Recorder, as_json: bool) -> int:
    """Run the program and return its exit status; a failure is reported as `run` does."""
    streams = RealStreams(stdout=sys.stderr.write) if as_json else RealStreams()
    vm = Vm(World(streams=streams))
    bind_project(vm, file)
    try:
        with watching(recorder):
            value = vm.run_file(file, args=args)
        return exit_status(value)
    except ExitRequest as request:
        return request.code
    except KeyboardInterrupt:
        # Somebody wants to know what takes so long.
        return INTERRUPTED
    except Exception as error:
        sys.stdout.flush()
        sys.stderr.write(error_text.render(error, sys.stderr))
        return FAILED


def _page(profile: Profile, text_of: Callable[[str, int], str]) -> str:
    from harnpy.cli.measure.profile_page import profile_page

    return profile_page(profile, text_of)


def _texts() -> Callable[[str, int], str]:
    """Return a function from a file and a line to that line's text, "" where there is none."""

    @cache
    def lines(file: str) -> list[str]:
        try:
            return Path(file).read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            return []

    def text(file: str, line: int) -> str:
        known = lines(file)
        return known[line - 1].strip() if 0 < line <= len(known) else ""

    return text
