"""The debugger for editors: handles a client's requests, and reports what the program does. Spec: 09 §15.6.

Requests are handled one after the other in the thread that called `serve`. The program's thread writes
events: stops, output, the end.
"""

from __future__ import annotations

import io
import os
import os.path
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.cli import console
from harnpy.cli.debugger import dap_wire, engine
from harnpy.cli.debugger.breakpoints import text_of
from harnpy.cli.debugger.engine import NotStopped
from harnpy.cli.debugger.frames import Call, EvaluationError, Names, kind, parts, short
from harnpy.cli.debugger.rewinding import TapeEngine, TapeProgram, open_tape
from harnpy.cli.repl import is_expression
from harnpy.formats.mismatch import mismatch
from harnpy.project import ManifestError
from harnpy.syntax.diagnostic import SourceFault
from harnpy.tape import TapeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.cli.debugger.breakpoints import Breakpoint
    from harnpy.cli.debugger.dap_wire import Evaluate, Request, SetVariable, StackTrace, Wire
    from harnpy.cli.debugger.engine import Engine, MakeStep, Stop
    from harnpy.vm.run.tasks import Task

    Body = dict[str, Any]
    Value = Any
    Listing = list[tuple[str, Value]]

# The program's output as events of the protocol. Spec: 09 §15.6.


class Output(io.TextIOBase):
    """A text stream whose texts are ``output`` events; ``category`` is ``"stdout"`` or ``"stderr"``."""

    def __init__(self, wire: Wire, category: str) -> None:
        super().__init__()
        self._wire = wire
        self._category = category

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if text:
            self._wire.event("output", {"category": self._category, "output": text})
        return len(text)


# Questions about a stopped program: threads, stacks, scopes, variables, expressions. Spec: 09 §15.6.
#
# The protocol refers to calls and values by number. The numbers are valid until the program goes on, so each
# stop has an `Inspection` of its own.


class RequestError(Exception):
    """A request can't be done; the message says why."""


@dataclass(frozen=True)
class _Container:
    """A value that can be opened. ``call`` is set when it lists variables of that call."""

    list: Callable[[], Listing]
    call: Call | None = None


class Inspection:
    """``first_line`` and ``first_column`` are the numbers that the client counts from; ``reference`` returns
    the number of a text that the client must ask for, 0 if it can read the file."""

    def __init__(
        self,
        engine: Engine,
        stop: Stop,
        first_line: int,
        first_column: int,
        reference: Callable[[str], int],
    ) -> None:
        self._reference = reference
        self.stop = stop
        self._engine = engine
        self._first_line = first_line
        self._first_column = first_column
        self._calls: list[Call] = []
        self._containers: list[_Container] = []

    # --- threads and stacks -----------------------------------------------------------------------

    def threads(self) -> Body:
        number_of = self._engine.number_of
        return {"threads": [{"id": number_of(task), "name": task.id()} for task in self._engine.tasks()]}

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
        frame: Body = {
            "id": len(self._calls),
            "name": call.name,
            "line": call.line - 1 + self._first_line,
            "column": call.column - 1 + self._first_column,
        }
        if os.path.isabs(call.path):
            source: Body = {"name": os.path.basename(call.path), "path": call.path}
            if reference := self._reference(call.path):
                source["sourceReference"] = reference
            frame["source"] = source
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


Kind = TypeVar("Kind", bound=dap_wire.Arguments)

_CAPABILITIES = {
    "supportsConfigurationDoneRequest": True,
    "supportsConditionalBreakpoints": True,
    "supportsEvaluateForHovers": True,
    "supportsExceptionInfoRequest": True,
    "supportsSetVariable": True,
    "supportsTerminateRequest": True,
    "supportTerminateDebuggee": True,
    "exceptionBreakpointFilters": [
        {"filter": "all", "label": "All failures", "default": False},
        {"filter": "uncaught", "label": "Uncaught failures", "default": True},
    ],
}

#: Seconds that a program has to end in when its client leaves.
_GRACE = 2.0


