"""Any failure of a program as text: for people (09 §1.4), for tests (09 §3.3), for the REPL (09 §5)."""

from __future__ import annotations

from harnpy.llm.errors import FixtureError
from harnpy.project import ManifestError
from harnpy.syntax.errors import SourceFault
from harnpy.text.visible import visible
from harnpy.vm.errors import VmError
from harnpy.vm.run import backtrace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO


def text(error: Exception) -> str:
    """The one error text: the first syntax error's message, or the uncaught error's display."""
    if isinstance(error, SourceFault):
        return error.message
    if isinstance(error, VmError):
        return error.text
    if isinstance(error, FixtureError | ManifestError):
        return error.message
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return f"internal error: {type(error).__name__}: {error}"


def render(error: Exception, stream: TextIO | None = None) -> str:
    """The failure as `run` shows it, ending with a line feed; in colour where `stream` shows colour."""
    if isinstance(error, SourceFault):
        return error.render(colour=_coloured(stream))
    if isinstance(error, VmError):
        return backtrace.render(error)
    if isinstance(error, OSError) and error.filename:
        return f"Error reading {visible(text(error))}\n"
    if isinstance(error, FixtureError | OSError):
        return f"error: {visible(text(error))}\n"
    if isinstance(error, ManifestError):
        help_ = f"  = help: {visible(error.help)}\n" if error.help else ""
        return f"error: {visible(error.message)}\n  --> {visible(str(error.path))}\n{help_}"
    help_ = "this is a mistake in harnpy itself; `run --debug` shows where"
    return f"error: {visible(text(error))}\n  = help: {help_}\n"


def render_for_repl(error: Exception) -> str:
    """`Error: TEXT`, then the place and the caret."""
    _, _, place = render(error).partition("\n")
    return f"Error: {text(error)}\n{place}"


def _coloured(stream: TextIO | None) -> bool:
    from harnpy.cli.console import has_colour

    return stream is not None and has_colour(stream)
