"""Runs a program that is walked, blocks it at breakpoints and steps, and inspects it there. Spec: 09 §15.

Two threads meet here. The program's calls `statement` and `failed`, and while it is stopped executes the
requests of the other. A face, in the other, calls the methods below "for the face".
"""

from __future__ import annotations

import sys
import threading
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from harnpy import Vm
from harnpy.cli import FAILED, INTERRUPTED, console
from harnpy.cli.commands.run import exit_status
from harnpy.cli.debugger import frames
from harnpy.cli.debugger.breakpoints import SILENT, Breakpoint, Breakpoints
from harnpy.cli.debugger.frames import Call, EvaluationError, Names, activations, calls, evaluate, tasks
from harnpy.cli.model_fixtures import replay
from harnpy.cli.project_setup import bind_project
from harnpy.vm.errors import ExitRequest, Leaving
from harnpy.vm.run.backtrace import caught
from harnpy.vm.values import display
from harnpy.vm.walk.activation import Activation, Walker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from harnpy.syntax import ast
    from harnpy.vm.run.scheduler import Bridge, Scheduler
    from harnpy.vm.run.tasks import Task

    Value = Any
    #: Makes the step of a task that is in some calls: `into`, `over` or `out`.
    MakeStep = Callable[[Task, Sequence[Activation]], "Step"]

# Steps: at which statement a program that goes on stops again. Spec: 09 §15.3.
#
# A step belongs to a task: what other tasks do meanwhile doesn't end it. When its task has ended, the next
# statement of any task does.


class Step:
    """``within`` are the calls in which the step ends; None: in any call."""

    def __init__(self, task: Task, within: Sequence[Activation] | None) -> None:
        self._task = task
        self._within = within

    def ends_at(self, a: Activation, task: Task) -> bool:
        if self._task.done:
            return True
        if task is not self._task:
            return False
        # A `defer` block is a run of its own, on the variables of its function.
        return self._within is None or any(call.slots is a.slots for call in self._within)


def into(task: Task, calls: Sequence[Activation]) -> Step:
    """To the task's next statement, in whatever function it is."""
    return Step(task, None)


def over(task: Task, calls: Sequence[Activation]) -> Step:
    """To the next statement of the innermost function or of its callers."""
    return Step(task, calls)


def out(task: Task, calls: Sequence[Activation]) -> Step:
    """To the next statement of the callers."""
    return Step(task, calls[1:])


Answer = TypeVar("Answer")


class Terminated(Leaving):
    """Ends the program because the user said so."""


class NotStopped(Exception):
    """The program runs, so nothing can be asked about it."""


@dataclass(frozen=True)
class Stop:
    """The reason for a stop: ``"entry"``, ``"breakpoint"``, ``"step"``, ``"pause"`` or ``"exception"``.

    ``text`` says more: what failed, or why a condition could not be evaluated.
    """

    reason: str
    task: Task
    text: str = ""
    breakpoint: Breakpoint | None = None


