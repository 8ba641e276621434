"""Debugging a recorded run, backwards too: each step back is another replay, up to an earlier moment.

Spec: 09 §15.7, 13 §8.

The program's thread replays the tape again and again. A replay counts the statements that begin; below the
moment that it is to go to it only counts, which takes 3 µs a statement and makes checkpoints unnecessary.
"""

from __future__ import annotations

import os.path
import sys
from concurrent.futures import Future
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, cast

from harnpy import Vm
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.cli import FAILED, INTERRUPTED, console
from harnpy.cli.commands.tape import perform
from harnpy.cli.debugger.breakpoints import SILENT, Breakpoints, path_of, text_of
from harnpy.cli.debugger.engine import Engine, Stop, Terminated, Threaded, into, over
from harnpy.cli.debugger.frames import Call, EvaluationError, activations, open_statements, short, tasks
from harnpy.cli.repl import is_expression
from harnpy.durable.journal import Ending, NotDurable
from harnpy.tape import Replaying, read_tape
from harnpy.tape.description import described, task_of
from harnpy.tape.history import History
from harnpy.tape.journal import Follower
from harnpy.vm.errors import Leaving
from harnpy.vm.run.calls import UNSET
from harnpy.vm.walk.activation import Activation
from harnpy.world import World
from harnpy.world.streams import RealStreams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.cli.debugger.engine import MakeStep
    from harnpy.syntax import ast
    from harnpy.tape import Tape
    from harnpy.tape.history import Effect
    from harnpy.tape.journal import TapeJournal
    from harnpy.vm.run.tasks import Task

    Value = Any

Answer = TypeVar("Answer")

_SILENT = frozenset(SILENT)
#: So many conditions are looked at in the first replay backwards, ten times as many in the next.
_FIRST_TRIES = 100


class Rewound(Leaving):
    """The replay is given up for one that goes to another moment."""


class UnknownPlace(Exception):
    """There is no such effect, call, variable, session or message; the message says so."""


class Writing(NamedTuple):
    """What wrote something: a statement of a task. ``before`` and ``after`` are the values of a variable;
    ``call`` is the number of model calls that had ended."""

    moment: int
    place: str
    task: str
    before: str = ""
    after: str = ""
    call: int = 0


