"""Profiling: a tree of calls, the clock that fills it, and the events of Python that drive the clock.

Python's tracing sees Harn functions as functions. Reports are made of plain data.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import greenlet

# What a profile is made of: a tree of calls, and what it says of functions and lines.
#
# A call is counted by the path that led to it: the functions, and the lines that they were called on. All
# times are nanoseconds. Own time is that of a function's own lines, with the builtins that they call; total
# time includes the Harn functions that they call.


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
        """Return the node of a call that is made on ``line`` of this one."""
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
    """The times of a function, over all its calls."""

    function: Function
    calls: int = 0
    own: int = 0
    total: int = 0


@dataclass(slots=True)
class LineTimes:
    """The times of a line, over all its runs."""

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


# The clock of a profile: whose time it is, from one event to the next.
#
# Every stretch of time belongs to one line of one call. Tasks have a stack each: when another task goes on,
# the time is its own, and nobody's stack is disturbed. While all tasks wait, the time belongs to the line
# where the main task waits.


class Activation:
    """A function that runs, and the line it is on."""

    __slots__ = ("call", "line")

    def __init__(self, call: Call, line: int) -> None:
        self.call = call
        self.line = line


class Recorder:
    """Builds the tree of calls out of events. ``now`` is a clock in nanoseconds."""

    def __init__(self, now: Callable[[], int] = perf_counter_ns) -> None:
        self.now = now
        self.outside = Call(Function("", 0, ""), 0)
        """What calls the first function of each task; its own time is not the program's."""
        self.stack = self._new_stack()
        self._waiting: WeakKeyDictionary[Any, list[Activation]] = WeakKeyDictionary()
        self._since = now()

    @property
    def roots(self) -> list[Call]:
        return list(self.outside.children.values())

    def _new_stack(self) -> list[Activation]:
        return [Activation(self.outside, 0)]

    def _charge(self) -> Activation:
        """Give the time since the last event to the line that was running; return its function."""
        top = self.stack[-1]
        lines = top.call.lines
        lines[top.line] = lines.get(top.line, 0) + self.now() - self._since
        return top

    def enter(self, function: Function, counts: bool) -> None:
        """A function is called, or goes on if it doesn't ``count``."""
        caller = self._charge()
        call = caller.call.child(function, caller.line)
        call.calls += counts
        self.stack.append(Activation(call, function.line))
        self._since = self.now()

    def line(self, number: int) -> None:
        self._charge().line = number
        self._since = self.now()

    def leave(self) -> None:
        """The running function returns, fails or gives an item."""
        self._charge()
        if len(self.stack) > 1:
            self.stack.pop()
        self._since = self.now()

    def switch(self, origin: object, target: object) -> None:
        """Another task goes on: the stack of ``target`` instead of that of ``origin``."""
        self._charge()
        self._waiting[origin] = self.stack
        self.stack = self._waiting.get(target) or self._new_stack()
        self._since = self.now()


# Letting a recorder see the Harn functions that run: by `sys.monitoring`, or `sys.settrace` in Python 3.11.
#
# Generated code carries Harn's files, names and lines, so Python's events are Harn's events. Functions that
# are walked run no generated code and are not seen; their time is their caller's.


class Functions:
    """The code objects that are Harn functions, each looked up once."""

    def __init__(self) -> None:
        self._known: dict[CodeType, Function | None] = {}

    def of(self, code: CodeType, frame: Callable[[], FrameType]) -> Function | None:
        """The function that ``code`` is; ``frame()`` is one that runs it."""
        if code not in self._known:
            unit = frame().f_globals.get("UNIT")
            found = None
            if unit is not None and not code.co_name.startswith(("<maker of", "<module>")):
                found = Function(unit.file, code.co_firstlineno, code.co_qualname)
            self._known[code] = found
        return self._known[code]

    def known(self, code: CodeType) -> Function | None:
        """The same for code that has been asked about."""
        return self._known.get(code)

    def harn(self) -> list[CodeType]:
        return [code for code, function in self._known.items() if function]


def counts(code: CodeType) -> bool:
    """Return whether entering ``code`` is a call: a generator's body goes on, its call is another one."""
    return code.co_name == code.co_qualname


@contextmanager
def watching(recorder: Recorder) -> Iterator[None]:
    """Report to ``recorder`` what this thread runs."""
    with ExitStack() as stack:
        stack.enter_context(_switches(recorder))
        stack.enter_context(_monitored(recorder) if sys.version_info >= (3, 12) else _traced(recorder))
        yield


@contextmanager
def _switches(recorder: Recorder) -> Iterator[None]:
    """Report when another task goes on."""

    def switched(event: str, greenlets: tuple[object, object]) -> None:
        recorder.switch(*greenlets)

    before = greenlet.settrace(switched)
    try:
        yield
    finally:
        greenlet.settrace(before)


@contextmanager
def _traced(recorder: Recorder) -> Iterator[None]:
    functions = Functions()

    def called(frame: FrameType, event: str, argument: object) -> Any:
        function = functions.of(frame.f_code, lambda: frame)
        if function is None:
            return None
        recorder.enter(function, counts(frame.f_code))
        return inside

    def inside(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            recorder.line(frame.f_lineno)
        elif event == "return":
            recorder.leave()
        return inside

    before = sys.gettrace()
    sys.settrace(called)
    try:
        yield
    finally:
        sys.settrace(before)


@contextmanager
def _monitored(recorder: Recorder) -> Iterator[None]:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    events, off, tool = monitoring.events, monitoring.DISABLE, monitoring.PROFILER_ID
    functions = Functions()
    inside = events.PY_RESUME | events.PY_RETURN | events.PY_YIELD | events.LINE

    def started(code: CodeType, offset: int) -> Any:
        function = functions.of(code, lambda: sys._getframe(3))
        if function is None:
            return off
        monitoring.set_local_events(tool, code, inside)
        recorder.enter(function, counts(code))
        return None

    def resumed(code: CodeType, *_: object) -> None:
        if function := functions.known(code):
            recorder.enter(function, False)

    def left(code: CodeType, *_: object) -> None:
        if functions.known(code):
            recorder.leave()

    def line(code: CodeType, number: int) -> None:
        recorder.line(number)

    callbacks = {
        events.PY_START: started,
        events.PY_RESUME: resumed,
        events.PY_THROW: resumed,
        events.PY_RETURN: left,
        events.PY_YIELD: left,
        events.PY_UNWIND: left,
        events.LINE: line,
    }
    monitoring.use_tool_id(tool, "harnpy profile")
    try:
        for event, callback in callbacks.items():
            monitoring.register_callback(tool, event, callback)
        monitoring.restart_events()
        # Of all other code only the first call of each function is looked at.
        monitoring.set_events(tool, events.PY_START | events.PY_THROW | events.PY_UNWIND)
        yield
    finally:
        monitoring.set_events(tool, 0)
        for code in functions.harn():
            monitoring.set_local_events(tool, code, 0)
        for event in callbacks:
            monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)