class Engine:
    """One program being debugged. ``on_stop`` is called in its thread whenever it has stopped."""

    vm: Vm
    _scheduler: Scheduler

    def __init__(self, on_stop: Callable[[Stop], object], stop_on_entry: bool) -> None:
        self.breakpoints = Breakpoints()
        self._on_stop = on_stop
        self._entering = stop_on_entry
        self._step: Step | None = None
        self._pausing = threading.Event()
        self._ending = False
        self._busy = False
        """Whether the program's thread evaluates an expression: nothing stops in there."""
        self._stop: Stop | None = None
        self._inbox: SimpleQueue[Callable[[], bool]] = SimpleQueue()
        self._files: dict[Walker, Activation] = {}
        """The run of each file's own statements."""
        self._numbers: dict[str, int] = {"task_root": 1}
        self._next_number = count(2)

    def attach(self, vm: Vm) -> None:
        """Observe what this Vm runs."""
        self.vm, self._scheduler = vm, vm.tasks
        self._files = {}
        vm.observer = self
        self._watch_waits()

    # --- in the program's thread: where it stops --------------------------------------------------

    def statement(self, a: Activation, node: ast.Node) -> None:
        if a.function.parent is None:
            self._files[a.walker] = a
        if self._busy:
            return
        if self._ending:
            raise Terminated
        if not isinstance(node, SILENT):
            stop = self._due(a, node)
            if stop:
                self._block(stop)

    def done(self, a: Activation, node: ast.Node) -> None:
        """Nothing is to be done: the next statement stops it."""

    def failed(self, a: Activation, error: BaseException) -> None:
        """A failure passes through many statements; it stops the program at the first."""
        wanted = self.breakpoints.failures
        if self._busy or wanted is None or _was_seen(error):
            return
        value = caught(error)
        if wanted == "all" or not self._is_caught(value):
            self._block(Stop("exception", self._scheduler.current, display(value)))

    def _due(self, a: Activation, node: ast.Node) -> Stop | None:
        """The stop that a statement is due for."""
        task = self._scheduler.current
        if self._pausing.is_set():
            return Stop("pause", task)
        point = self.breakpoints.at(a.unit, node.start)
        if point is not None:
            holds, text = self._holds(a, point)
            if holds:
                return Stop("breakpoint", task, text, point)
        if self._entering:
            return Stop("entry", task)
        return Stop("step", task) if self._step and self._step.ends_at(a, task) else None

    def _holds(self, a: Activation, point: Breakpoint) -> tuple[bool, str]:
        """Return whether the condition of a breakpoint holds. One that fails does, and the text says why."""
        if point.condition is None:
            return True, ""
        try:
            return bool(self._evaluated(a, point.condition)), ""
        except EvaluationError as error:
            return True, f"condition `{point.condition}`: {error}"

    def _is_caught(self, value: Value) -> bool:
        """Return whether a block around the current place, in this task, catches a failure."""
        stack = activations(self._scheduler, self._scheduler.current)
        return any(takes(value) for a in stack for takes in a.catches)

    def _watch_waits(self) -> None:
        """A pause, or the end, comes at once while no task can go on."""
        scheduler = self._scheduler
        open_bridge = scheduler.open_bridge

        def idle(seconds: float | None) -> None:
            self._pausing.wait(seconds)
            self._pause_in_wait()

        def open_watched(tasks: Scheduler, awaitable: Awaitable[Any]) -> Bridge:
            """From here on tasks wait in an asyncio loop. `pause` looks into it, unless it came before."""
            bridge = open_bridge(tasks, awaitable)
            rest = tasks.idle

            def idle_in_loop(seconds: float | None) -> None:
                self._pause_in_wait()
                rest(seconds)

            tasks.idle = idle_in_loop
            return bridge

        scheduler.idle, scheduler.open_bridge = idle, open_watched

    def _pause_in_wait(self) -> None:
        if not self._pausing.is_set():
            return
        # Waiting is what the root does for all tasks.
        self._scheduler.current = self._scheduler.root
        if self._ending:
            raise Terminated
        self._block(Stop("pause", self._scheduler.root))

    def _pause_in_loop(self, bridge: Any) -> None:
        """The same while all tasks wait in an asyncio loop, which keeps exceptions to itself."""
        try:
            self._pause_in_wait()
        except Terminated as end:
            self._scheduler.fatal = end
            bridge.wake()

    def _block(self, stop: Stop) -> None:
        """Do what the face asks for until it lets the program go on."""
        self._pausing.clear()
        self._entering, self._step = False, None
        self._stop = stop
        self._on_stop(stop)
        while not self._inbox.get()():
            pass
        if self._ending:
            raise Terminated

    # --- for the face: going on -------------------------------------------------------------------

    def resume(self, make: MakeStep | None = None, task: Task | None = None) -> None:
        """Let the program go on, to the end of a step of ``task`` if there is one. Raises NotStopped."""
        stop = self._stopped()

        def go() -> bool:
            stepping = task or stop.task
            if make is not None:
                self._step = make(stepping, activations(self._scheduler, stepping))
            return True

        self._stop = None
        self._inbox.put(go)

    def pause(self) -> None:
        """Stop the program at its next statement, or where it waits."""
        self._pausing.set()
        bridge: Any = self._scheduler.bridge
        if bridge is not None:
            # The program may be closing the loop just now: then it doesn't wait any more.
            with suppress(RuntimeError):
                bridge.loop.call_soon_threadsafe(self._pause_in_loop, bridge)

    def end(self) -> None:
        """End the program at its next statement, or where it waits or has stopped."""
        self._ending = True
        if self._stop is not None:
            self.resume()
        else:
            self.pause()

    def detach(self) -> None:
        """Let the program go on, and never stop it again."""
        self.breakpoints.clear()
        self._pausing.clear()
        self._step, self._entering = None, False
        if self._stop is not None:
            self.resume()

    @property
    def is_stopped(self) -> bool:
        return self._stop is not None

    def _stopped(self) -> Stop:
        if self._stop is None:
            raise NotStopped
        return self._stop

    # --- for the face: looking into a stopped program ---------------------------------------------

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """Return or raise in this thread what ``question()`` does in the program's. Raises NotStopped."""
        self._stopped()
        answer: Future[Answer] = Future()

        def work() -> bool:
            try:
                answer.set_result(question())
            except BaseException as error:
                answer.set_exception(error)
            return False

        self._inbox.put(work)
        return answer.result()

    def tasks(self) -> list[Task]:
        return self.ask(lambda: tasks(self._scheduler))

    def number_of(self, task: Task) -> int:
        """A task's number; that of the root is 1."""
        id = task.id()
        if id not in self._numbers:
            self._numbers[id] = next(self._next_number)
        return self._numbers[id]

    def calls(self, task: Task) -> list[Call]:
        """The calls that a task is in, innermost first."""
        return self.ask(lambda: calls(self._scheduler, task))

    def locals(self, call: Call) -> Names:
        return self.ask(lambda: frames.local(call.activation))

    def captured(self, call: Call) -> Names:
        return self.ask(lambda: frames.captured(call.activation))

    def of_file(self, call: Call) -> Names:
        """Return what the statements of the call's file have bound, unless the call is theirs."""
        return self.ask(lambda: self._of_file(call.activation))

    def evaluate(self, call: Call, source: str) -> Value:
        """The value of an expression in a call. Raises EvaluationError."""
        return self.ask(lambda: self._evaluated(call.activation, source))

    def _of_file(self, a: Activation) -> Names:
        top = self._files.get(a.walker)
        return {} if top is None or top is a else frames.of_file(top)

    def _evaluated(self, a: Activation, source: str) -> Value:
        seen = self._of_file(a) | frames.captured(a) | frames.local(a)
        before, self._busy = self._busy, True
        try:
            return evaluate(a, seen, source)
        finally:
            self._busy = before


