"""What can be typed while a program is stopped, without the terminal: lines in, text out. Spec: 09 §15.5."""

from __future__ import annotations

import os.path
import re
from typing import TYPE_CHECKING

from harnpy.cli.console import one_line, paint
from harnpy.cli.debugger import steps
from harnpy.cli.debugger.evaluate import EvaluationError
from harnpy.cli.debugger.values import parts, short
from harnpy.cli.repl import session_views
from harnpy.cli.repl.shell import is_expression
from harnpy.cli.show import error_text
from harnpy.cli.show.tables import show
from harnpy.syntax.errors import SourceFault
from harnpy.vm.values.objects import Builtin, Fn

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from harnpy.cli.debugger.engine import Engine, MakeStep, Stop
    from harnpy.cli.debugger.names import Names
    from harnpy.cli.debugger.stack import Call
    from harnpy.session.registry import SessionRegistry
    from harnpy.vm.run.tasks.task import Task

HELP = """\
  c                continue
  n                step over: to the next statement of this function
  s                step into the functions that are called
  o                step out: to the caller
  b                the breakpoints
  b [FILE:]LINE [if CONDITION]
                   stop at the first statement at or below a line
  d N              delete breakpoint N
  catch WHICH      stop at failures: all, uncaught or none
  w                where: the calls of this task
  f N              look at call N of them
  l [LINE]         the source around the current line, or around LINE
  v                the variables
  p EXPR           the value of an expression; `p x = 1` assigns
  t                the tasks
  t N              look at task N
  session          the sessions that are open
  session ID       one of them in full; the beginning of its id will do
  q                end the program and leave
  help             this text

An empty line repeats c, n, s or o. Ctrl+C stops a program that runs."""

_REASONS = {"entry": "the start", "step": "a step", "pause": "a pause"}
_BREAKPOINT = re.compile(r"(?:(?P<file>.+):)?(?P<line>\d+)(?:\s+if\s+(?P<condition>.+))?")
#: How many lines of source are shown above and below the current one.
_AROUND = 4

_NAMES = {
    "c": "continue", "n": "next", "s": "step", "o": "out", "b": "break", "d": "delete", "w": "where",
    "f": "frame", "l": "list", "v": "variables", "p": "print", "t": "tasks", "q": "quit", "h": "help",
    "?": "help", "sessions": "session",
}  # fmt: skip


class WrongInput(Exception):
    """A command can't be understood or done; the message says why."""


