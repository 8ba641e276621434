"""The debugger at a terminal: the commands `harnpy debug` and `dap`, and the lines typed at a stop.

Spec: 09 §15.1, §15.5.
"""

from __future__ import annotations

import os
import os.path
import re
import signal
import sys
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TextIO

import click

from harnpy.cli import FAILED, INTERRUPTED, Stopped, console, session_views
from harnpy.cli.command_options import trust_option
from harnpy.cli.console import one_line, paint
from harnpy.cli.debugger import engine as steps
from harnpy.cli.debugger.engine import Launch, Program
from harnpy.cli.debugger.frames import Call, EvaluationError, Names, parts, short
from harnpy.cli.debugger.rewinding import TapeEngine, TapeProgram, UnknownPlace, open_tape, shown_path
from harnpy.cli.repl import is_expression
from harnpy.cli.tables import show
from harnpy.syntax.diagnostic import SourceFault
from harnpy.tape.description import described, task_of
from harnpy.tape.tapes import TapeError, names_tape
from harnpy.vm.values import Builtin, Fn

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from harnpy.cli.debugger.engine import Engine, MakeStep, Stop, Threaded
    from harnpy.session.registry import SessionRegistry
    from harnpy.tape import Tape
    from harnpy.tape.history import Effect
    from harnpy.vm.run.tasks import Task

# What can be typed while a program is stopped, without the terminal: lines in, text out. Spec: 09 §15.5.


HELP = """\
  c                continue
  n                step over: to the next statement of this function
  s                step into the functions that this statement calls
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
  session ID       one of them in full; the beginning of its id is enough

In a recorded run (`harnpy debug RUN.tape`) also:

  rn, rs, ro       back: over, into, out; what was printed stays on the screen
  rc               back to the last breakpoint before, or to the start
  goto effect N    to where effect N, or model call K, was asked for; to the end
  goto call K      (the same goes on and back)
  goto end
  effects          the effects so far
  who NAME         which statement changed a variable last, and from what
  who message N [SESSION]
                   which statement wrote message N of a session
  who file PATH    which effect wrote a file last

  q                end the program and leave
  help             this text

An empty line repeats the last step. Ctrl+C stops a running program."""

_REASONS = {"entry": "the start", "step": "a step", "pause": "a pause", "goto": "goto"}
_BREAKPOINT = re.compile(r"(?:(?P<file>.+):)?(?P<line>\d+)(?:\s+if\s+(?P<condition>.+))?")
#: How many lines of source are shown above and below the current one.
_AROUND = 4

_NAMES = {
    "c": "continue", "n": "next", "s": "step", "o": "out", "b": "break", "d": "delete", "w": "where",
    "f": "frame", "l": "list", "v": "variables", "p": "print", "t": "tasks", "q": "quit", "h": "help",
    "?": "help", "sessions": "session", "rn": "reverse-next", "rs": "reverse-step", "ro": "reverse-out",
    "rc": "reverse-continue",
}  # fmt: skip