class TapeEngine(Engine):
    """A recorded run being debugged. ``now`` is the moment at which it has stopped.

    ``prepare`` is called with the Vm of each replay.
    """

    def __init__(
        self,
        tape: Tape,
        on_stop: Callable[[Stop], object],
        stop_on_entry: bool,
        prepare: Callable[[Vm], object] = lambda vm: None,
    ) -> None:
        self._prepare = prepare
        super().__init__(self._tell, stop_on_entry)
        self._tell_face = on_stop
        self._answer: Callable[[], object] | None = None
        self.history = History(tape)
        self.now = 0
        body = tape.job.body
        cwd = body["cwd"]
        #: The file that was run.
        self.entry = os.path.realpath(body["entry"])
        #: The program's texts, by real paths; also as seen from here, where the run's directory isn't.
        self.texts: dict[str, str] = {}
        for path, text in body["files"].items():
            place = os.path.join(cwd, path)
            self.texts[os.path.realpath(place)] = text
            self.texts[os.path.realpath(os.path.relpath(place, cwd))] = text
        self.breakpoints = Breakpoints(lambda file: self.texts[file] if file in self.texts else text_of(file))
        self._real = RealStreams()
        self._journal: TapeJournal | None = None
        #: Below this moment statements are only counted.
        self._goal = 0
        #: What is done there.
        self._arrived: Callable[[], Stop | None] | None = None
        #: Whether what is printed is shown: not on the way to an earlier moment.
        self._is_quiet = False
        self.shows_output = True
        self._is_detached = self._is_rewound = False
        #: Whether an expression may have changed what is stopped: then another replay goes on.
        self._is_touched = False
        #: The effect whose place is looked for; "end": the run goes there without a stop.
        self._wanted: Effect | str | None = None
        #: Moments with a breakpoint that is looked at on the way; the last that stops; those before these.
        self._candidates: list[int] = []
        self._found, self._found_text = 0, ""
        self._earlier: list[int] = []
        self._tries = 0
        self._watch: _Watch | None = None
        #: Who waits for what that comes to.
        self._waiting: Future[Writing] | None = None

    # --- in the program's thread: a replay --------------------------------------------------------

    def replay(self) -> int:
        """Replay the run once, and return its exit status. Raises Rewound and Terminated."""
        self.now, self._step, self._is_touched, self._is_rewound = 0, None, False, False
        tape = self.history.tape
        hushed = RealStreams(lambda text: None, lambda text: None, StringIO())  # `on_print` shows it
        world = Replaying(tape, World(streams=hushed))
        world.on_begin.append(lambda journal, vm: self._begin(journal, hushed))
        vm = Vm(world, evaluator="walk")
        self.attach(vm)
        self._prepare(vm)
        return perform(world, tape, vm=vm)

    def ended(self, status: int) -> None:
        """The run has come to its end: the person may go back from here. Raises Ending."""
        self.history.is_whole = True
        self.now += 1
        if self._ending or self._is_detached:
            return
        if self._wanted not in (None, "end"):
            self._go_to_wanted()
        self._wanted, self._is_quiet = None, False
        arrived, self._arrived = self._arrived, None
        at_end = Stop("end", self._scheduler.root, str(status))
        self._block(arrived() or at_end if arrived is not None else at_end)

    def _begin(self, journal: TapeJournal, streams: RealStreams) -> None:
        self._journal = journal
        journal.follower = _Ears(self, streams)

    def _watch_waits(self) -> None:
        """A replay never waits."""

    def statement(self, a: Activation, node: ast.Node) -> None:
        if self._busy:
            return
        if not a.mark:
            a.mark = self.now + 1
            if a.function.parent is None:
                self._files[a.walker] = a
        if type(node) in _SILENT:
            return
        now = self.now = self.now + 1
        if self._watch is not None:
            self._watch.look(a, None)
        if now >= self._goal:
            self._arrive(a, node, now)

    def done(self, a: Activation, node: ast.Node) -> None:
        if self._watch is not None and not self._busy:
            self._watch.look(a, node)

    def failed(self, a: Activation, error: BaseException) -> None:
        if self.now >= self._goal and self._wanted is None:
            super().failed(a, error)

    def _arrive(self, a: Activation, node: ast.Node, now: int) -> None:
        history = self.history
        if now > len(history):
            assert self._journal is not None
            history.add(self._scheduler.current.id(), a.mark, a.unit, node.start, self._journal.step)
        if self._is_rewound:
            self._leave(Rewound())  # what runs here has caught the first one
        if self._ending:
            self._leave(Terminated())
        if self._pausing.is_set():
            self._give_up()
        if self._wanted is not None:
            if self._wanted == "end":
                return
            self._go_to_wanted()
        elif self._candidates:
            self._try_candidate(a, node)
        elif self._arrived is not None:
            arrived, self._arrived = self._arrived, None
            self._is_quiet = False
            stop = arrived()
            if stop is not None:
                self._block(stop)
        else:
            due = self._due(a, node)
            if due is not None:
                self._block(due)

    def _give_up(self) -> None:
        """Stop on the way to somewhere: the person pauses."""
        self._wanted = self._arrived = self._watch = None
        self._candidates, self._earlier, self._is_quiet = [], [], False

    def _tell(self, stop: Stop) -> None:
        """It has stopped: because it was asked something, or where the face is to be told."""
        answer, self._answer = self._answer, None
        if answer is not None:
            answer()
            return
        self._tell_face(stop)
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.set_exception(UnknownPlace("it was interrupted before that was found"))

    def _block(self, stop: Stop) -> None:
        try:
            super()._block(stop)
        except Terminated as end:
            self._leave(end)
        if self._is_rewound:
            self._leave(Rewound())

    def _leave(self, error: BaseException) -> NoReturn:
        """End this replay. Whoever catches that comes no further than to the next effect."""
        assert self._journal is not None
        self._journal.ending, self._journal.is_over = Ending(error), True
        raise self._journal.ending

    def on_asked(self, key: str) -> None:
        """The program has asked for an effect."""
        assert self._journal is not None
        if self._is_new():
            self.history.ask(key, self.place_of(task_of(key)), self._journal.tool)
        if self._watch is not None:
            self._watch.asked(task_of(key))

    def on_print(self, is_error: bool, text: str) -> None:
        """The program has printed a text."""
        if self._is_new() and not self._busy:
            self.history.print(text)
        if self.shows_output and not self._is_quiet:
            (self._real.write_err if is_error else self._real.write_out)(text)

    def _is_new(self) -> bool:
        """Return whether no replay has been here before."""
        return self.now >= len(self.history) and not self.history.is_whole

    # --- in the program's thread: going to a moment -----------------------------------------------

    def _aim(self, moment: int, arrived: Callable[[], Stop | None]) -> None:
        """Have another replay go to the moment, if this one is past it."""
        self._goal, self._arrived = moment, arrived
        if moment <= self.now:
            self._is_quiet = self._is_rewound = True

    def _stop_there(self, reason: str, text: str = "") -> Callable[[], Stop]:
        return lambda: Stop(reason if self.now > 1 else "entry", self._scheduler.current, text)

    def _task_of(self, id: str) -> Task:
        return next((task for task in tasks(self._scheduler) if task.id() == id), self._scheduler.current)

    def _go_to_wanted(self) -> None:
        """Go to where the wanted effect was asked for, once that is known."""
        wanted = self._wanted
        assert not isinstance(wanted, str | None)
        asked = self.history.asked.get(wanted.key)
        if asked is not None:
            self._wanted = None
            self._aim(asked.moment, self._stop_there("goto", described((wanted.key, wanted.asked))))
            self._leave(Rewound())

    def _back(self, make: MakeStep | None, id: str) -> bool:
        if make is None:
            self._back_to_breakpoint()
            return True
        task = self._task_of(id)
        frames = [a.mark for a in activations(self._scheduler, task)]
        wanted = None if make is into or not frames else frames if make is over else frames[1:]
        self._aim(self.history.step_back(self.now, id, wanted), self._stop_there("step"))
        return True

    def _back_to_breakpoint(self) -> None:
        """Go to the last moment before this one at which a breakpoint stops."""
        hits = []
        for moment in range(min(self.now - 1, len(self.history)), 0, -1):
            point = self.breakpoints.at(*self.history.place(moment))
            if point is not None:
                hits.append(moment)
                if point.condition is None:
                    break
        self._earlier, self._tries = hits, _FIRST_TRIES
        self._try_earlier()

    def _try_earlier(self) -> None:
        """Look at the conditions of the next breakpoints backwards, in a replay that comes by them: at few
        first, as most often the last one holds."""
        tried, self._earlier = self._earlier[: self._tries], self._earlier[self._tries :]
        self._tries *= 10
        if tried:
            self._candidates, self._found = tried[::-1], 0
            self._goal, self._is_quiet, self._is_rewound = self._candidates[0], True, True
        else:
            self._aim(1, self._stop_there("step"))

    def _stop_at_breakpoint(self) -> Stop:
        point = self.breakpoints.at(*self.history.place(self.now))
        return Stop("breakpoint", self._scheduler.current, self._found_text, point)

    def _try_candidate(self, a: Activation, node: ast.Node) -> None:
        """Look whether a breakpoint holds here; behind the last of these, go back to the last that did."""
        point = self.breakpoints.at(a.unit, node.start)
        holds, text = (False, "") if point is None else self._holds(a, point)
        if holds:
            self._found, self._found_text = self.now, text
        del self._candidates[0]
        if self._candidates:
            self._goal = self._candidates[0]
            return
        if self._found == self.now:
            self._is_quiet = False
            self._block(self._stop_at_breakpoint())
            return
        if self._found:
            self._aim(self._found, self._stop_at_breakpoint)
        else:
            self._try_earlier()
        self._leave(Rewound())

    # --- for the face -----------------------------------------------------------------------------

    def resume(self, make: MakeStep | None = None, task: Task | None = None) -> None:
        stop = self._stopped()
        id = (task or stop.task).id()

        def set_step() -> None:
            if make is not None:
                stepping = self._task_of(id)
                self._step = make(stepping, activations(self._scheduler, stepping))

        def go() -> bool:
            if self._is_touched:
                self._aim(self.now, set_step)
            else:
                set_step()
            return True

        self._send(go)

    def back(self, make: MakeStep | None = None, task: Task | None = None) -> None:
        """Go back: a step of the task, or to the last breakpoint before. Raises NotStopped."""
        id = (task or self._stopped().task).id()
        self._send(lambda: self._back(make, id))

    def go_to(self, wanted: Effect | str) -> None:
        """Go to where an effect was asked for, or to the "end". Raises NotStopped."""

        def go() -> bool:
            self._wanted = wanted
            asked = None if isinstance(wanted, str) else self.history.asked.get(wanted.key)
            if asked is not None and not isinstance(wanted, str):
                self._wanted = None
                self._aim(asked.moment, self._stop_there("goto", described((wanted.key, wanted.asked))))
            return True

        self._stopped()
        self._send(go)

    def task_like(self, task: Task) -> Task:
        """Return the task of the present replay that has the id of an earlier one's."""
        return self.ask(lambda: self._task_of(task.id()))

    def _send(self, go: Callable[[], bool]) -> None:
        self._stopped()
        self._stop = None
        self._inbox.put(go)

    def stand(self, moment: int) -> None:
        """Go to a moment that a replay has come by. Raises NotStopped."""

        def go() -> bool:
            self._aim(moment, self._stop_there("goto"))
            return True

        self._send(go)

    def pause(self) -> None:
        self._pausing.set()
        self._goal = 0  # so the next statement looks

    def detach(self) -> None:
        self._is_detached = True
        super().detach()

    def evaluate(self, call: Call, source: str) -> Value:
        if not is_expression(source):
            raise EvaluationError("a recorded run stays as it was: `harnpy branch` goes on differently")
        self._is_touched = self._is_touched or not source.strip().isidentifier()
        return super().evaluate(call, source)

    def ask(self, question: Callable[[], Answer]) -> Answer:
        def asked() -> Answer:
            with self._aside():
                return question()

        try:
            return super().ask(asked)
        except NotDurable as error:
            raise EvaluationError(str(error)) from None

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """A block in which a person looks at the program: it has no effects, and what it does isn't counted
        as work of the program, which looks at its deadlines after so much of it."""
        journal, scheduler, signal = self._journal, cast("Any", self._scheduler), self._scheduler.signal
        assert journal is not None
        if journal.is_aside:
            yield
            return
        before = signal.pending, scheduler.unseen
        journal.is_aside, signal.pending = True, False
        scheduler.suspend = _refuse_to_wait
        try:
            yield
        finally:
            del scheduler.suspend
            journal.is_aside = False
            signal.pending, scheduler.unseen = before

    def _evaluated(self, a: Activation, source: str) -> Value:
        with self._aside():
            return super()._evaluated(a, source)

    # --- for the face: who wrote it ---------------------------------------------------------------

    def who_file(self, path: str) -> tuple[Effect, Writing, str | None]:
        """Return the last effect so far that wrote a file, where it was asked for, and the agent's tool that
        did. Raises UnknownPlace."""
        history = self.history
        effect = history.writing(path, self.now)
        if effect is None:
            raise UnknownPlace(
                f"no effect of the program has written {path} by now: "
                "it came later, or it was there before, or a process wrote it outside of the run's directory"
            )
        asked = history.asked[effect.key]
        return effect, self.written_at(asked.statement), asked.tool

    def who_variable(self, call: Call, name: str) -> Writing:
        """Return the statement that last changed a variable that the call sees. Raises UnknownPlace."""
        found = (self.of_file(call) | self.captured(call) | self.locals(call)).get(name)
        if found is None:
            raise UnknownPlace(f"no variable {name} is visible here (try `v`)")
        mark = found.activation.mark
        is_captured = found.variable in found.activation.function.captures.values()
        watch = _VariableWatch(self, name, mark, found.variable.in_table, is_captured)
        return self._watched(watch, lambda: watch.result(found.variable.python))

    def who_message(self, number: int, session: str) -> Writing:
        """Return what wrote a message of a session, of which the beginning of the id is enough; messages
        count from 1, as the session has them now. Raises UnknownPlace."""
        ids = self.ask(lambda: sessions_of(self.vm).ids())
        fit = [id for id in ids if id == session] or [id for id in ids if id.startswith(session)]
        if len(fit) != 1 and not session:
            some = f"{len(ids)} sessions are open: ask `who message {number} SESSION`"
            raise UnknownPlace(some if ids else "no session is open")
        if len(fit) != 1:
            some = "no open session begins" if not fit else f"{len(fit)} open sessions begin"
            raise UnknownPlace(f"{some} with `{session}` (try `session`)")
        watch = _MessageWatch(self, fit[0])
        return self._watched(watch, lambda: watch.result(number))

    def _watched(self, watch: _Watch, result: Callable[[], Writing]) -> Writing:
        """Return what a replay to this moment comes to that is watched."""
        answer: Future[Writing] = Future()
        stop = self._stopped()
        id = stop.task.id()

        def tell() -> None:
            self._waiting = None
            try:
                answer.set_result(result())
            except UnknownPlace as error:
                answer.set_exception(error)

        def arrived() -> Stop:
            self._watch, self._answer = None, tell
            return Stop(stop.reason, self._task_of(id), stop.text, stop.breakpoint)

        def go() -> bool:
            self._watch, self._waiting = watch, answer
            self._aim(self.now, arrived)
            return True

        self._send(go)
        return answer.result()

    def place_of(self, task: str) -> int:
        """Return the moment of the statement that a task is at."""
        asking = self._scheduler.responsible()
        stack = activations(self._scheduler, asking if asking.id() == task else self._task_of(task))
        found = self.history.last_of(stack[0].mark, None, self.now) if stack else None
        return found or self.now

    @property
    def has_begun(self) -> bool:
        """Whether the program could be read and checked, and ran."""
        return self._journal is not None and self._journal.has_begun

    def calls_so_far(self) -> int:
        """Return how many calls of models have ended."""
        assert self._journal is not None
        return self.history.calls_by(self._journal.step)

    def written_at(self, moment: int, **more: Any) -> Writing:
        """Return the moment as one at which something was written."""
        unit, start = self.history.place(moment)
        line, _ = unit.lines.locate(start)
        return Writing(moment, f"{shown_path(path_of(unit))}:{line}", self.history.task(moment), **more)


