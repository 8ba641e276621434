"""Which of Python's frames run Harn functions, and where each of those is.

A generated function is one frame; it carries its unit as the global ``UNIT``. A function that is walked is
many, one for each node from the function down to the current one: all of them take its `Walking` as their
first argument.
"""

from __future__ import annotations

from itertools import islice

from harnpy.vm.values.objects import Fn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import Any

    from harnpy.vm.unit import Unit

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
    """What backtraces call the function."""
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
    from harnpy.vm.resolve.scopes import readable

    wanted = readable(name)
    for variable in reversed(frame.f_locals):
        head, _, number = variable.rpartition("_")
        if head == wanted and number.isdigit():
            yield name, frame.f_locals[variable]
