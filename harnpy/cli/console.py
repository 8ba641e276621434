"""Output of every command: colour, error texts, failures, wrong usage, warnings.

Spec: 03 §1, 09 §1.2-1.4, §3.3, §5.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from errno import EBADF, EDQUOT, EFBIG, EIO, ENOENT, ENOSPC, EPIPE

from harnpy.cli import FAILED, USAGE, Stopped
from harnpy.faults import MisuseError
from harnpy.formats.visible import cells, visible
from harnpy.llm.errors import FixtureError
from harnpy.project import ManifestError
from harnpy.syntax.diagnostic import SourceFault, rendered
from harnpy.vm.errors import VmError
from harnpy.vm.run import backtrace
from harnpy.vm.unit import Unit
from harnpy.world.streams import OutputLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

_CODES = {"red": "31", "green": "32", "bold": "1", "dim": "2"}

#: Control characters, except the line break, as visible symbols.
_CONTROLS = {
    **{code: chr(0x2400 + code) for code in range(0x20) if code != 0x0A},
    **dict.fromkeys(range(0x7F, 0xA0), "\N{REPLACEMENT CHARACTER}"),
}


def harmless(text: str) -> str:
    """Return the text without what would change how a terminal shows the rest of it."""
    return visible(text.translate(_CONTROLS))


def one_line(text: str) -> str:
    return harmless(text).replace("\n", " ")


def counted(number: int, noun: str) -> str:
    """Return ``1 file``, ``2 files``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def has_colour(stream: TextIO) -> bool:
    """True when `stream` is a terminal and NO_COLOR is not set."""
    return "NO_COLOR" not in os.environ and stream.isatty()


