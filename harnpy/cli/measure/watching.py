"""Letting a recorder see the Harn functions that run: by `sys.monitoring`, or `sys.settrace` in Python 3.11.

Generated code carries Harn's files, names and lines, so Python's events are Harn's events. Functions that
are walked run no generated code and are not seen; their time is their caller's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import CodeType, FrameType
from typing import Any

import greenlet

from harnpy.cli.measure.call_tree import Function
from harnpy.cli.measure.recorder import Recorder


class Functions:
    """Which code is a Harn function, found out once for each."""

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
    """Whether entering ``code`` is a call: the body of a generator goes on, its call is another function."""
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
