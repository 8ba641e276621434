"""`harnpy profile`, `bench` and `emit`: where time goes, how much, and the Python that runs.

Spec: 09 §6.5-6.7.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from time import perf_counter

import click
from rich.console import Group, RenderableType
from rich.text import Text

from harnpy import Vm
from harnpy.builtins.live_models import models_of
from harnpy.cli import FAILED, INTERRUPTED, OK, console
from harnpy.cli.command_options import trust_option, write_page
from harnpy.cli.commands.run import exit_status
from harnpy.cli.console import complain, counted, say_folded
from harnpy.cli.profiler import Call, Function, Profile, Recorder, watching
from harnpy.cli.project_setup import bind_project, require_trust
from harnpy.cli.tables import cell, show, table
from harnpy.cli.testing.sandbox import sandboxed_world
from harnpy.formats import markup
from harnpy.formats.markup import Markup, element, page
from harnpy.llm.account import Trace
from harnpy.syntax.diagnostic import SourceFault
from harnpy.vm.compile import listing_of
from harnpy.vm.errors import ExitRequest
from harnpy.world import World
from harnpy.world.streams import RealStreams

# A profile for the terminal: the functions and the lines that take the most time.


#: Columns of source text that the table of lines shows.
_TEXT_WIDTH = 60


def profile_lines(profile: Profile, most: int, text_of: Callable[[str, int], str]) -> RenderableType:
    """Show at most ``most`` functions and lines; ``text_of(file, line)`` is what the program says there."""
    functions, lines = profile.functions[:most], profile.lines[:most]
    return Group(
        Text(f"\n{headline(profile)}\n", "bold"),
        _numbers(
            ["calls", "own", "total"],
            ["function", "at"],
            [
                [f"{each.calls:,}", ms(each.own), ms(each.total), each.function.name, place(each.function)]
                for each in functions
            ],
        ),
        *_left_out(len(profile.functions) - len(functions), "function"),
        Text(),
        _numbers(
            ["own", "total"],
            ["line", ""],
            [
                [ms(each.own), ms(each.total), place((each.file, each.line)), text_of(each.file, each.line)]
                for each in lines
            ],
        ),
        *_left_out(len(profile.lines) - len(lines), "line"),
    )


def headline(profile: Profile) -> str:
    calls = sum(each.calls for each in profile.functions)
    functions = counted(len(profile.functions), "function")
    return f"{ms(profile.total)} in {calls:,} call{'' if calls == 1 else 's'} of {functions}"


def ms(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:,.2f} ms"


def place(at: Sequence[object]) -> str:
    """``file:line``, the file without its directories."""
    return f"{PurePath(str(at[0])).name}:{at[1]}"


def _numbers(numbers: list[str], texts: list[str], rows: list[list[str]]) -> RenderableType:
    return table(
        [*numbers, *texts], [[cell(text, _TEXT_WIDTH) for text in row] for row in rows], numbers=numbers
    )


def _left_out(count: int, what: str) -> Iterator[Text]:
    if count > 0:
        yield Text(f"… {counted(count, f'more {what}')}", "dim")


# A profile as an HTML page: a flame graph, and the tables behind it. It loads nothing and runs nothing.


#: Calls that take less than this part of the whole are not drawn: nobody could see them.
_SMALLEST = 0.001
#: From this part of the whole on there is room for a name.
_NAMED = 0.012
#: Rows of the graph, and of the tables.
_DEEPEST = 120
_MOST_ROWS = 200
#: Hues of the boxes; a function has the same one everywhere.
_HUES = (14, 24, 34, 44, 54, 4, 350)

_STYLE = """
body { max-width: 90rem; }
.flames { position: relative; overflow: hidden; border-radius: 6px; }
.flames a {
  position: absolute; height: 1.35rem; text-indent: .3rem; overflow: hidden; white-space: nowrap;
  text-overflow: ellipsis; font: .72rem/1.3rem var(--mono); text-decoration: none; color: #26190c;
  border: solid var(--paper); border-width: 0 1px 1px 0; border-radius: 3px;
  background: hsl(var(--hue) 85% 72%);
}
.flames a:hover, .flames a:focus-visible { filter: brightness(.9); outline: none; }
td.text { font-family: var(--mono); font-size: .84em; white-space: pre; }
"""


def profile_page(profile: Profile, text_of: Callable[[str, int], str]) -> str:
    """Return the page; ``text_of(file, line)`` is what the program says there."""
    header = element("div", element("h1", profile.file), class_="title")
    summary = element("p", headline(profile), class_="facts-line")
    return page(
        f"{profile.file} – profile",
        "Profile",
        [header, summary],
        [
            ("Flame graph", _flames(profile)),
            ("Functions", _functions(profile)),
            ("Lines", _lines(profile, text_of)),
        ],
        foot="Made by harnpy.",
        more_style=_STYLE,
    )


def _flames(profile: Profile) -> Markup:
    whole = max(profile.total, 1)
    boxes: list[Markup] = []
    deepest = 0
    left = 0.0
    for root in profile.roots:
        for call, start, depth in _drawn(root, left, whole):
            boxes.append(_box(call, start, depth, whole))
            deepest = max(deepest, depth)
        left += root.total / whole
    graph = element("div", boxes, class_="flames", style=f"height: {(deepest + 1) * 1.4:.2f}rem")
    note = "Width is time. Below a function stands what it calls; a free part is its own time."
    return markup.section("Flame graph", graph, id="flame-graph", note=note)


def _drawn(root: Call, left: float, whole: int) -> Iterator[tuple[Call, float, int]]:
    """The calls that are wide enough to be seen, each with its left edge and its row."""
    waiting = [(root, left, 0)]
    while waiting:
        call, start, depth = waiting.pop()
        if call.total / whole < _SMALLEST or depth >= _DEEPEST:
            continue
        yield call, start, depth
        for child in sorted(call.children.values(), key=lambda each: -each.total):
            waiting.append((child, start, depth + 1))
            start += child.total / whole


def _box(call: Call, start: float, depth: int, whole: int) -> Markup:
    function = call.function
    share = call.total / whole
    hue = _HUES[sum(function.name.encode()) % len(_HUES)]
    title = (
        f"{function.name} at {place(function)}\n{ms(call.total)}, {share:.1%}; own {ms(call.own)}; "
        f"calls: {call.calls:,}"
    )
    style = f"left: {start * 100:.3f}%; width: {share * 100:.3f}%; top: {depth * 1.4:.2f}rem; --hue: {hue}"
    name = function.name if share > _NAMED else ""
    return element("a", name, title=title, style=style, href=f"#{_anchor(function)}")


def _anchor(function: Function) -> str:
    return f"f{function.line}-{function.name}"


def _functions(profile: Profile) -> Markup:
    rows = [
        [
            f"{each.calls:,}",
            ms(each.own),
            ms(each.total),
            element("code", each.function.name, id=_anchor(each.function)),
            place(each.function),
        ]
        for each in profile.functions[:_MOST_ROWS]
    ]
    numbers = ["Calls", "Own", "Total"]
    shown = markup.table([*numbers, "Function", "At"], rows, numbers=numbers)
    return markup.section("Functions", shown, id="functions")


def _lines(profile: Profile, text_of: Callable[[str, int], str]) -> Markup:
    rows = [
        [
            ms(each.own),
            ms(each.total),
            place((each.file, each.line)),
            element("code", text_of(each.file, each.line)),
        ]
        for each in profile.lines[:_MOST_ROWS]
    ]
    shown = markup.table(["Own", "Total", "Line", "Text"], rows, numbers=["Own", "Total"])
    return markup.section("Lines", shown, id="lines")


# `harnpy profile`: where the time of a program goes, by function and by line. Spec: 09 §6.6.


@click.command("profile", short_help="Run a program and report where its time goes.")
@trust_option
@click.argument("file", type=click.Path())
@click.argument("args", nargs=-1)
@click.option(
    "--top", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="The number of rows."
)
@click.option("--html", "page", metavar="OUT", help="Also write a page with a flame graph.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; the program's output goes to stderr.")
def command(file: str, args: tuple[str, ...], top: int, page: str | None, as_json: bool) -> int:
    """Run FILE and report where its time goes, by function and by line.

    ARGS after `--` are the program's `argv`. Own time is that of a function's own lines and the builtins
    they call; total time includes the Harn functions they call. Recording slows down calls and lines, but
    not builtins.
    """
    recorder = Recorder()
    status = _run(file, args, recorder, as_json)
    profile = Profile(file, recorder.roots)
    text_of = _texts()
    if as_json:
        sys.stdout.write(json.dumps(profile.as_json()) + "\n")
    else:
        show(profile_lines(profile, top, text_of))
    write_page(page, lambda: profile_page(profile, text_of))
    return status


def _run(file: str, args: tuple[str, ...], recorder: Recorder, as_json: bool) -> int:
    """Run the program and return its exit status; a failure is reported as `run` does."""
    streams = RealStreams(stdout=sys.stderr.write) if as_json else RealStreams()
    vm = Vm(World(streams=streams))
    vm.every_call = True
    bind_project(vm, file)
    try:
        with watching(recorder):
            value = vm.run_file(file, args=args)
        return exit_status(value, vm.failures)
    except ExitRequest as request:
        return request.code
    except KeyboardInterrupt:
        # Somebody wants to know what takes so long.
        return INTERRUPTED
    except Exception as error:
        return console.report_failure(error)


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


# `harnpy bench`: how long a program takes, with a fresh state each time. Spec: 09 §6.5.


@click.command("bench", short_help="Run a program many times and report how long it took.")
@click.argument("file", type=click.Path(path_type=Path))
@trust_option
@click.option("-n", "--iterations", type=click.IntRange(0), default=10, show_default=True, metavar="N")
def bench(file: Path, iterations: int) -> int:
    """Run FILE many times and report how long it took. Its output is discarded."""
    if iterations == 0:
        complain("error: `harnpy bench` requires at least one iteration")
        return FAILED
    require_trust([file])
    runs: list[_Run] = []
    for iteration in range(1, iterations + 1):
        try:
            runs.append(_run_once(file))
        except Exception as error:
            sys.stderr.write(console.rendered_error(error, sys.stderr))
            complain(f"benchmark aborted on iteration {iteration}")
            return FAILED
    say_folded("\n".join([f"Benchmark: {file}", f"Iterations: {iterations}", *_report(runs)]))
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


# `harnpy emit`: the Python that a program becomes. Spec: 09 §6.7.


@click.command("emit", short_help="Show the Python that a program is compiled to.")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--module", "as_module", is_flag=True, help="Compile FILE as when another file imports it.")
def emit(file: Path, as_module: bool) -> int:
    """Show the Python that a program is compiled to, with each Harn line as a comment before it.

    Functions come first, each wrapped in one that takes the values it captures; then `main`.
    docs/internals/vm.md explains the rest.
    """
    vm, directory = Vm(), str(file.absolute().parent)
    try:
        source = file.read_text(encoding="utf-8", errors="replace")
        imports = vm.imports_of(source, directory)
        sys.stdout.write(listing_of(source, str(file), vm.builtins, imports, as_module))
    except (OSError, SourceFault) as error:
        sys.stderr.write(console.rendered_error(error, sys.stderr))
        return FAILED
    return OK
