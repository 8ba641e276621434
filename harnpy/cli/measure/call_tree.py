"""What a profile is made of: a tree of calls, and what it says of functions and lines.

A call is counted by the path that led to it: the functions, and the lines that they were called on. All
times are nanoseconds. Own time is that of a function's own lines, with the builtins that they call; total
time includes the Harn functions that they call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Function(NamedTuple):
    """A Harn function by the place where it begins."""

    file: str
    line: int
    name: str


class Call:
    """All calls of one function on one path. ``line`` is where in its caller it is called."""

    __slots__ = ("calls", "children", "function", "line", "lines", "total")

    def __init__(self, function: Function, line: int) -> None:
        self.function = function
        self.line = line
        self.calls = 0
        self.lines: dict[int, int] = {}
        """The own time of each line."""
        self.children: dict[tuple[Function, int], Call] = {}
        self.total = 0
        """Set by `add_up`."""

    @property
    def own(self) -> int:
        return sum(self.lines.values())

    def child(self, function: Function, line: int) -> Call:
        """What is called on ``line`` of this call."""
        key = function, line
        found = self.children.get(key)
        if found is None:
            found = self.children[key] = Call(function, line)
        return found

    def add_up(self) -> int:
        """Set and return the total times of the calls below this one, and of this one."""
        self.total = self.own + sum(child.add_up() for child in self.children.values())
        return self.total


@dataclass(slots=True)
class FunctionTimes:
    """What a function took, in all its calls."""

    function: Function
    calls: int = 0
    own: int = 0
    total: int = 0


@dataclass(slots=True)
class LineTimes:
    """What a line took, in all its runs."""

    file: str
    line: int
    own: int = 0
    total: int = 0


@dataclass(slots=True)
class Profile:
    """A finished recording: the calls that no Harn function made, and what follows from them."""

    file: str
    roots: list[Call]
    functions: list[FunctionTimes] = field(init=False)
    lines: list[LineTimes] = field(init=False)

    def __post_init__(self) -> None:
        for root in self.roots:
            root.add_up()
        functions: dict[Function, FunctionTimes] = {}
        lines: dict[tuple[str, int], LineTimes] = {}
        # What is active around a call has the call's time in its total already.
        for call, active in self._calls():
            function = call.function
            times = functions.setdefault(function, FunctionTimes(function))
            times.calls += call.calls
            times.own += call.own
            times.total += 0 if function in active else call.total
            for number, spent in call.lines.items():
                key = function.file, number
                line = lines.setdefault(key, LineTimes(*key))
                line.own += spent
                line.total += 0 if key in active else spent
            for child in call.children.values():
                key = function.file, child.line
                line = lines.setdefault(key, LineTimes(*key))
                line.total += 0 if key in active else child.total
        self.functions = sorted(functions.values(), key=lambda each: (-each.own, each.function))
        self.lines = sorted(lines.values(), key=lambda each: (-each.total, each.file, each.line))

    @property
    def total(self) -> int:
        return sum(root.total for root in self.roots)

    def _calls(self) -> Iterator[tuple[Call, frozenset[Any]]]:
        """Every call, with the functions, and the lines (file, line), that are active around it."""
        left: list[tuple[Call, frozenset[Any]]] = [(root, frozenset()) for root in self.roots]
        while left:
            call, active = left.pop()
            yield call, active
            for child in call.children.values():
                left.append((child, active | {call.function, (call.function.file, child.line)}))

    def as_json(self) -> dict[str, Any]:
        """The profile for other programs, in seconds."""
        return {
            "file": self.file,
            "seconds": _seconds(self.total),
            "functions": [
                {
                    **each.function._asdict(),
                    "calls": each.calls,
                    "own": _seconds(each.own),
                    "total": _seconds(each.total),
                }
                for each in self.functions
            ],
            "lines": [
                {
                    "file": each.file,
                    "line": each.line,
                    "own": _seconds(each.own),
                    "total": _seconds(each.total),
                }
                for each in self.lines
            ],
            "calls": [_call_json(root) for root in self.roots],
        }


def _call_json(call: Call) -> dict[str, Any]:
    return {
        **call.function._asdict(),
        "called_on": call.line,
        "calls": call.calls,
        "own": _seconds(call.own),
        "total": _seconds(call.total),
        "children": [_call_json(child) for child in call.children.values()],
    }


def _seconds(nanoseconds: int) -> float:
    return nanoseconds / 1e9