# What is looked at in a replay, to see which statement changes it.


class _Ears(Follower):
    """Tells the engine what its program asks for, and prints."""

    def __init__(self, engine: TapeEngine, streams: RealStreams) -> None:
        self._engine = engine
        self._streams = streams

    def asked(self, key: str) -> None:
        self._engine.on_asked(key)

    def printed(self, write: Callable[[str], object], text: str) -> None:
        self._engine.on_print(write == self._streams.write_err, text)


class _Watch:
    """Looks at something before and after each statement, and where an effect is asked for."""

    def __init__(self, engine: TapeEngine) -> None:
        self._engine = engine

    def look(self, a: Activation, done: ast.Node | None) -> None:
        """A statement of ``a`` begins, or is ``done``."""

    def asked(self, task: str) -> None:
        """A task asks for an effect."""

    def _changer(self, a: Activation, done: ast.Node | None) -> int:
        """Return the moment of the statement that has changed what is looked at now.

        That is the one that is done; else the one around that which begins: a loop, a call.
        """
        now, history = self._engine.now, self._engine.history
        if done is None:
            around = [*open_statements(a.walker.vm.tasks)][1:2]
            if not around:
                return now
            a, done = around[0]
        return history.last_of(a.mark, done.start, now) or now


class _VariableWatch(_Watch):
    """A variable of one run of a function, or of a file."""

    def __init__(self, engine: TapeEngine, name: str, mark: int, in_table: bool, is_captured: bool) -> None:
        super().__init__(engine)
        self._name = name
        self._mark = mark
        self._in_table = in_table
        self._is_captured = is_captured
        self._activation: Activation | None = None
        #: The value of each variable that goes by the name; its changes: moment, value before and after.
        self._values: dict[str, Value] = {}
        self._changes: dict[str, tuple[int, Value, Value]] = {}

    def look(self, a: Activation, done: ast.Node | None) -> None:
        if self._activation is None and a.mark == self._mark:
            self._activation = a
        own = self._activation
        if own is None:
            return
        if self._in_table:
            self._see("", own.walker.table.get(self._name, UNSET), a, done)
        elif a.slots is own.slots:
            for variable in [*own.slots]:
                if variable.name == self._name:
                    self._see(variable.python, own.read(variable), a, done)

    def _see(self, key: str, value: Value, a: Activation, done: ast.Node | None) -> None:
        before = self._values.get(key, UNSET)
        if value is not before:
            self._values[key] = value
            self._changes[key] = (self._changer(a, done), before, value)

    def result(self, key: str) -> Writing:
        found = self._changes.get("" if self._in_table else key)
        if found is None:
            raise UnknownPlace(f"{self._name} has been as it is since its function began")
        moment, before, after = found
        if before is UNSET and self._is_captured:
            raise UnknownPlace(
                f"{self._name} is as it was captured when this function was made: {short(after)} "
                "(ask there what wrote it)"
            )
        shown = ["nothing" if value is UNSET else short(value) for value in (before, after)]
        return self._engine.written_at(moment, before=shown[0], after=shown[1])


