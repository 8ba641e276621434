"""The clock of a profile: whose time it is, from one event to the next.

Every stretch of time belongs to one line of one call. Tasks have a stack each: when another task goes on,
the time is its own, and nobody's stack is disturbed. While all tasks wait, the time belongs to the line
where the main task waits.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any
from weakref import WeakKeyDictionary

from harnpy.cli.measure.call_tree import Call, Function


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
