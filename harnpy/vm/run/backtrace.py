"""From a Python traceback to Harn: which line failed, who called whom, what `catch` receives.

Frames of the VM's own call helpers are looked through; any other Python frame between two Harn frames is a
builtin that called back, which is where an error takes a `` (line N)`` suffix (02 §19.2). All of this happens
when an error is looked at, never while programs run.
"""

from __future__ import annotations

from itertools import groupby, islice

from harnpy.faults import TooLarge
from harnpy.vm.errors import OVERFLOW, Leaving, PlainFault, RuntimeFault, Thrown, VmError
from harnpy.vm.values import Fn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType, TracebackType
    from typing import Any

    from harnpy.vm.unit import Unit

# Which of Python's frames run Harn functions, and where each of those is.
#
# A generated function is one frame; it carries its unit as the global ``UNIT``. A function that is walked is
# many, one for each node from the function down to the current one: all of them take its `Walking` as their
# first argument.


_WALKER = "harnpy.vm.walk."


class Walking:
    """One run of a function that is walked. ``at`` is the source offset of what it does."""

    __slots__ = ("at", "name", "unit")

    def __init__(self, unit: Unit, name: str, at: int) -> None:
        self.unit = unit
        self.name = name
        self.at = at

    def bound(self) -> Iterator[tuple[str, Any]]:
        """The names bound in it and their values, the last bound first."""
        raise NotImplementedError


def running(frame: FrameType) -> FrameType | Walking | None:
    """The Harn function that a Python frame runs: the frame itself when that function was generated."""
    if "UNIT" in frame.f_globals:
        return frame
    if frame.f_globals.get("__name__", "").startswith(_WALKER) and frame.f_code.co_argcount:
        first = frame.f_locals.get(frame.f_code.co_varnames[0])
        return first if isinstance(first, Walking) else None
    return None


def calling(frame: FrameType | None) -> Iterator[FrameType | Walking]:
    """The Harn functions that run, from the one of ``frame`` outward."""
    last = None
    while frame is not None:
        function = running(frame)
        if function is not None and function is not last:
            last = function
            yield function
        frame = frame.f_back


def unit_of(function: FrameType | Walking) -> Unit:
    unit: Unit = function.unit if isinstance(function, Walking) else function.f_globals["UNIT"]
    return unit


def name_of(function: FrameType | Walking) -> str:
    """Return what backtraces call the function."""
    return function.name if isinstance(function, Walking) else function.f_code.co_qualname


def line_of(function: FrameType | Walking, lineno: int) -> int:
    """The line that the function is at; ``lineno`` is where Python is in its frame."""
    return function.unit.lines.line(function.at) if isinstance(function, Walking) else lineno