class _MessageWatch(_Watch):
    """The messages of a session."""

    def __init__(self, engine: TapeEngine, id: str) -> None:
        super().__init__(engine)
        self._id = id
        self._length = 0
        #: By the number of a message, what wrote it: the moment, the model calls by then.
        self._written: dict[int, tuple[int, int]] = {}

    def look(self, a: Activation, done: ast.Node | None) -> None:
        self._see(lambda: self._changer(a, done))

    def asked(self, task: str) -> None:
        self._see(lambda: self._engine.place_of(task))

    def _see(self, changer: Callable[[], int]) -> None:
        opened = sessions_of(self._engine.vm).by_id.get(self._id)
        length = 0 if opened is None else opened.session.length
        if length == self._length:
            return
        # What makes a session shorter writes what it leaves.
        first = self._length if length > self._length else 0
        moment, calls = changer(), self._engine.calls_so_far()
        for number in range(first + 1, length + 1):
            self._written[number] = moment, calls
        self._length = length

    def result(self, number: int) -> Writing:
        found = self._written.get(number) if 0 < number <= self._length else None
        if found is None:
            raise UnknownPlace(
                f"session {self._id} has {self._length} messages here, and no message {number}"
            )
        moment, calls = found
        return self._engine.written_at(moment, call=calls)


