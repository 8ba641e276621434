"""A debug adapter: does what a client requests, and reports what the program does. Spec: 09 §15.6.

Requests are handled one after the other in the thread that called `serve`. The program's thread writes
events: stops, output, the end.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from harnpy.cli.debugger import program, steps
from harnpy.cli.debugger.dap import messages
from harnpy.cli.debugger.dap.inspection import Inspection, RequestError
from harnpy.cli.debugger.dap.output import Output
from harnpy.cli.debugger.engine import NotStopped
from harnpy.cli.debugger.evaluate import EvaluationError
from harnpy.cli.show import error_text
from harnpy.syntax.errors import SourceFault

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.cli.debugger.breakpoints import Breakpoint
    from harnpy.cli.debugger.dap.wire import Request, Wire
    from harnpy.cli.debugger.engine import MakeStep, Stop

    Body = dict[str, Any]

Kind = TypeVar("Kind", bound=messages.Arguments)

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
        self._program: program.Program | None = None
        self._settings = messages.Initialize()
        self._inspection: Inspection | None = None
        self._afterwards: list[Callable[[], object]] = []
        self._no_debug = False
        self._left = False
        self._handlers: dict[str, Callable[[Request], Body | None]] = {
            "initialize": self._initialize,
            "launch": self._launch,
            "setBreakpoints": self._set_breakpoints,
            "setExceptionBreakpoints": self._set_exception_breakpoints,
            "configurationDone": self._configuration_done,
            "threads": self._threads,
            "stackTrace": lambda r: self._stopped().stack_trace(_arguments(r, messages.StackTrace)),
            "scopes": lambda r: self._stopped().scopes(_arguments(r, messages.Scopes).frame_id),
            "variables": lambda r: self._stopped().variables(
                _arguments(r, messages.Variables).variables_reference
            ),
            "setVariable": lambda r: self._stopped().set_variable(_arguments(r, messages.SetVariable)),
            "evaluate": lambda r: self._stopped().evaluate(_arguments(r, messages.Evaluate)),
            "exceptionInfo": self._exception_info,
            "continue": self._continue,
            "next": lambda r: self._step(r, steps.over),
            "stepIn": lambda r: self._step(r, steps.into),
            "stepOut": lambda r: self._step(r, steps.out),
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
        except (RequestError, EvaluationError, msgspec.ValidationError) as error:
            self._wire.refuse(request, str(error))
        except NotStopped:
            self._wire.refuse(request, "the program is running")
        except (OSError, SourceFault) as error:
            self._wire.refuse(request, error_text.text(error))
        else:
            self._wire.respond(request, body)
        after, self._afterwards = self._afterwards, []
        for action in after:
            action()

    # --- from the start to the first statement ----------------------------------------------------

    def _initialize(self, request: Request) -> Body:
        self._settings = _arguments(request, messages.Initialize)
        return _CAPABILITIES

    def _launch(self, request: Request) -> None:
        if self._program is not None:
            raise RequestError("a program is being debugged already")
        wanted = _arguments(request, messages.Launch)
        if wanted.cwd is not None:
            os.chdir(wanted.cwd)
        if not os.path.isfile(wanted.program):
            raise RequestError(f"{wanted.program}: No such file")
        os.environ.update(wanted.env)
        # Looked up whenever the program writes, so this is where its output goes.
        sys.stdout, sys.stderr = Output(self._wire, "stdout"), Output(self._wire, "stderr")
        launch = program.Launch(
            wanted.program,
            wanted.args,
            wanted.skill_dirs,
            wanted.llm_mock,
            stop_on_entry=wanted.stop_on_entry,
        )
        self._program = program.Program(launch, self._on_stop, self._on_end)
        self._no_debug = wanted.no_debug
        self._afterwards.append(lambda: self._wire.event("initialized"))

    def _set_breakpoints(self, request: Request) -> Body:
        wanted = _arguments(request, messages.SetBreakpoints)
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
        filters = _arguments(request, messages.SetExceptionBreakpoints).filters
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
        self._inspection = Inspection(engine, stop, self._first_line, first_column)
        body: Body = {
            "reason": stop.reason,
            "threadId": engine.number_of(stop.task),
            "allThreadsStopped": True,
            "hitBreakpointIds": [stop.breakpoint.id] if stop.breakpoint else [],
        }
        if stop.text:
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

    def _running(self) -> program.Program:
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

    def _step(self, request: Request, make: MakeStep) -> None:
        self._go(request, make)

    def _go(self, request: Request, make: MakeStep | None) -> None:
        inspection = self._stopped()
        task = inspection.task(_arguments(request, messages.OfThread).thread_id)
        engine = self._running().engine
        self._inspection = None
        self._afterwards.append(lambda: engine.resume(make, task))

    def _pause(self, request: Request) -> None:
        if self._inspection is None:
            self._running().engine.pause()

    # --- the end ----------------------------------------------------------------------------------

    def _terminate(self, request: Request) -> None:
        engine = self._running().engine
        self._inspection = None
        self._afterwards.append(engine.end)

    def _disconnect(self, request: Request) -> None:
        terminate = _arguments(request, messages.Disconnect).terminate_debuggee
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
    return msgspec.convert(request.arguments or {}, kind)
