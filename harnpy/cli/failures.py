"""What ends a command or a program, shown on stderr. Spec: 09 §1.2–1.4."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from errno import EBADF, EDQUOT, EFBIG, EIO, ENOENT, ENOSPC, EPIPE

from harnpy.cli import FAILED, Stopped
from harnpy.cli.show import error_text
from harnpy.world.lost_output import OutputLost

#: What writing to a stream fails with. Failures of files name their file.
_OF_OUTPUT = (EPIPE, ENOSPC, EDQUOT, EFBIG, EIO, EBADF)


def report(error: Exception, debug: bool = False) -> int:
    """Show the failure, after what was printed before it; return the exit status.

    Raise `Stopped` if that caused it: where Python makes a class, it turns any exception into a RuntimeError.
    """
    if _is_stopped(error):
        raise Stopped
    lost, error = _lost_output(), _named(error)
    if isinstance(error, OutputLost):
        lost = None  # one and the same
    _write(error_text.render(error, sys.stderr))
    if debug:
        _write(_traceback(error))
    if lost:
        _write(error_text.render(lost))
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

    for frame in getattr(error, "frames", ()):
        text = frame.unit.source
        linecache.cache[frame.file] = len(text), None, text.splitlines(keepends=True), frame.file