#: What an empty line repeats.
_REPEATED = frozenset(
    {"continue", "next", "step", "out"} | {f"reverse-{step}" for step in ("continue", "next", "step", "out")}
)


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
            "reverse-continue": lambda rest: self._go_back(None, rest),
            "reverse-next": lambda rest: self._go_back(steps.over, rest),
            "reverse-step": lambda rest: self._go_back(steps.into, rest),
            "reverse-out": lambda rest: self._go_back(steps.out, rest),
            "goto": self._goto,
            "effects": self._effects,
            "who": self._who,
            "quit": self._quit,
            "help": lambda rest: self._say(HELP),
        }

    def words(self) -> list[str]:
        """Return the words that a command can begin with."""
        return sorted({*self._actions, *_NAMES})

    def stopped(self, stop: Stop) -> None:
        """Show where the program has stopped, and look at its innermost call."""
        self._look_at(stop.task)
        if stop.reason == "end":
            self._say(
                f"the recorded run has ended with status {stop.text}; `rn` and `rc` go back, `c` leaves"
            )
            return
        what = f"breakpoint {stop.breakpoint.id}" if stop.breakpoint else _REASONS.get(stop.reason)
        if stop.reason == "exception":
            what = f"failure: {one_line(stop.text)}"
        if stop.reason == "goto" and stop.text:
            what = f"before it {one_line(stop.text)}"
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
        self._last = name if name in _REPEATED else ""
        action = self._actions.get(name)
        try:
            if action is None:
                raise WrongInput(f"unknown command `{one_line(word)}` (try `help`)")
            action(rest.strip())
        except (WrongInput, EvaluationError, UnknownPlace) as error:
            self._say(f"error: {error}")

    # --- going on ---------------------------------------------------------------------------------

    def _go(self, make: MakeStep | None, rest: str) -> None:
        if rest:
            raise WrongInput("this command takes no argument (try `help`)")
        self._engine.resume(make, self._task)

    # --- going back, and who wrote something ------------------------------------------------------

    def _recorded(self) -> TapeEngine:
        if not isinstance(self._engine, TapeEngine):
            raise WrongInput(
                "only a recorded run goes back: record it with `harnpy run --record RUN.tape FILE`, then "
                "`harnpy debug RUN.tape`"
            )
        return self._engine

    def _go_back(self, make: MakeStep | None, rest: str) -> None:
        if rest:
            raise WrongInput("this command takes no argument (try `help`)")
        self._recorded().back(make, self._task)

    def _goto(self, rest: str) -> None:
        engine = self._recorded()
        what, _, number = rest.partition(" ")
        if rest == "end":
            engine.go_to("end")
            return
        if what not in ("effect", "call"):
            raise WrongInput("places to go to are `goto effect N`, `goto call K` and `goto end`")
        history = engine.history
        find = history.effect if what == "effect" else history.call
        effect = find(_number(number.strip(), f"goto {what} N"))
        if effect is None:
            last = history.effects[-1:] if what == "effect" else [e for e in history.effects if e.call][-1:]
            if not last:
                raise WrongInput(f"{history.tape.path} has no {what}s")
            count = last[0].number if what == "effect" else last[0].call
            raise WrongInput(f"there is no {what} {number}: the last one of {history.tape.path} is {count}")
        engine.go_to(effect)

    def _effects(self, rest: str) -> None:
        if rest:
            raise WrongInput("this command takes no argument (try `help`)")
        engine = self._recorded()
        effects = engine.history.effects_by(engine.now)
        for effect in effects:
            call = f", call {effect.call}" if effect.call else ""
            self._say(f"{effect.number}  {task_of(effect.key)}  {told(effect)}{call}")
        if not effects:
            self._say("no effects so far")

    def _who(self, rest: str) -> None:
        engine, frame, task = self._recorded(), self._frame, self._task
        try:
            self._say(who(engine, rest, self._calls[frame] if self._calls else None))
        finally:  # it stands in another replay now
            if task is not None:
                self._look_at(engine.task_like(task))
                self._frame = min(frame, max(len(self._calls) - 1, 0))

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
        at_end = isinstance(self._engine, TapeEngine) and not self._calls
        file = found["file"] or (self._recorded().entry if at_end else self._call().path)
        try:
            point = self._engine.breakpoints.add(file, int(found["line"]), found["condition"])
        except (OSError, SourceFault) as error:
            raise WrongInput(console.error_text(error)) from None
        if point is None:
            raise WrongInput(f"{file} has no statement at or below line {found['line']}")
        moved = "" if point.line == int(found["line"]) else ", the next statement"
        self._say(f"breakpoint {point.id} at {shown_path(point.file)}:{point.line}{moved}")

    def _breakpoints(self) -> None:
        points = list(self._engine.breakpoints)
        for point in points:
            condition = f" if {point.condition}" if point.condition else ""
            self._say(f"{point.id}  {shown_path(point.file)}:{point.line}{condition}")
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
            show(self._engine.ask(lambda: session_views.live_table(sessions)))
            return
        ids = self._engine.ask(sessions.ids)
        found = [id for id in ids if id == rest] or [id for id in ids if id.startswith(rest)]
        if len(found) != 1:
            count = "no session begins" if not found else f"{len(found)} sessions begin"
            raise WrongInput(f"{count} with `{rest}` (try `session`)")
        snapshot = self._engine.ask(lambda: sessions.snapshot_value(found[0]))
        show(session_views.live_transcript(snapshot or {}))

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
    return f"{shown_path(call.path)}:{call.line}"


