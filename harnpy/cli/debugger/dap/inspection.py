"""Questions about a stopped program: threads, stacks, scopes, variables, expressions. Spec: 09 §15.6.

The protocol refers to calls and values by number. The numbers are valid until the program goes on, so each
stop has an `Inspection` of its own.
"""

from __future__ import annotations

import os.path
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.cli.debugger.values import kind, parts, short
from harnpy.cli.repl.shell import is_expression

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.cli.debugger.dap.messages import Evaluate, SetVariable, StackTrace
    from harnpy.cli.debugger.engine import Engine, Stop
    from harnpy.cli.debugger.names import Names
    from harnpy.cli.debugger.stack import Call
    from harnpy.vm.run.tasks.task import Task

    Body = dict[str, Any]
    Value = Any
    Listing = list[tuple[str, Value]]


class RequestError(Exception):
    """A request can't be done; the message says why."""


@dataclass(frozen=True)
class _Container:
    """What can be opened. ``call`` is set when it lists variables of that call."""

    list: Callable[[], Listing]
    call: Call | None = None


class Inspection:
    """``first_line`` and ``first_column`` are the numbers that the client counts from."""

    def __init__(self, engine: Engine, stop: Stop, first_line: int, first_column: int) -> None:
        self.stop = stop
        self._engine = engine
        self._first_line = first_line
        self._first_column = first_column
        self._calls: list[Call] = []
        self._containers: list[_Container] = []

    # --- threads and stacks -----------------------------------------------------------------------

    def threads(self) -> Body:
        return {"threads": [self._thread(task) for task in self._engine.tasks()]}

    def _thread(self, task: Task) -> Body:
        return {"id": self._engine.number_of(task), "name": task.id()}

    def task(self, number: int) -> Task:
        for task in self._engine.tasks():
            if self._engine.number_of(task) == number:
                return task
        raise RequestError(f"there is no thread {number}")

    def stack_trace(self, wanted: StackTrace) -> Body:
        calls = self._engine.calls(self.task(wanted.thread_id))
        last = wanted.start_frame + wanted.levels if wanted.levels else len(calls)
        shown = calls[wanted.start_frame : last]
        return {"stackFrames": [self._frame(call) for call in shown], "totalFrames": len(calls)}

    def _frame(self, call: Call) -> Body:
        self._calls.append(call)
        frame = {
            "id": len(self._calls),
            "name": call.name,
            "line": call.line - 1 + self._first_line,
            "column": call.column - 1 + self._first_column,
        }
        if os.path.isabs(call.path):
            frame["source"] = {"name": os.path.basename(call.path), "path": call.path}
        return frame

    def _call(self, number: int | None) -> Call:
        if number is None:
            calls = self._engine.calls(self.stop.task)
            if not calls:
                raise RequestError("no statement is running")
            return calls[0]
        if not 0 < number <= len(self._calls):
            raise RequestError(f"there is no frame {number}")
        return self._calls[number - 1]

    # --- variables --------------------------------------------------------------------------------

    def scopes(self, frame: int) -> Body:
        call, engine = self._call(frame), self._engine
        scopes = [self._scope("Locals", call, engine.locals(call), "locals")]
        for title, names in (("Captured", engine.captured(call)), ("File", engine.of_file(call))):
            if names:
                scopes.append(self._scope(title, call, names))
        sessions = self._open(_Container(self._sessions))
        scopes.append({"name": "Sessions", "variablesReference": sessions, "expensive": True})
        return {"scopes": scopes}

    def _scope(self, title: str, call: Call, names: Names, hint: str | None = None) -> Body:
        def listing() -> Listing:
            return [(name, binding.value) for name, binding in names.items()]

        scope = {
            "name": title,
            "variablesReference": self._open(_Container(listing, call)),
            "expensive": False,
        }
        return scope | ({"presentationHint": hint} if hint else {})

    def _sessions(self) -> Listing:
        """The open sessions with all their events."""
        sessions = sessions_of(self._engine.vm)
        return [(id, sessions.snapshot_value(id)) for id in sessions.ids()]

    def _open(self, container: _Container) -> int:
        self._containers.append(container)
        return len(self._containers)

    def _container(self, reference: int) -> _Container:
        if not 0 < reference <= len(self._containers):
            raise RequestError(f"there are no variables {reference}")
        return self._containers[reference - 1]

    def variables(self, reference: int) -> Body:
        container = self._container(reference)

        def shown() -> list[Body]:
            return [{"name": name, **self._value("value", value)} for name, value in container.list()]

        return {"variables": self._engine.ask(shown)}

    def _value(self, key: str, value: Value) -> Body:
        """A value under ``key``, with a reference if it can be opened."""
        has_parts = bool(parts(value))
        reference = self._open(_Container(lambda: parts(value))) if has_parts else 0
        return {key: short(value), "type": kind(value), "variablesReference": reference}

    def set_variable(self, wanted: SetVariable) -> Body:
        call = self._container(wanted.variables_reference).call
        if call is None:
            raise RequestError(
                "only variables can be set; assign to a part with an expression such as `x.a = 1`"
            )
        self._engine.evaluate(call, f"{wanted.name} = {wanted.value}")
        value = self._engine.evaluate(call, wanted.name)
        return self._engine.ask(lambda: self._value("value", value))

    def evaluate(self, wanted: Evaluate) -> Body:
        value = self._engine.evaluate(self._call(wanted.frame_id), wanted.expression)
        if not is_expression(wanted.expression):
            return {"result": "", "variablesReference": 0}
        return self._engine.ask(lambda: self._value("result", value))