def shown_path(path: str) -> str:
    """A path from the working directory, if it is below that."""
    below = os.path.relpath(path) if os.path.isabs(path) else path
    return path if below.startswith(os.pardir) else below


def _refuse_to_wait(*args: object) -> None:
    raise NotDurable("an expression can't wait in a recorded run: it sees only what is there")


def open_tape(path: str) -> Tape:
    """Return the tape of a program's run, and go to the directory that its files are named from, if it is
    there. Raises `TapeError`."""
    tape = read_tape(path)
    Replaying(tape)  # raises for what no program has recorded
    if os.path.isdir(tape.job.body["cwd"]):
        os.chdir(tape.job.body["cwd"])
    return tape


class TapeProgram(Threaded):
    """A recorded run, in a thread of its own. ``on_stop`` is called there, too."""

    def __init__(
        self,
        tape: Tape,
        on_stop: Callable[[Stop], object],
        on_end: Callable[[int], object],
        *,
        stop_on_entry: bool = True,
        prepare: Callable[[Vm], object] = lambda vm: None,
    ) -> None:
        """``prepare`` is called with the Vm of each replay, before it begins."""
        super().__init__(on_end)
        self.engine: TapeEngine = TapeEngine(tape, on_stop, stop_on_entry, prepare)

    def _status(self) -> int:
        while True:
            try:
                status = self.engine.replay()
                self.engine.ended(status)
                return status
            except Rewound:
                continue
            except Terminated:
                return INTERRUPTED
            except Ending as end:
                if isinstance(end.error, Terminated):
                    return INTERRUPTED
                if isinstance(end.error, Exception):
                    sys.stdout.flush()
                    sys.stderr.write(console.rendered_error(end.error, sys.stderr))
                    return FAILED