def _was_seen(error: BaseException) -> bool:
    """Return whether a failure has passed through a statement inside the one that it now leaves."""
    trace = error.__traceback__
    trace = trace.tb_next if trace else None
    while trace is not None:
        if trace.tb_frame.f_code is Activation.observed.__code__:
            return True
        trace = trace.tb_next
    return False


# The program being debugged, in a thread of its own. Spec: 09 §15.1.


#: Deep Harn recursion needs as much C stack as the main thread usually has.
_STACK = 16 * 1024 * 1024


@dataclass(frozen=True)
class Launch:
    """The program to debug: a file and its arguments, and what `harnpy run` takes by the same names."""

    file: str
    args: Sequence[str] = ()
    skill_dirs: Sequence[str] = ()
    llm_mock: str | None = None
    stop_on_entry: bool = field(default=True, kw_only=True)


class Threaded:
    """A program in a thread of its own. ``on_end`` is called there, with the exit status."""

    engine: Engine

    def __init__(self, on_end: Callable[[int], object]) -> None:
        self._on_end = on_end
        # A daemon: a process whose user has left doesn't wait for the program.
        self._thread = threading.Thread(target=self._run, name="program", daemon=True)

    def start(self) -> None:
        before = threading.stack_size(_STACK)
        try:
            self._thread.start()
        finally:
            threading.stack_size(before)

    def wait(self, seconds: float | None = None) -> None:
        """Return when the program has ended, or ``seconds`` later."""
        self._thread.join(seconds)

    def _run(self) -> None:
        status = FAILED
        try:
            status = self._status()
        finally:
            sys.stdout.flush()
            self._on_end(status)

    def _status(self) -> int:
        """Run the program and return the exit status; a failure is shown as `harnpy run` shows it."""
        raise NotImplementedError


class Program(Threaded):
    """``on_stop`` is called in the program's thread, too."""

    def __init__(
        self, launch: Launch, on_stop: Callable[[Stop], object], on_end: Callable[[int], object]
    ) -> None:
        super().__init__(on_end)
        self._launch = launch
        self.vm = Vm(evaluator="walk")
        self.engine = Engine(on_stop, launch.stop_on_entry)
        self.engine.attach(self.vm)
        bind_project(self.vm, launch.file, launch.skill_dirs)

    def _status(self) -> int:
        launch = self._launch
        try:
            if launch.llm_mock is not None:
                replay(self.vm, launch.llm_mock)
            return exit_status(self.vm.run_file(launch.file, args=launch.args), self.vm.failures)
        except ExitRequest as request:
            return request.code
        except Terminated:
            return INTERRUPTED
        except Exception as error:
            sys.stdout.flush()
            sys.stderr.write(console.rendered_error(error, sys.stderr))
            return FAILED
