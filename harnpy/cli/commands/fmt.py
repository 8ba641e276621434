"""`harnpy fmt`: programs in canonical form. Spec: 09 §4.3, 01 §12."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import unified_diff
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from harnpy.cli import FAILED, OK
from harnpy.cli.console import complain, say
from harnpy.cli.source_files import Manifests, program_files, replace_text
from harnpy.cli.testing.worker_processes import worker_processes
from harnpy.formats.visible import on_one_line
from harnpy.syntax.diagnostic import SourceFault
from harnpy.syntax.formatter import SEPARATOR_WIDTH, NotKept, format_source
from harnpy.syntax.printer import LINE_WIDTH
from harnpy.vm.vm import allow_deep_recursion

STDIN = Path("-")
#: Bytes of programs that keep one process busy for longer than it takes to start.
_PER_PROCESS = 200_000


class Widths(NamedTuple):
    """The settings of the formatter, in columns."""

    line_width: int = LINE_WIDTH
    separator_width: int = SEPARATOR_WIDTH


class Formatted(NamedTuple):
    """A file's text and its canonical text, or why it has none."""

    name: str
    before: str = ""
    after: str = ""
    error: str | None = None


@click.command("fmt", short_help="Format programs in their canonical layout.")
@click.argument("targets", nargs=-1, type=click.Path(path_type=Path, allow_dash=True), metavar="TARGET...|-")
@click.option("--check", is_flag=True, help="Write nothing; fail if a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change.")
@click.option("--line-width", type=click.IntRange(min=1), metavar="N", help="Maximum line length (100).")
@click.option("--separator-width", type=click.IntRange(min=1), metavar="N", help="The width of bars (80).")
@click.pass_context
def command(
    context: click.Context,
    targets: tuple[Path, ...],
    check: bool,
    diff: bool,
    line_width: int | None,
    separator_width: int | None,
) -> int:
    """Format programs in their canonical layout.

    A TARGET is a file, or a directory with .harn files below it. With `-`, read the program from
    stdin and write the result to stdout.
    """
    if not targets:
        raise click.UsageError("`harnpy fmt` requires at least one target path, or `-` for stdin", context)
    if STDIN in targets and len(targets) > 1:
        raise click.UsageError("`-` stands alone: stdin is one program", context)
    widths = _widths(targets[0], line_width, separator_width)
    if targets == (STDIN,):
        return _stream(widths, check, diff)
    files = program_files(targets)
    if not files:
        complain("No .harn files found")
        return FAILED
    with _formatting(files, widths) as results:
        return max([_conclude(result, check, diff) for result in results])


def _widths(target: Path, line_width: int | None, separator_width: int | None) -> Widths:
    """The options, else what `[fmt]` says for the first target, else the defaults."""
    table = Manifests().table("fmt", "." if target == STDIN else str(target))
    for key in Widths._fields:
        if key in table and (type(table[key]) is not int or table[key] < 1):
            raise click.ClickException(
                f"[fmt] of harn.toml: `{key}` must be an integer above 0, not {table[key]!r}"
            )
    return Widths(
        line_width or table.get("line_width", LINE_WIDTH),
        separator_width or table.get("separator_width", SEPARATOR_WIDTH),
    )


# One file


def formatted(file: Path, widths: Widths) -> Formatted:
    """Read a file and format its text."""
    try:
        return _formatted(str(file), file.read_bytes(), widths)
    except OSError as error:
        return Formatted(str(file), error=error.strerror or str(error))


def _formatted(name: str, content: bytes, widths: Widths) -> Formatted:
    allow_deep_recursion()
    try:
        before = content.decode()
        return Formatted(name, before, format_source(before, file=name, **widths._asdict()))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return Formatted(name, error=f"not UTF-8 at line {line}: byte 0x{content[error.start]:02x}")
    except SourceFault as error:
        return Formatted(name, error=error.message)
    except NotKept as error:
        return Formatted(name, error=str(error))


def _conclude(result: Formatted, check: bool, diff: bool) -> int:
    """Write or show what changed, and say so; the exit status for this file."""
    if result.error is not None:
        complain(on_one_line(f"{result.name}: {result.error}"))
        return FAILED
    if result.before == result.after:
        return OK
    if diff:
        sys.stdout.write(_difference(result))
    if check:
        complain(f"{result.name}: would be reformatted")
        return FAILED
    if not diff:
        try:
            replace_text(result.name, result.after)
        except OSError as error:
            complain(f"{result.name}: {error.strerror}")
            return FAILED
        say(f"formatted {result.name}")
    return OK


def _difference(result: Formatted) -> str:
    from harnpy.formats.json import lines_of

    lines = unified_diff(
        lines_of(result.before),
        lines_of(result.after),
        result.name,
        f"{result.name} (formatted)",
    )
    return "".join(
        line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines
    )


def _stream(widths: Widths, check: bool, diff: bool) -> int:
    """stdin to stdout."""
    result = _formatted("<stdin>", sys.stdin.buffer.read(), widths)
    if result.error is not None or check or diff:
        return (
            OK if result.error is None and result.before == result.after else _conclude(result, check, diff)
        )
    sys.stdout.flush()
    sys.stdout.buffer.write(result.after.encode())
    return OK


# Many files


@contextmanager
def _formatting(files: list[Path], widths: Widths) -> Iterator[Iterable[Formatted]]:
    """The results in the order of the files, made by as many processes as are worth their start."""
    work = partial(formatted, widths=widths)
    count = min(os.cpu_count() or 1, sum(map(_size, files)) // _PER_PROCESS)
    if count < 2:
        yield map(work, files)
        return
    with worker_processes(count) as mapper:
        yield mapper(work, files)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