def who(engine: TapeEngine, what: str, call: Call | None) -> str:
    """Return what wrote a variable that ``call`` sees, a message of a session, or a file, in words.

    Raises WrongInput and UnknownPlace.
    """
    kind, *rest = what.split(None, 1)[:2] or [""]
    if kind == "file" and rest:
        effect, writing, tool = engine.who_file(rest[0])
        of_tool = f", in a call of the tool {tool}" if tool is not None else ""
        return f"{writing.place}, in {writing.task}{of_tool}: effect {effect.number}, {told(effect)}"
    if kind == "message" and rest:
        number, _, session = rest[0].partition(" ")
        writing = engine.who_message(_number(number, "who message N"), session.strip())
        when = f"after model call {writing.call}" if writing.call else "before any model call"
        return f"{writing.place}, in {writing.task}, {when}"
    if not kind or rest:
        raise WrongInput("ask `who NAME`, `who message N [SESSION]` or `who file PATH`")
    if call is None:
        raise WrongInput("no function is running here, so no variable is visible")
    writing = engine.who_variable(call, kind)
    return f"{writing.place}, in {writing.task}: {kind} was {writing.before}, became {writing.after}"


def told(effect: Effect) -> str:
    """Return an effect in a few words."""
    by = f", of the process {effect.process}" if effect.process else ""
    return one_line(described((effect.key, effect.asked)) + by)


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


# The debugger at a terminal: a prompt whenever the program has stopped. Spec: 09 §15.5.


_PROMPT = "debug〉"
#: Seconds that a program has to end in when its user leaves.
_GRACE = 2.0
#: Seconds between two looks at what the user wants while the program runs.
_GLANCE = 0.1


class Terminal:
    """One program at the terminal, from its start to its end."""

    def __init__(self, what: Launch | Tape) -> None:
        self._events: SimpleQueue[Stop | int] = SimpleQueue()
        make: Callable[..., Threaded] = Program if isinstance(what, Launch) else TapeProgram
        self._program = make(what, self._events.put, self._events.put)
        self._commands = Commands(self._program.engine, sys.stdout)
        self._read = _reader(self._commands)
        self._pausing = False

    def run(self) -> int:
        """Debug until the program has ended or the user leaves; return the exit status."""
        signal.signal(signal.SIGINT, self._interrupt)
        self._program.start()
        while True:
            event = self._next_event()
            if isinstance(event, int):
                print(f"the program has ended with status {event}")
                return event
            self._pausing = False
            sys.stdout.flush()
            self._commands.stopped(event)
            if not self._converse():
                return self._leave()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Ctrl+C stops a program that runs; once more, it ends the debugger."""
        if self._pausing or self._program.engine.is_stopped:
            raise KeyboardInterrupt
        self._pausing = True
        self._program.engine.pause()

    def _next_event(self) -> Stop | int:
        while True:
            # Python handles a signal between two steps of its own: one that comes just before a wait would
            # be handled after it.
            with suppress(Empty):
                return self._events.get(timeout=_GLANCE)

    def _converse(self) -> bool:
        """Take commands until the program goes on; False when the user leaves."""
        while self._program.engine.is_stopped and self._events.empty():
            line = self._read()
            if line is None:
                return False
            self._commands.feed(line)
            if self._commands.done:
                return False
        return True

    def _leave(self) -> int:
        self._pausing = True
        self._program.engine.end()
        self._program.wait(_GRACE)
        return INTERRUPTED


def _reader(commands: Commands) -> Callable[[], str | None]:
    """A function that asks for one line; None at the end of the input."""
    return _prompter(commands) if sys.stdin.isatty() else _next_line


def _next_line() -> str | None:
    return sys.stdin.readline() or None


def _prompter(commands: Commands) -> Callable[[], str | None]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.output import ColorDepth

    session: PromptSession[str] = PromptSession(
        _PROMPT,
        completer=WordCompleter(commands.words()),
        complete_while_typing=False,
        color_depth=ColorDepth.MONOCHROME if "NO_COLOR" in os.environ else None,
    )

    def ask() -> str | None:
        while True:
            try:
                return session.prompt()
            except Stopped:
                raise
            except KeyboardInterrupt:
                print("(Ctrl+D or q to leave)")
            except EOFError:
                return None

    return ask


class _Debug(click.Command):
    """Its help has that of the commands at a stop, too."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines = ("", "Commands, while the program is stopped:", *HELP.split("\n"))
        folded = (part for line in lines for part in console.fold(line, formatter.width))
        formatter.write("".join(f"{line}\n" for line in folded))


