"""From a Python traceback to Harn: which line failed, who called whom, what `catch` receives.

`frames` tells which Python frames run Harn functions, and where each of those is. Frames of the VM's own call
helpers are looked through; any other Python frame between two Harn frames is a builtin that called back,
which is where an error takes a `` (line N)`` suffix (02 §19.2). All of this happens when an error is looked
at, never while programs run.
"""

from __future__ import annotations

from harnpy.faults import TooLarge
from harnpy.vm.errors import OVERFLOW, Leaving, PlainFault, RuntimeFault, Thrown, VmError
from harnpy.vm.run.frames import line_of, name_of, place_of, running, unit_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType, TracebackType
    from typing import Any

    from harnpy.vm.unit import Unit

#: Modules whose frames belong to the call they make.
_TRANSPARENT = frozenset(
    f"harnpy.vm.{name}"
    for name in (
        *("run.calls", "run.spans", "modules.linker"),
        *("run.tasks.scheduler", "run.tasks.spawn", "run.tasks.cancel", "run.tasks.parallel"),
    )
)

#: The function that a task's body runs in: an error that gets here leaves the task (05 §2).
_TASK = "run_task"


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
    suffixes = [f" (line {line})" for line in reversed(left)]
    return text + "".join(_shortened(suffixes, 4, 1, lambda n: f" … {n} more …"))


def _as_vm_error(error: BaseException) -> VmError:
    """What is too large or too deep for the host, as an error of the program."""
    if isinstance(error, TooLarge):
        return RuntimeFault(str(error))
    return PlainFault("Out of memory" if isinstance(error, MemoryError) else OVERFLOW)


def caught(error: BaseException) -> Any:
    """What ``catch (e)`` binds: the thrown value, or the error's text."""
    return error.value if isinstance(error, Thrown) else describe(error, 1)


def finish(error: BaseException) -> VmError:
    """The error as it leaves the Vm: final text, Harn frames, no Python detail needed."""
    frames = harn_frames(error.__traceback__)
    if isinstance(error, Thrown):
        error.frames = frames
        return error
    finished = VmError(describe(error, 0))
    finished.frames = frames
    finished.__cause__ = error
    return finished


def limit_exceeded(leaving: Leaving) -> BaseException:
    """What leaves the Vm: the error for an exceeded limit, with its Harn frames, or ``leaving`` itself."""
    from harnpy.vm.limits import LimitReached

    if not isinstance(leaving, LimitReached):
        return leaving
    leaving.error.frames = harn_frames(leaving.__traceback__)
    return leaving.error


def render(error: VmError, colour: bool = False) -> str:
    """The uncaught error as the command line shows it. Spec: 02 §19.7, 09 §1.4."""
    from harnpy.text.visible import marked, visible

    if not error.frames:
        return f"error: {visible(error.text)}\n"
    top, *outer = error.frames
    pad = " " * (len(str(top.line)) + 1)
    out = [f"error: {visible(error.text)}", f"{pad}--> {visible(top.file)}:{top.line}:{top.column}"]
    shown = top.unit.lines.excerpt(top.line, top.column)
    if shown is not None:
        text, carets = marked(*shown, _token_length(shown[0], shown[1] - 1))
        out += [f"{pad} |", f"{top.line:>{len(pad)}} | {text}", f"{pad} | {carets}"]
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