def place_of(function: FrameType | Walking, lineno: int, lasti: int) -> tuple[int, int]:
    """The line and column that the function is at; the numbers tell where Python is in its frame."""
    unit = unit_of(function)
    if isinstance(function, Walking):
        return unit.lines.locate(function.at)
    *_, column, _ = next(islice(function.f_code.co_positions(), lasti // 2, None))
    # Python counts bytes of UTF-8.
    before = (unit.lines.text(lineno) or "").encode("utf-8", "surrogatepass")[: column or 0]
    return lineno, len(before.decode("utf-8", "surrogatepass")) + 1


def function_in(function: FrameType | Walking, name: str) -> Fn | None:
    """The function that has been bound last to a name."""
    bound = function.bound() if isinstance(function, Walking) else _generated_names(function, name)
    return next((value for other, value in bound if other == name and type(value) is Fn), None)


def _generated_names(frame: FrameType, name: str) -> Iterator[tuple[str, Any]]:
    """The variables of ``name``, last first; generated code calls them ``name_N``, N being a count."""
    from harnpy.vm.resolve import readable

    wanted = readable(name)
    for variable in reversed(frame.f_locals):
        head, _, number = variable.rpartition("_")
        if head == wanted and number.isdigit():
            yield name, frame.f_locals[variable]


#: Modules whose frames belong to the call they make.
_TRANSPARENT = frozenset(
    f"harnpy.vm.{name}"
    for name in (
        *("run.calls", "run.spans", "modules"),
        *("run.scheduler", "run.tasks"),
    )
)

#: The function that a task's body runs in: an error that gets here leaves the task (05 §2).
_TASK = "run_tasks"


class Frame:
    """One Harn call: where it was. Lines and columns count from 1."""

    __slots__ = ("column", "line", "name", "unit")

    def __init__(self, name: str, unit: Unit, line: int, column: int) -> None:
        self.name = name
        self.unit = unit
        self.line = line
        self.column = column

    @property
    def file(self) -> str:
        return self.unit.file

    def __repr__(self) -> str:
        return f"{self.name} at {self.file}:{self.line}:{self.column}"


def _entries(trace: TracebackType | None) -> Iterator[tuple[FrameType, TracebackType]]:
    """The frames, each with its last entry, where the error came from: one that raised it again has two."""
    while trace is not None:
        after = trace.tb_next
        if after is None or after.tb_frame is not trace.tb_frame:
            yield trace.tb_frame, trace
        trace = after


def harn_frames(trace: TracebackType | None) -> tuple[Frame, ...]:
    """The Harn calls of a traceback, innermost first."""
    found: list[Frame] = []
    last = None
    for frame, entry in _entries(trace):
        function = running(frame)
        if function is not None and function is not last:
            place = place_of(function, entry.tb_lineno, entry.tb_lasti)
            found.append(Frame(name_of(function), unit_of(function), *place))
            last = function
    return tuple(reversed(found))


def _contexts(trace: TracebackType | None) -> list[int]:
    """For each execution context of a traceback, outermost first, the line it failed at."""
    lines: list[int] = []
    outside, last = True, None
    for frame, entry in _entries(trace):
        function = running(frame)
        if function is not None:
            # Generated code calls methods of structs straight, but a method is a context of its own.
            outside = outside or (function is not last and "." in name_of(function))
            if outside:
                lines.append(0)
            if outside or function is not last:
                lines[-1] = line_of(function, entry.tb_lineno)
            outside, last = False, function
        elif not _is_transparent(frame) or frame.f_code.co_name == _TASK:
            outside = True
    return lines


def _is_transparent(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__", "")
    return name in _TRANSPARENT or name.startswith("harnpy.vm.walk.")


def describe(error: BaseException, skip: int) -> str:
    """The error's text with a suffix for each context it has left; ``skip`` outer ones are not left."""
    if not isinstance(error, VmError):
        error = _as_vm_error(error).with_traceback(error.__traceback__)
    text = error.text
    if not error.takes_line:
        return text
    left = _contexts(error.__traceback__)[skip:]
    if left and isinstance(error, PlainFault):
        text = "Runtime error: " + text
    suffixes = [f" (line {line})" for line, _ in groupby(reversed(left))]
    return text + "".join(_shortened(suffixes, 4, 1, lambda n: f" … {n} more …"))


def _as_vm_error(error: BaseException) -> VmError:
    """Return what is too large or too deep for the host, as an error of the program."""
    if isinstance(error, TooLarge):
        return RuntimeFault(str(error))
    return PlainFault("Out of memory" if isinstance(error, MemoryError) else OVERFLOW)


def caught(error: BaseException) -> Any:
    """Return what ``catch (e)`` binds: the thrown value, or the error's text."""
    return error.value if isinstance(error, Thrown) else describe(error, 1)


def finish(error: BaseException) -> VmError:
    """The error as it leaves the Vm: final text, Harn frames, no Python detail needed."""
    frames = harn_frames(error.__traceback__)
    if isinstance(error, Thrown):
        error.frames = frames
        if error.__cause__ is None:
            error.__cause__ = _cause(error)
        return error
    finished = VmError(describe(error, 0))
    finished.frames = frames
    finished.__cause__ = error
    return finished


def _cause(error: Thrown) -> BaseException | None:
    """Return what caused the error whose value a program has caught and thrown again; None for others."""
    earlier = error.__context__
    while earlier is not None:
        if isinstance(earlier, Thrown) and earlier.value is error.value:
            return earlier.__cause__
        earlier = earlier.__context__
    return None


def left(leaving: Leaving) -> BaseException:
    """Return what leaves the Vm: an error for the embedder, with Harn frames, or ``leaving`` itself."""
    if leaving.becomes is None:
        return leaving
    leaving.becomes.frames = harn_frames(leaving.__traceback__)
    return leaving.becomes


def render(error: VmError, colour: bool = False) -> str:
    """The uncaught error as the command line shows it. Spec: 02 §19.7, 09 §1.4."""
    from harnpy.formats.visible import marked, visible
    from harnpy.syntax.diagnostic import tinted

    tint = tinted if colour else lambda severity, text: text
    head = f"{tint('error', 'error')}: {visible(error.text)}"
    if not error.frames:
        return f"{head}\n"
    top, *outer = error.frames
    pad = " " * (len(str(top.line)) + 1)
    out = [head, f"{pad}--> {visible(top.file)}:{top.line}:{top.column}"]
    shown = top.unit.lines.excerpt(top.line, top.column)
    if shown is not None:
        text, carets = marked(*shown, _token_length(shown[0], shown[1] - 1))
        blanks = carets[: -len(carets.lstrip())]
        marks = tint("error", carets.lstrip())
        out += [f"{pad} |", f"{top.line:>{len(pad)}} | {text}", f"{pad} | {blanks}{marks}"]
    notes = [
        f"  = note: called from {visible(frame.name)} at {visible(frame.file)}:{frame.line}"
        for frame in outer
    ]
    out += _shortened(notes, 12, 4, lambda n: f"  = note: … {n} more calls …")
    return "\n".join(out) + "\n"


def _shortened(items: list[str], first: int, last: int, between: Callable[[int], str]) -> list[str]:
    """A long list with its middle summed up in one item: runaway recursion has hundreds of frames."""
    left_out = len(items) - first - last
    return items if left_out < 4 else [*items[:first], between(left_out), *items[-last:]]


def _token_length(line: str, start: int) -> int:
    """Characters of the identifier or number at ``start``; 1 for anything else."""
    end = start
    while end < len(line) and (line[end].isalnum() or line[end] == "_"):
        end += 1
    return max(end - start, 1)