@click.command("debug", cls=_Debug, short_help="Debug a program, or a recorded run, at the terminal.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.argument("args", nargs=-1)
@trust_option
@click.option("--skill-dir", "skill_dirs", multiple=True, metavar="DIR", help="Add the skills in DIR.")
@click.option("--llm-mock", metavar="FILE", help="Answer all model calls from FILE, one fixture per line.")
@click.option(
    "--who",
    "wanted",
    metavar="WHAT",
    help="Of a tape: say what wrote 'NAME', 'message N [SESSION]' or 'file PATH' by the end, and leave.",
)
def debug(
    file: str, args: tuple[str, ...], skill_dirs: tuple[str, ...], llm_mock: str | None, wanted: str | None
) -> int:
    """Run FILE, and stop before its first statement.

    ARGS are the program's `argv`; write `--` before those that begin with a dash. The program is
    interpreted, not compiled (as with `harnpy run --walk`).

    FILE may be a tape, which `harnpy run --record` has made: the run is replayed, without effects, and goes
    backwards, too.
    """
    if not names_tape(file):
        if wanted is not None:
            raise click.UsageError(f"'{file}' isn't a tape, and `--who` asks about a recorded run")
        return Terminal(Launch(os.fspath(file), args, skill_dirs, llm_mock)).run()
    if args or skill_dirs or llm_mock is not None:
        raise click.UsageError(f"'{file}' is a tape, which has the program's arguments, skills and models")
    try:
        tape = open_tape(file)
    except TapeError as error:
        return console.report_failure(error, debug=False) or FAILED
    return Terminal(tape).run() if wanted is None else _say_who(tape, wanted)


def _say_who(tape: Tape, wanted: str) -> int:
    """Print what wrote something by the end of a run; return the exit status."""
    events: SimpleQueue[Stop | int] = SimpleQueue()
    program = TapeProgram(tape, events.put, events.put)
    engine = program.engine
    engine.shows_output = False
    program.start()
    events.get()
    try:
        if not engine.has_begun:
            raise UnknownPlace(f"the program of {tape.path} didn't begin, so it has written nothing")
        engine.go_to("end")
        events.get()
        call = None
        if wanted.split(None, 1)[0:1] not in (["file"], ["message"]):
            engine.stand(engine.history.step_back(engine.now, "task_root", None))
            stop = events.get()
            assert not isinstance(stop, int)
            call = engine.calls(stop.task)[0]
        print(who(engine, wanted, call))
        return 0
    except (WrongInput, UnknownPlace) as error:
        sys.stderr.write(f"error: {error}\n")
        return FAILED
    finally:
        engine.end()
        program.wait(_GRACE)


@click.command("dap", short_help="Debug a program from an editor.")
@trust_option
def dap() -> None:
    """Speak the Debug Adapter Protocol on stdin and stdout.

    Editors start this command; docs/debugging.md shows how to configure VS Code and others. The debugger for
    people at a terminal is `harnpy debug`.
    """
    from harnpy.cli.debugger.dap import Adapter
    from harnpy.cli.debugger.dap_wire import Wire
    from harnpy.cli.process import take_streams

    Adapter(Wire(*take_streams())).serve()