def paint(text: str, style: str, stream: TextIO) -> str:
    """`text` in a style such as ``"red"`` or ``"bold"`` where `stream` shows colour."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if has_colour(stream) else text


def say(text: str = "") -> None:
    """Write one line to stdout."""
    sys.stdout.write(text + "\n")


def columns() -> int | None:
    """Return the width of the terminal that stdout is; None when it is none."""
    if not sys.stdout.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


def say_folded(text: str, start: int | None = None) -> None:
    """Write lines to stdout, on a terminal folded to its width."""
    width = columns()
    if width is not None:
        text = "\n".join(part for line in text.split("\n") for part in fold(line, width, start))
    say(text)


def fold(line: str, width: int, start: int | None = None) -> list[str]:
    """Return a line as lines within ``width`` columns, broken at blanks; a longer word stays whole.

    What goes on stands below the character ``start``, by default the text behind a name and two blanks or
    more, as in lists of options; where there is no room for that, four columns in.
    """
    if cells(line) <= width:
        return [line]
    indent = len(line) - len(line.lstrip(" "))
    if start is None:
        gap = line.find("  ", indent)
        start = indent if gap < 0 else len(line) - len(line[gap:].lstrip(" "))
    hang = cells(line[:start])
    if hang > width // 2:
        hang = min(indent + 4, width // 2)
    lines: list[str] = []
    current, is_begun = line[:start], False
    for word in line[start:].split(" "):
        glue = " " if is_begun else ""
        fits = cells(current + glue + word) <= width
        if not fits and current.strip() and cells(word) <= width - hang:
            lines.append(current.rstrip())
            current, glue = " " * hang, ""
        current += glue + word
        is_begun = True
    return [*lines, current.rstrip()]


def complain(message: str) -> None:
    """Write one line to stderr."""
    sys.stderr.write(message + "\n")


def usage_error(message: str, usage: str) -> int:
    """Explain wrong usage of the command line and return its exit status."""
    complain(f"error: {message}\n\nUsage: {usage}\n\nFor more information, try '--help'.")
    return USAGE


def not_yet(option: str) -> str:
    """The message for an option that is specified but not built yet."""
    return f"`{option}` is not supported by this version of harnpy"


# Any failure of a program as text: for people (09 §1.4), for tests (09 §3.3), for the REPL (09 §5).


def error_text(error: Exception) -> str:
    """The one error text: the first syntax error's message, or the uncaught error's display."""
    if isinstance(error, SourceFault):
        return error.message
    if isinstance(error, VmError):
        return error.text
    if isinstance(error, FixtureError | ManifestError | MisuseError):
        return error.message
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return f"internal error: {type(error).__name__}: {error}"


def rendered_error(error: Exception, stream: TextIO | None = None) -> str:
    """The failure as `run` shows it, ending with a line feed; in colour where `stream` shows colour."""
    if isinstance(error, SourceFault):
        return error.render(colour=stream is not None and has_colour(stream))
    if isinstance(error, VmError):
        return backtrace.render(error)
    if isinstance(error, OSError) and error.filename:
        return f"Error reading {visible(error_text(error))}\n"
    if isinstance(error, FixtureError | OSError | MisuseError):
        return f"error: {visible(error_text(error))}\n"
    if isinstance(error, ManifestError):
        help_ = f"  = help: {visible(error.help)}\n" if error.help else ""
        return f"error: {visible(error.message)}\n  --> {visible(str(error.path))}\n{help_}"
    help_ = "this is a mistake in harnpy itself; `run --debug` shows where"
    return f"error: {visible(error_text(error))}\n  = help: {help_}\n"


def coloured_error(error: Exception) -> str:
    """The failure as `rendered_error` has it, in colour wherever it will be shown."""
    if isinstance(error, SourceFault):
        return error.render(colour=True)
    if isinstance(error, VmError):
        return backtrace.render(error, colour=True)
    return rendered_error(error)


def rendered_for_repl(error: Exception) -> str:
    """`Error: TEXT`, then the place and the caret."""
    _, _, place = rendered_error(error).partition("\n")
    return f"Error: {error_text(error)}\n{place}"


# What ends a command or a program, shown on stderr. Spec: 09 §1.2–1.4.


#: What writing to a stream fails with. Failures of files name their file.
_OF_OUTPUT = (EPIPE, ENOSPC, EDQUOT, EFBIG, EIO, EBADF)


def report_failure(error: Exception, debug: bool = False) -> int:
    """Show the failure, after what was printed before it; return the exit status.

    Raise `Stopped` if that caused it: where Python makes a class, it turns any exception into a RuntimeError.
    """
    if _is_stopped(error):
        raise Stopped
    lost, error = _lost_output(), _named(error)
    if isinstance(error, OutputLost):
        lost = None  # one and the same
    _write(rendered_error(error, sys.stderr))
    if debug:
        _write(_traceback(error))
    if lost:
        _write(rendered_error(lost))
    return FAILED


def _named(error: Exception) -> Exception:
    """Return the failure with a name of what failed; those of the system that have none are of two kinds."""
    if not isinstance(error, OSError) or error.filename or isinstance(error, OutputLost):
        return error
    if error.errno == ENOENT:
        error.filename = "the working directory"
    return OutputLost("stdout", error) if error.errno in _OF_OUTPUT else error


def _is_stopped(error: BaseException | None) -> bool:
    while error and not isinstance(error, Stopped):
        error = error.__cause__ or error.__context__
    return error is not None


def _lost_output() -> OutputLost | None:
    """Write what is buffered. If stdout doesn't take it, give stdout up and return why."""
    try:
        sys.stdout.flush()
    except OSError as error:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
        return OutputLost("stdout", error)
    return None


def _write(text: str) -> None:
    with suppress(OSError):  # nobody can be told
        sys.stderr.write(text)


def _traceback(error: Exception) -> str:
    import traceback

    _show_lines_of(error)
    return "".join(traceback.format_exception(error))


def _show_lines_of(error: Exception) -> None:
    """Give Python the texts of what is no file, such as ``<stdin>``, so that tracebacks show its lines."""
    import linecache

    from harnpy.formats.json import lines_of

    for frame in getattr(error, "frames", ()):
        text = frame.unit.source
        linecache.cache[frame.file] = len(text), None, lines_of(text), frame.file


def show_warnings(unit: Unit) -> None:
    """Write the warnings about ``unit`` to stderr."""
    colour = has_colour(sys.stderr)
    for finding in unit.warnings:
        sys.stderr.write(rendered(finding.diagnostic(unit.lines), unit.lines, unit.file, colour=colour))