class Commands:
    """``done`` becomes true when the user leaves; ``out`` is where the answers go."""

    def __init__(self, engine: Engine, out: TextIO) -> None:
        self.done = False
        self._engine = engine
        self._out = out
        self._last = ""
        self._task: Task | None = None
        self._calls: list[Call] = []
        self._frame = 0
        self._actions: dict[str, Callable[[str], None]] = {
            "continue": lambda rest: self._go(None, rest),
            "next": lambda rest: self._go(steps.over, rest),
            "step": lambda rest: self._go(steps.into, rest),
            "out": lambda rest: self._go(steps.out, rest),
            "break": self._break,
            "delete": self._delete,
            "catch": self._catch,
            "where": self._where,
            "frame": self._choose_frame,
            "list": self._list,
            "variables": self._variables,
            "print": self._print,
            "tasks": self._tasks,
            "session": self._session,
            "quit": self._quit,
            "help": lambda rest: self._say(HELP),
        }

    def words(self) -> list[str]:
        """What a command can begin with."""
        return sorted({*self._actions, *_NAMES})

    def stopped(self, stop: Stop) -> None:
        """Show where the program has stopped, and look at its innermost call."""
        self._look_at(stop.task)
        what = f"breakpoint {stop.breakpoint.id}" if stop.breakpoint else _REASONS.get(stop.reason)
        if stop.reason == "exception":
            what = f"failure: {one_line(stop.text)}"
        self._say(f"stopped at {self._place()}, {what}{self._task_note(stop.task)}")
        if stop.breakpoint and stop.text:
            self._say(f"error: {stop.text}")
        self._list("")

    def feed(self, line: str) -> None:
        """Do one command; what is wrong with it is its answer."""
        word, _, rest = line.strip().partition(" ")
        if not word and not self._last:
            return
        name = _NAMES.get(word, word) if word else self._last
        self._last = name if name in ("continue", "next", "step", "out") else ""
        action = self._actions.get(name)
        try:
            if action is None:
                raise WrongInput(f"unknown command `{one_line(word)}` (try `help`)")
            action(rest.strip())
        except (WrongInput, EvaluationError) as error:
            self._say(f"error: {error}")

    # --- going on ---------------------------------------------------------------------------------

    def _go(self, make: MakeStep | None, rest: str) -> None:
        if rest:
            raise WrongInput("this command takes no argument (try `help`)")
        self._engine.resume(make, self._task)

    def _quit(self, rest: str) -> None:
        self.done = True

    # --- breakpoints ------------------------------------------------------------------------------

    def _break(self, rest: str) -> None:
        if not rest:
            self._breakpoints()
            return
        found = _BREAKPOINT.fullmatch(rest)
        if found is None:
            raise WrongInput("a breakpoint is `b LINE`, `b FILE:LINE` or `b LINE if CONDITION`")
        file = found["file"] or self._call().path
        try:
            point = self._engine.breakpoints.add(file, int(found["line"]), found["condition"])
        except (OSError, SourceFault) as error:
            raise WrongInput(error_text.text(error)) from None
        if point is None:
            raise WrongInput(f"{file} has no statement at or below line {found['line']}")
        moved = "" if point.line == int(found["line"]) else ", the next statement"
        self._say(f"breakpoint {point.id} at {_shown(point.file)}:{point.line}{moved}")

    def _breakpoints(self) -> None:
        points = list(self._engine.breakpoints)
        for point in points:
            condition = f" if {point.condition}" if point.condition else ""
            self._say(f"{point.id}  {_shown(point.file)}:{point.line}{condition}")
        failures = self._engine.breakpoints.failures
        if failures:
            self._say(f"failures: {failures}")
        if not points and not failures:
            self._say("no breakpoints")

    def _delete(self, rest: str) -> None:
        if not self._engine.breakpoints.remove(_number(rest, "d N")):
            raise WrongInput(f"there is no breakpoint {rest} (try `b`)")

    def _catch(self, rest: str) -> None:
        if rest not in ("all", "uncaught", "none"):
            raise WrongInput("failures to stop at are `catch all`, `catch uncaught` or `catch none`")
        self._engine.breakpoints.failures = None if rest == "none" else rest

    # --- where ------------------------------------------------------------------------------------

    def _look_at(self, task: Task) -> None:
        self._task, self._calls, self._frame = task, self._engine.calls(task), 0

    def _call(self) -> Call:
        if not self._calls:
            raise WrongInput("this task has no calls (try `t`)")
        return self._calls[self._frame]

    def _place(self) -> str:
        return _at(self._calls[self._frame]) if self._calls else "no statement"

    def _where(self, rest: str) -> None:
        if not self._calls:
            self._say("this task has not started")
        for i, call in enumerate(self._calls):
            mark = ">" if i == self._frame else " "
            self._say(f"{mark} {i}  {call.name} at {_at(call)}")

    def _choose_frame(self, rest: str) -> None:
        number = _number(rest, "f N")
        if number >= len(self._calls):
            raise WrongInput(f"there is no call {number} (try `w`)")
        self._frame = number
        self._say(f"{self._call().name} at {self._place()}")
        self._list("")

    def _list(self, rest: str) -> None:
        if not rest and not self._calls:
            return
        call = self._call()
        middle = _number(rest, "l LINE") if rest else call.line
        last = middle + _AROUND
        for line in range(max(middle - _AROUND, 1), last + 1):
            text = call.unit.lines.text(line)
            if text is not None:
                shown = (
                    f"{'>' if line == call.line else ' '} {line:>{len(str(last))}}  {_plain(text)}".rstrip()
                )
                self._say(paint(shown, "bold", self._out) if line == call.line else shown)

    # --- values -----------------------------------------------------------------------------------

    def _variables(self, rest: str) -> None:
        call = self._call()
        groups = [
            ("", self._engine.locals(call)),
            ("captured", self._engine.captured(call)),
            ("of the file", self._engine.of_file(call)),
        ]
        shown: set[str] = set()
        for title, names in groups:
            lines = self._engine.ask(lambda names=names: _lines(names, shown))  # type: ignore[misc]
            if title and lines:
                self._say(f"{title}:")
            for line in lines:
                self._say(f"  {line}")
        if not shown:
            self._say("no variables")

    def _print(self, rest: str) -> None:
        if not rest:
            raise WrongInput("`p` needs an expression, such as `p x + 1`")
        value = self._engine.evaluate(self._call(), rest)
        if not is_expression(rest):
            return
        for line in self._engine.ask(lambda: [short(value), *_opened(value)]):
            self._say(line)

    # --- tasks and sessions -----------------------------------------------------------------------

    def _tasks(self, rest: str) -> None:
        tasks = self._engine.tasks()
        if not rest:
            for task in tasks:
                calls = self._engine.calls(task)
                place = f"{calls[0].name} at {_at(calls[0])}" if calls else "not started"
                mark = ">" if task is self._task else " "
                self._say(f"{mark} {self._engine.number_of(task)}  {task.id()}  {place}")
            return
        number = _number(rest, "t N")
        found = [task for task in tasks if self._engine.number_of(task) == number]
        if not found:
            raise WrongInput(f"there is no task {number} (try `t`)")
        self._look_at(found[0])
        self._where("")

    def _task_note(self, task: Task) -> str:
        return "" if task.parent is None else f", in task {self._engine.number_of(task)}"

    def _session(self, rest: str) -> None:
        sessions = self._live_sessions()
        if not rest:
            show(self._engine.ask(lambda: session_views.table(sessions)))
            return
        ids = self._engine.ask(sessions.ids)
        found = [id for id in ids if id == rest] or [id for id in ids if id.startswith(rest)]
        if len(found) != 1:
            count = "no session begins" if not found else f"{len(found)} sessions begin"
            raise WrongInput(f"{count} with `{rest}` (try `session`)")
        snapshot = self._engine.ask(lambda: sessions.snapshot_value(found[0]))
        show(session_views.transcript(snapshot or {}))

    def _live_sessions(self) -> SessionRegistry:
        from harnpy.builtins.bridge.live_sessions import sessions_of

        return sessions_of(self._engine.vm)

    def _say(self, text: str) -> None:
        self._out.write(text + "\n")


def _number(text: str, usage: str) -> int:
    if not text.isdecimal():
        raise WrongInput(f"`{usage}` needs a number")
    return int(text)


def _at(call: Call) -> str:
    return f"{_shown(call.path)}:{call.line}"


def _shown(path: str) -> str:
    """A path from the working directory, if it is below that."""
    below = os.path.relpath(path) if os.path.isabs(path) else path
    return path if below.startswith(os.pardir) else below


def _plain(text: str) -> str:
    return one_line(text.replace("\t", "    "))


def _lines(names: Names, shown: set[str]) -> list[str]:
    """Names with their values, unless something inner has the name. Functions would bury the rest."""
    found = []
    for name, binding in names.items():
        if name not in shown and type(binding.value) not in (Fn, Builtin):
            found.append(f"{name} = {short(binding.value)}")
            shown.add(name)
    return found


def _opened(value: object) -> list[str]:
    """The parts of a value that is too long for one line."""
    if len(short(value)) < 80:
        return []
    return [f"  {name} = {short(part)}" for name, part in parts(value)]