class Adapter:
    """One client, one program."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._program: engine.Threaded | None = None
        self._settings = dap_wire.Initialize()
        self._inspection: Inspection | None = None
        self._afterwards: list[Callable[[], object]] = []
        self._no_debug = False
        self._left = False
        #: The texts of a tape that aren't what is on the disk by now, by numbers from 1.
        self._texts: list[str] = []
        self._handlers: dict[str, Callable[[Request], Body | None]] = {
            "initialize": self._initialize,
            "launch": self._launch,
            "setBreakpoints": self._set_breakpoints,
            "setExceptionBreakpoints": self._set_exception_breakpoints,
            "configurationDone": self._configuration_done,
            "threads": self._threads,
            "stackTrace": lambda r: self._stopped().stack_trace(_arguments(r, dap_wire.StackTrace)),
            "scopes": lambda r: self._stopped().scopes(_arguments(r, dap_wire.Scopes).frame_id),
            "variables": lambda r: self._stopped().variables(
                _arguments(r, dap_wire.Variables).variables_reference
            ),
            "setVariable": lambda r: self._stopped().set_variable(_arguments(r, dap_wire.SetVariable)),
            "evaluate": lambda r: self._stopped().evaluate(_arguments(r, dap_wire.Evaluate)),
            "exceptionInfo": self._exception_info,
            "continue": self._continue,
            "next": lambda r: self._go(r, engine.over),
            "stepIn": lambda r: self._go(r, engine.into),
            "stepOut": lambda r: self._go(r, engine.out),
            "stepBack": lambda r: self._back(r, engine.over),
            "reverseContinue": lambda r: self._back(r, None),
            "source": self._source,
            "pause": self._pause,
            "terminate": self._terminate,
            "disconnect": self._disconnect,
        }

    def serve(self) -> None:
        """Handle requests until the client leaves; what becomes of the program then is its decision."""
        while not self._left:
            request = self._wire.read()
            if request is None:
                self._leave(terminate=True)
                return
            self._handle(request)

    def _handle(self, request: Request) -> None:
        """Respond to a request, then do what has to come after the response."""
        handler = self._handlers.get(request.command)
        try:
            if handler is None:
                raise RequestError(f"`{request.command}` is not supported")
            body = handler(request)
        except (RequestError, EvaluationError) as error:
            self._wire.refuse(request, str(error))
        except NotStopped:
            self._wire.refuse(request, "the program is running")
        except (OSError, SourceFault, ManifestError, TapeError) as error:
            self._wire.refuse(request, console.error_text(error))
        else:
            self._wire.respond(request, body)
        after, self._afterwards = self._afterwards, []
        for action in after:
            action()

    # --- from the start to the first statement ----------------------------------------------------

    def _initialize(self, request: Request) -> Body:
        self._settings = _arguments(request, dap_wire.Initialize)
        return _CAPABILITIES

    def _launch(self, request: Request) -> None:
        if self._program is not None:
            raise RequestError("a program is being debugged already")
        wanted = _arguments(request, dap_wire.Launch)
        if wanted.cwd is not None:
            os.chdir(wanted.cwd)
        what = wanted.program if wanted.tape is None else wanted.tape
        if what is None or (wanted.program is not None and wanted.tape is not None):
            raise RequestError("launch needs `program`, or `tape`")
        if not os.path.isfile(what):
            raise RequestError(f"{what}: No such file")
        tape = None if wanted.tape is None else open_tape(wanted.tape)
        os.environ.update(wanted.env)
        # Looked up whenever the program writes, so this is where its output goes.
        sys.stdout, sys.stderr = Output(self._wire, "stdout"), Output(self._wire, "stderr")
        if tape is None:
            assert wanted.program is not None
            launch = engine.Launch(
                wanted.program,
                wanted.args,
                wanted.skill_dirs,
                wanted.llm_mock,
                stop_on_entry=wanted.stop_on_entry,
            )
            self._program = engine.Program(launch, self._on_stop, self._on_end)
        else:
            self._program = TapeProgram(tape, self._on_stop, self._on_end, stop_on_entry=wanted.stop_on_entry)
            capabilities = {"supportsStepBack": True, "supportsSetVariable": False}
            self._afterwards.append(lambda: self._wire.event("capabilities", {"capabilities": capabilities}))
        self._no_debug = wanted.no_debug
        self._afterwards.append(lambda: self._wire.event("initialized"))

    def _set_breakpoints(self, request: Request) -> Body:
        wanted = _arguments(request, dap_wire.SetBreakpoints)
        before = 1 - self._first_line
        lines = [(point.line + before, point.condition or None) for point in wanted.breakpoints]
        found = self._running().engine.breakpoints.replace(wanted.source.path, lines)
        return {"breakpoints": [self._breakpoint(point) for point in found]}

    def _breakpoint(self, point: Breakpoint | None) -> Body:
        if point is None:
            return {"verified": False, "message": "no statement at or below this line"}
        line = point.line - 1 + self._first_line
        return {"id": point.id, "verified": True, "line": line, "source": {"path": point.file}}

    def _set_exception_breakpoints(self, request: Request) -> None:
        filters = _arguments(request, dap_wire.SetExceptionBreakpoints).filters
        which = [name for name in ("all", "uncaught") if name in filters]
        self._running().engine.breakpoints.failures = which[0] if which else None

    def _configuration_done(self, request: Request) -> None:
        if self._no_debug:
            self._running().engine.detach()
        self._afterwards.append(self._running().start)

    # --- in the program's thread ------------------------------------------------------------------

    def _on_stop(self, stop: Stop) -> None:
        engine = self._running().engine
        first_column = int(self._settings.columns_start_at1)
        self._inspection = Inspection(engine, stop, self._first_line, first_column, self._reference)
        body: Body = {
            "reason": stop.reason,
            "threadId": engine.number_of(stop.task),
            "allThreadsStopped": True,
            "hitBreakpointIds": [stop.breakpoint.id] if stop.breakpoint else [],
        }
        if stop.reason == "end":
            body["description"] = f"the recorded run has ended with status {stop.text}"
        elif stop.text:
            body["text"] = stop.text
        if stop.text and stop.breakpoint:
            self._wire.event("output", {"category": "important", "output": stop.text + "\n"})
        self._wire.event("stopped", body)

    def _on_end(self, status: int) -> None:
        self._inspection = None
        self._wire.event("exited", {"exitCode": status})
        self._wire.event("terminated")

    # --- a program that is stopped, or runs -------------------------------------------------------

    @property
    def _first_line(self) -> int:
        return int(self._settings.lines_start_at1)

    def _running(self) -> engine.Threaded:
        if self._program is None:
            raise RequestError("no program has been launched")
        return self._program

    def _stopped(self) -> Inspection:
        if self._inspection is None:
            raise NotStopped
        return self._inspection

    def _threads(self, request: Request) -> Body:
        """The tasks; while the program runs, only the one that is always there can be named."""
        if self._inspection is None:
            return {"threads": [{"id": 1, "name": "task_root"}]}
        return self._inspection.threads()

    def _exception_info(self, request: Request) -> Body:
        stop = self._stopped().stop
        if stop.reason != "exception":
            raise RequestError("the program has not stopped at a failure")
        mode = "always" if self._running().engine.breakpoints.failures == "all" else "unhandled"
        return {"exceptionId": "failure", "description": stop.text, "breakMode": mode}

    def _continue(self, request: Request) -> Body:
        self._go(request, None)
        return {"allThreadsContinued": True}

    def _go(self, request: Request, make: MakeStep | None) -> None:
        inspection = self._stopped()
        task = inspection.task(_arguments(request, dap_wire.OfThread).thread_id)
        engine = self._running().engine
        self._inspection = None
        self._afterwards.append(lambda: engine.resume(make, task))

    def _back(self, request: Request, make: MakeStep | None) -> None:
        inspection = self._stopped()
        task = inspection.task(_arguments(request, dap_wire.OfThread).thread_id)
        engine = self._running().engine
        if not isinstance(engine, TapeEngine):
            raise RequestError("only a recorded run goes back: launch with `tape`")
        self._inspection = None
        self._afterwards.append(lambda: engine.back(make, task))

    def _source(self, request: Request) -> Body:
        number = _arguments(request, dap_wire.SourceText).source_reference
        if not 0 < number <= len(self._texts):
            raise RequestError(f"there is no source {number}")
        return {"content": self._texts[number - 1]}

    def _reference(self, path: str) -> int:
        """Return the number of the text that a tape has of a file, 0 where the disk has the same."""
        engine = self._running().engine
        text = engine.texts.get(path) if isinstance(engine, TapeEngine) else None
        if text is None:
            return 0
        with suppress(OSError):
            if text_of(path) == text:
                return 0
        if text not in self._texts:
            self._texts.append(text)
        return self._texts.index(text) + 1

    def _pause(self, request: Request) -> None:
        if self._inspection is None:
            self._running().engine.pause()

    # --- the end ----------------------------------------------------------------------------------

    def _terminate(self, request: Request) -> None:
        engine = self._running().engine
        self._inspection = None
        self._afterwards.append(engine.end)

    def _disconnect(self, request: Request) -> None:
        terminate = _arguments(request, dap_wire.Disconnect).terminate_debuggee
        self._afterwards.append(lambda: self._leave(terminate))

    def _leave(self, terminate: bool) -> None:
        """End the program, or let it go on to its own end with nobody watching."""
        self._left = True
        self._wire.close()
        if self._program is None:
            return
        if terminate:
            self._program.engine.end()
            self._program.wait(_GRACE)
        else:
            self._program.engine.detach()
            self._program.wait()


def _arguments(request: Request, kind: type[Kind]) -> Kind:
    arguments = request.arguments or {}
    try:
        return msgspec.convert(arguments, kind)
    except msgspec.ValidationError:
        raise RequestError(mismatch(arguments, kind)) from None
