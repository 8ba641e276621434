"""The journal of a program's run: what it sees of the outside, in order. Spec: 10 §C19.1.

Everything that a program learns from outside is an *effect*, and has a key: `<task>/<n>:<kind>`, the n-th of
that Harn task. An effect of a kind that returns at once is recorded where it is asked for. One that waits is
begun, and comes to its end, only when no task can run: one at a time, recorded before the program hears of
it. Between two records a program only computes. So a run that is begun again from its start, with the
records in its hands, gets to where the record ends, and to nothing else, whatever runs in parallel.

Time is part of it: the clock that deadlines and sleeps are measured by stands still while a program computes,
and moves with the records.
"""

from __future__ import annotations

import asyncio
import sys
from _thread import get_ident
from collections import deque
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from zlib import crc32

from harnpy.durable.values import (
    Unreadable,
    Unrecordable,
    decode,
    decode_error,
    encode,
    encode_error,
    told_without_secrets,
)
from harnpy.session.errors import ambiguous
from harnpy.vm.errors import CategorizedFault, Leaving, RuntimeFault
from harnpy.vm.run.scheduler import place_in_program
from harnpy.workflow.engines.contract import Step
from harnpy.workflow.engines.errors import ReplayDiverged, RunCancelled, RunError
from harnpy.world.loops import close_generators, end_tasks
from harnpy.world.threads import Ticker, Wakeful

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator
    from contextvars import Context

    from harnpy.durable.values import Masking
    from harnpy.vm.run.scheduler import Scheduler
    from harnpy.vm.run.tasks import Task
    from harnpy.workflow.engines.contract import Json, RunContext
    from harnpy.world import World

    T = TypeVar("T")
    #: Returns what an effect is asked for, as JSON.
    Asked = Callable[[], Json]

# What returns at once. Nobody outside can notice the first four.
NOW: Final = "now"
RANDOM: Final = "random"
ID: Final = "id"
READ: Final = "read"
WRITE: Final = "write"
SESSION: Final = "session"
STDIN: Final = "stdin"
#: That a deadline has come in the middle of a computation.
TIME: Final = "time"
#: That an agent's tool begins.
TOOL: Final = "tool"
# What waits.
SLEEP: Final = "sleep"
PROCESS: Final = "process"
HTTP: Final = "http"
MODEL: Final = "model"
#: A further piece of a model's reply, of a stream, of what a process says.
PIECE: Final = "piece"
#: That something that is open is told something: a process, a WebSocket, a client.
SEND: Final = "send"
LISTEN: Final = "listen"
HUMAN: Final = "human"
HOST: Final = "host"
WAIT: Final = "wait"
#: What stays as it is when it is first asked for: its key is the name of it.
ENV: Final = "env"
#: Not asked for by the program: that it has printed so much.
OUTPUT: Final = "out"

#: What may have done its work although it was cut off, and would do it twice.
_UNSAFE = frozenset({WRITE, PROCESS, HTTP, HOST})
#: What is entered again at no cost, and so holds up no worker that stops.
_RESTING = frozenset({WAIT, HUMAN})
#: What moves the program's clock, beside everything that waits.
_TIMED = frozenset({NOW, STDIN})

#: Characters, and seconds, that output waits at most for the append that records it.
_MOST_PRINTED = 1 << 16
#: Steps that wait at most for an append.
_MOST_HELD = 512
#: Turns of a computation under a deadline between two looks at the time.
_GLANCE = 256
_TICK = 0.05
#: Seconds between two looks of something that nobody can interrupt.
LOOK = 0.2

#: What reading a damaged record raises.
_NO_VALUE = (ValueError, TypeError, LookupError, AttributeError)

#: Whether the running code is part of an effect: what that has the world do is its own affair.
_INSIDE: ContextVar[bool] = ContextVar("inside an effect", default=False)


#: The innermost call of an agent's tool that the running code is part of.
_CALL: ContextVar[_ToolCall | None] = ContextVar("tool call", default=None)


class _ToolCall(NamedTuple):
    """A call that may not be made twice. ``is_old``: an earlier process began it."""

    key: str
    is_old: bool


class CutOff(CategorizedFault):
    """An effect of a tool's call was cut off with its process, and the call isn't made twice (10 §A1.13)."""


class NotDurable(RuntimeFault):
    """A durable run can't do this: its end could not be recorded, or what it began would not survive."""


class Ending(Leaving):
    """Unwinds the program of a run that is over for its engine, for which ``error`` is the reason."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class Tried(BaseException):
    """Ends a trial: the program has come to the end of its records."""


class _Effect:
    """Something that was asked for and has no end yet; ``future`` is the program's."""

    __slots__ = ("asked", "begin", "context", "future", "key", "task", "work")

    def __init__(
        self,
        key: str,
        asked: Json,
        begin: Callable[[], Awaitable[Any]],
        future: asyncio.Future[Any],
        task: Task | None,
    ) -> None:
        self.key = key
        self.asked = asked
        self.begin = begin
        self.future = future
        self.task = task
        self.context: Context = copy_context()
        self.work: asyncio.Task[Any] | None = None


class Journal:
    """Records the effects of one program, or gives out those that are recorded.

    What really happens outside, happens in a loop of the journal's own, which runs only while the program
    waits: so nothing comes to the program's own loop but what is recorded.
    """

    #: What nobody outside can notice is recorded with what comes next, not by itself.
    unnoticed = frozenset({NOW, RANDOM, ID, READ})

    def __init__(self, run: RunContext, world: World, *, is_trial: bool = False) -> None:
        self._run = run
        #: Whether the program goes no further than its records.
        self._is_trial = is_trial
        #: Whether what effects are asked for is recorded with them, and compared.
        self.compares = False
        #: Whether what runs now isn't part of the program, and so has no effects: a person looks at it.
        self.is_aside = False
        #: By what secrets are masked in what is recorded, if they are.
        self.masking: Masking | None = None
        self._world = world
        self._facts = {step.key: step.output for step in run.recorded if _is_fact(step)}
        self._recorded = [(n, step) for n, step in enumerate(run.recorded, 1) if not _is_fact(step)]
        self._next = 0
        self._thread = get_ident()
        self._tasks: Scheduler | None = None
        self._counts: dict[str, int] = {}
        #: Recorded with the next append.
        self._held: list[Step] = []
        self._printed: list[tuple[Callable[[str], object], str]] = []
        self._size = 0
        self._outputs = 0
        self._turns = 0
        self._effects: dict[str, _Effect] = {}
        self._ended: deque[_Effect] = deque()
        #: The program's clock, in seconds since it began.
        self.seconds = 0.0
        self._start: float | None = None
        self._outer: asyncio.AbstractEventLoop | None = None
        self._holding: set[asyncio.Task[None]] = set()
        self._wakeful: Wakeful | None = None
        #: Whether the loop outside runs until something ends.
        self._is_waiting = False
        self._ticker: Ticker | None = None
        self._is_due = self._is_asked_to_end = self._is_leaving = False
        self._has_begun = False
        #: Whether the next effect may have happened already, in a process that was killed in it.
        self.may_have_happened = run.attempt > 1 or bool(self._recorded)
        #: Returns when the whole program has to have ended, on its clock.
        self.limit: Callable[[], float] = lambda: inf
        #: Whether the program has ended: from then on nothing is recorded.
        self.is_over = False
        self.ending: Ending | None = None
        #: Whether it has left, too, and only what it has open is closed.
        self._has_left = False

    def begin(self) -> None:
        """The program begins: from now on what it sees is recorded."""
        self._has_begun = True
        # What comes behind the records is new to the engine, too.
        if self._run.recorded:
            self._run.record(*self._run.recorded)
        if self._is_trial:
            self._have_looked()  # also one that only computes ends

    def attach(self, tasks: Scheduler) -> None:
        """Record what the tasks of this scheduler do, and let them see time pass as it is recorded."""
        self._tasks = tasks
        tasks.now = lambda: self.seconds
        tasks.turns = self  # type: ignore[assignment]
        self._run.on_end(self._ask_to_end)
        on_leave = getattr(self._run, "on_leave", None)
        if on_leave is not None:
            on_leave(self._ask_to_leave)

    # --- effects ----------------------------------------------------------------------------------

    def passes(self) -> bool:
        """Whether what is asked for now is done without a record: it is part of an effect, or comes before
        the program begins, or closes what it has left."""
        if _INSIDE.get() or not self._has_begun or get_ident() != self._thread:
            return True
        if self._has_left:  # only what it has open is closed
            return True
        if self.ending is not None and not isinstance(self.ending.error, RunCancelled):
            raise self.ending
        return self.is_over

    def at_once(self, kind: str, act: Callable[[], T], asked: Asked | None = None) -> T:
        """Return what ``act()`` returns, or what it did when this was recorded. Raises what it raises.

        ``asked`` says what it is asked for, where records are compared by that, too.
        """
        if self.passes():
            return act()
        self.take()
        key = self._new_key(self._task(), kind)
        wanted = self._wanted(asked)
        step = self._head()
        if step is not None:
            if step.key == key and self._agrees(step, wanted):
                self._advance(wanted)
                given: T = self._came_to(step)
                return given
            self._part(key, self._task(), step, wanted)
        self.anew(key, wanted)
        is_noticed = kind not in self.unnoticed
        if is_noticed:
            self.flush()
        try:
            cut_off = self._cut_off(kind, _CALL.get())
            if cut_off is not None:
                raise cut_off
            value: T | None = act()
            error: Exception | None = None
        except Exception as failure:
            value, error = None, failure
        output, error = self._written(key, value, error, wanted)
        if kind in _TIMED:
            self.seconds = output["at"] = self._elapsed()
        self._hold(Step(key, output))
        if is_noticed:
            self.flush()
            self.may_have_happened = False
        if error is not None:
            raise error
        return value  # type: ignore[return-value]

    def _wanted(self, asked: Asked | None) -> Json:
        """Return what an effect is asked for, as it is recorded and compared."""
        if not self.compares or asked is None:
            return None
        return told_without_secrets(asked, self.masking)

    def anew(self, key: str, asked: Json = None) -> None:
        """An effect has no record: it is had now, but not in a trial. Raises `Ending`."""
        self.renews()
        self._elapsed()  # from here on time passes, also while the first of them is waited for

    def renews(self) -> bool:
        """Return whether each process does for itself what comes now; a trial doesn't. Raises `Ending`."""
        if self._is_trial and not self.is_over:
            self.ending, self.is_over = Ending(Tried()), True
            raise self.ending
        return True

    def _hold(self, step: Step) -> None:
        """Record a step with the next append."""
        self._held.append(step)
        if len(self._held) >= _MOST_HELD:
            self.flush()

    def fact(self, name: str, look: Callable[[], T], is_kept: Callable[[T], bool] = lambda value: True) -> T:
        """Return what ``look()`` returns, or what it did when this was first asked for, in whatever task.

        Where it ``is_kept``: else each process looks anew.
        """
        if _INSIDE.get() or get_ident() != self._thread:
            return look()
        key = f"{name}:{ENV}"
        if key not in self._facts:
            self._look_anew(name)
            try:
                value = look()
            except Exception as error:
                if not (self.compares or isinstance(error, OSError)):
                    raise
                fact = {"error": encode_error(error)}
            else:
                if not is_kept(value):
                    return value
                fact = {"ok": encode(value)}
            self._facts[key] = fact
            if not self.is_over:
                self._held.append(Step(key, fact))
        known: T = self._came_to(Step(key, self._facts[key]))
        return known

    def _look_anew(self, name: str) -> None:
        """A fact isn't known yet: it is looked up."""

    @contextmanager
    def calling(self, tool: str, policy: str) -> Iterator[None]:
        """A block in which an agent's tool runs. Unless ``policy`` is ``retry``, an effect in it fails that
        was cut off and could do its work twice."""
        if policy == "retry" or self.passes():
            yield
            return
        call = _ToolCall(self._next_key(self._task(), TOOL), self.is_repeated())
        self.at_once(TOOL, lambda: tool)
        token = _CALL.set(call)
        try:
            yield
        finally:
            _CALL.reset(token)

    def _cut_off(self, kind: str, call: _ToolCall | None) -> CutOff | None:
        """Return the failure of an effect that an earlier process may have begun; None if it may be had."""
        if not self.may_have_happened or call is None or not call.is_old or kind not in _UNSAFE:
            return None
        return CutOff("tool_error", ambiguous(f"{self._run.run_id}:{call.key}"))

    async def waited(self, kind: str, begin: Callable[[], Awaitable[T]], asked: Asked | None = None) -> T:
        """Return what ``await begin()`` returns, once nothing else can go on; or what it did then.

        ``asked`` is as in `at_once`.
        """
        if _INSIDE.get():
            return await begin()
        if self.is_over:
            raise asyncio.CancelledError
        self.take()
        task = self._task()
        key = self._new_key(task, kind)
        wanted = self._wanted(asked)
        effect = _Effect(key, wanted, begin, asyncio.get_running_loop().create_future(), task)
        self._effects[key] = effect
        try:
            given: T = await effect.future
            return given
        finally:
            if self._effects.pop(key, None) is not None and effect.work is not None:
                effect.work.cancel()

    def is_repeated(self) -> bool:
        """Whether there are records that weren't given out yet."""
        return self._next < len(self._recorded)

    def _task(self) -> Task | None:
        return None if self._tasks is None else self._tasks.responsible()

    def _new_key(self, task: Task | None, kind: str) -> str:
        id = "task_root" if task is None else task.id()
        number = self._counts[id] = self._counts.get(id, 0) + 1
        return f"{id}/{number}:{kind}"

    def _written(
        self, key: str, value: Any, error: Exception | None, asked: Json
    ) -> tuple[dict[str, Json], Exception | None]:
        """Return what is recorded of an effect, and the error that it came to."""
        output: dict[str, Json] = {} if asked is None else {"asked": asked}
        if error is None:
            try:
                output["ok"] = encode(value, utf8=self.compares)
            except Unrecordable as what:
                error = NotDurable(f"a durable run can't record {key}: it came to {what}")
            else:
                return output, None
        output["error"] = encode_error(error)
        return output, error

    def _agrees(self, step: Step, asked: Json) -> bool:
        """Return whether a record is of what is asked for now."""
        return not self.compares or step.output.get("asked") == asked

    def _part(self, asked: str, task: Task | None, step: Step, wanted: Json = None) -> None:
        """The next record isn't of what the program asks for now. Raises `Ending`."""
        raise self._diverged(asked, task, step)

    def _came_to(self, step: Step) -> Any:
        """Return, or raise, what a record says."""
        output = step.output
        self.seconds = output.get("at", self.seconds)
        try:
            error = decode_error(output["error"]) if "error" in output else None
            value = None if error is not None else decode(output["ok"])
        except (Unreadable, *_NO_VALUE) as what:
            self.ending, self.is_over = Ending(self._unread(step, what)), True
            raise self.ending from None
        if error is not None:
            raise error
        return value

    def _unread(self, step: Step, what: Exception) -> BaseException:
        """Return why the run ends at a record that can't be read."""
        why = what if isinstance(what, Unreadable) else "it is damaged"
        return RunError(
            f"run '{self._run.run_id}' can't go on from step '{step.key}': {why}; begin a new run"
        )

    # --- waiting ----------------------------------------------------------------------------------

    def resolve(self, seconds: float | None) -> bool:
        """No task can go on: let one effect come to its end, or time pass until ``seconds`` are over.

        Return whether there was anything to wait for.
        """
        timer = None if seconds is None else self._exactly(self.seconds + seconds)
        if self.ending is not None and not self._has_left:
            raise self.ending  # one that a coroutine beside the program has met
        if self.is_over:  # what is closing waits for nobody
            if self._effects:
                for effect in [*self._effects.values()]:
                    effect.future.cancel()
                return True
            self.seconds = self.seconds if timer is None else timer
            return timer is not None
        self.take()
        step = self._head()
        if step is not None:
            self._repeat(step, timer)
            return True
        if not self._effects and timer is None:
            return False
        self._go_on_outside(timer)
        return True

    def _repeat(self, step: Step, timer: float | None) -> None:
        """Give out the next record, which must be one that the program waits for."""
        effect = self._effects.get(step.key)
        if effect is not None and self._agrees(step, effect.asked):
            del self._effects[step.key]
            self._advance(effect.asked)
            self._settle(effect, step)
            return
        sleeper = self._sleeper(timer)
        if timer is None or step.key != self._next_key(sleeper, SLEEP):
            # Of the task whose record it is, if that waits for something.
            own = step.key.partition("/")[0] + "/"
            of_task = (each for key, each in self._effects.items() if key.startswith(own))
            waiting = effect or next(of_task, None) or next(iter(self._effects.values()), None)
            if waiting is not None:
                self._part(waiting.key, waiting.task, step, waiting.asked)
            else:
                self._part(self._next_key(sleeper, SLEEP) if timer else "", sleeper, step)
            return
        self._new_key(sleeper, SLEEP)
        self._advance()
        self.seconds = max(step.output["at"], timer)

    def _go_on_outside(self, timer: float | None) -> None:
        """Let what was asked for go on until something has ended, or it is time; record which."""
        first = next(iter(self._effects.values()), None)
        if first is None:
            self.anew(self._next_key(self._sleeper(timer), SLEEP))
        else:
            self.anew(first.key, first.asked)
        if not self._is_busy():
            self._ask(self._run.check)
        if timer is None or self._effects or timer - self._elapsed() > _TICK:
            self.flush()
        for effect in [*self._effects.values()]:
            if effect.work is None and not self._is_leaving:
                self._begin(effect)
        self.may_have_happened = False
        if not self._ended:
            self._wait(None if timer is None else max(timer - self._elapsed(), 0))
        self.take()
        if not self._is_busy():
            self._ask(self._run.check)
        while self._ended:
            effect = self._ended.popleft()
            if self._effects.pop(effect.key, None) is not None:
                self._record_end(effect)
                return
        if timer is not None and self._elapsed() >= timer - 1e-6:
            sleeper = self._sleeper(timer)
            is_long = timer - self.seconds > _TICK
            self.seconds = max(self._elapsed(), timer)
            self._hold(Step(self._new_key(sleeper, SLEEP), {"at": self.seconds}))
            if is_long:
                self.flush()

    def _is_busy(self) -> bool:
        """Return whether something is under way that would have to be begun again."""
        begun = (effect.key for effect in self._effects.values() if effect.work is not None)
        return any(key.rpartition(":")[2] not in _RESTING for key in begun)

    def _is_called_off(self) -> bool:
        """Return whether the embedder has cancelled the program."""
        return self._tasks is not None and self._tasks.signal.cancelled

    def _is_to_end(self) -> bool:
        """Return whether the run says, if it is asked, that it is over here."""
        return self._is_asked_to_end or (self._is_leaving and not self._is_busy())

    def _begin(self, effect: _Effect) -> None:
        kind = effect.key.rpartition(":")[2]
        cut_off = self._cut_off(kind, effect.context.get(_CALL))

        async def work() -> Any:
            if cut_off is not None:
                raise cut_off
            return await effect.begin()

        def done(_: object) -> None:
            self._ended.append(effect)
            self._wake()

        effect.context.run(_INSIDE.set, True)
        effect.work = self._loop.create_task(work(), context=effect.context)
        effect.work.add_done_callback(done)

    def _record_end(self, effect: _Effect) -> None:
        assert effect.work is not None
        if effect.work.cancelled():
            error: BaseException | None = asyncio.CancelledError()
        else:
            error = effect.work.exception()
        if error is not None and not isinstance(error, Exception):
            if not isinstance(error, asyncio.CancelledError):
                raise error
            error = NotDurable(f"{effect.key} was cancelled from outside")
        value = None if error is not None else effect.work.result()
        output, error = self._written(effect.key, value, error, effect.asked)
        self.seconds = output["at"] = self._elapsed()
        self._held.append(Step(effect.key, output))
        self.flush()
        if effect.future.done():
            return
        if error is not None:
            effect.future.set_exception(error)
        else:
            effect.future.set_result(value)

    def _settle(self, effect: _Effect, step: Step) -> None:
        try:
            value = self._came_to(step)
        except Exception as error:
            effect.future.set_exception(error)
        else:
            effect.future.set_result(value)

    def _sleeper(self, timer: float | None) -> Task | None:
        """The task whose wait is over at that time; none where it isn't one of the program's own waits."""
        timers = self._tasks.timers if self._tasks is not None else ()
        return timers[0][2] if timer is not None and timers and timers[0][0] <= timer + 1e-6 else None

    def _exactly(self, timer: float) -> float:
        """Return the time of the program's own timer, if that is the one: a sum of floats is only near it."""
        sleeper = self._sleeper(timer)
        return timer if sleeper is None or self._tasks is None else max(timer, self._tasks.timers[0][0])

    def _next_key(self, task: Task | None, kind: str) -> str:
        id = "task_root" if task is None else task.id()
        return f"{id}/{self._counts.get(id, 0) + 1}:{kind}"

    def _elapsed(self) -> float:
        """The seconds that have passed since the program began, without those between two processes."""
        now = self._world.clock.monotonic()
        if self._start is None:
            self._start = now - self.seconds
        return max(round(now - self._start, 6), self.seconds)

    # --- the loop outside -------------------------------------------------------------------------

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        """The loop outside, which a program that only repeats its records doesn't need."""
        if self._outer is None:
            self._outer = asyncio.new_event_loop()
        return self._outer

    def _in_loop(self, coroutine: Coroutine[Any, Any, T]) -> T:
        self._hear()
        return self._loop.run_until_complete(coroutine)

    def _hear(self) -> None:
        if self._wakeful is None:
            self._wakeful = Wakeful(self._loop)

    def _wait(self, seconds: float | None) -> None:
        """Let the loop outside go on until an effect has ended, the seconds are over, or the run is asked to
        end. Each turn of the loop has its price: a coroutine that waits for that would cost three."""
        if self._is_to_end() or self._ended or self._is_called_off():
            return
        self._hear()
        timer = None if seconds is None else self._loop.call_later(seconds, self._wake)
        self._is_waiting = True
        try:
            self._loop.run_forever()
        finally:
            self._is_waiting = False
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        if self._is_waiting:
            self._loop.stop()

    def look(self, seconds: float) -> None:
        """Let so much time pass for something that isn't recorded."""
        self._wait(seconds)
        if not (self.is_over or self._is_busy()):
            self._ask(self._run.check)

    @property
    def has_gone_outside(self) -> bool:
        """Whether anything may be open in the loop outside."""
        return self._outer is not None

    def outside(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine outside of the program, whose result it doesn't see: what closes things."""

        async def run() -> T:
            _INSIDE.set(True)
            return await coroutine

        return self._in_loop(run())

    def serve(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine of the program beside it, until its end at most."""
        assert self._tasks is not None
        return self._tasks.serve(coroutine)

    def hold(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """In an effect: begin a coroutine that goes on outside, where `close` ends it at the latest."""
        task = self._loop.create_task(coroutine)
        self._holding.add(task)  # asyncio itself lets go of a task that nobody refers to
        task.add_done_callback(self._holding.discard)
        return task

    def close(self) -> None:
        """End what still runs outside."""
        if self._ticker is not None:
            self._ticker.stop()
        if self._outer is None:
            return
        with suppress(RuntimeError):  # an effect may have ended with the process's own end
            self._in_loop(end_tasks())
            self._in_loop(close_generators())
        if self._wakeful is not None:
            self._wakeful.close()
        self._loop.close()

    # --- output -----------------------------------------------------------------------------------

    def write(self, write: Callable[[str], object], text: str) -> None:
        """Print ``text``, once it is recorded that it was printed."""
        if self.is_over:
            if self.ending is None:
                write(text)
            return
        if _INSIDE.get() or not self._has_begun or get_ident() != self._thread:
            write(text)
            return
        self._printed.append((write, text))
        self._size += len(self._as_recorded(text))
        if self._awaits_output():
            self._skip_if_printed()
        elif self._size >= _MOST_PRINTED:
            self.flush()
        elif self._ticker is None:
            self._ticker = Ticker(_TICK, self._tick)

    def flush(self) -> None:
        """Record what was held back, then print what is recorded."""
        if self._awaits_output() or self.is_over or not (self._held or self._printed):
            return
        steps, printed = self._held, self._printed
        if self._size:  # not where only what was printed before is to be shown
            self.anew(f"output/{self._outputs + 1}:{OUTPUT}")
            self._outputs += 1
            steps.append(Step(f"output/{self._outputs}:{OUTPUT}", self._fact()))
        self._is_due = False
        self._held, self._printed, self._size = [], [], 0
        if steps:
            self._ask(lambda: self._run.record(*steps))
        for write, text in printed:
            write(text)
        if printed:
            self._world.streams.write_err("")  # which has shown before what was printed before

    def _awaits_output(self) -> bool:
        """Return whether the record may say that what is printed now was printed already."""
        return self.is_repeated()

    def _fact(self) -> list[int]:
        """How many characters wait to be printed, and a sum of them."""
        printed = "".join(self._as_recorded(text) for _, text in self._printed)
        return [self._size, crc32(printed.encode("utf-8", "replace"))]

    def _as_recorded(self, text: str) -> str:
        return text if self.masking is None else self.masking.text(text)

    def _show_again(self) -> None:
        """What is printed was printed already: nobody needs it twice."""

    def _advance(self, asked: Json = None) -> None:
        """The next record is given out, for what is asked for now."""
        self._next += 1
        if self.is_repeated():
            self._skip_if_printed()
        elif self._is_trial:
            self._have_looked()

    def _skip_if_printed(self) -> None:
        """Forget the output so far if the record says here that an earlier process has printed as much."""
        _, step = self._recorded[self._next]
        if _is_output(step) and self._size >= step.output[0]:
            self._skip_printed(step)

    def _skip_printed(self, step: Step) -> None:
        if self._fact() != step.output:
            self._part(f"other output, of {self._size} characters", self._task(), step)
            return
        self._show_again()
        self._printed, self._size = [], 0
        self._outputs += 1
        self._advance()

    def _tick(self) -> None:
        """In another thread: have the program print what it has, if anything waits."""
        if self._printed or self._is_asked_to_end or self._is_leaving:
            self._is_due = True
            if self._tasks is not None:
                self._tasks.signal.watch()

    # --- while the program computes: as `harnpy.vm.run.aio.Turns` ----------------------------------

    def poll(self) -> None:
        """Between two turns of a loop of the program."""
        if self.is_due():
            self.take()

    def is_due(self) -> bool:
        self._count_turn()
        is_tried = self._is_trial and self._has_begun and not self.is_repeated()
        return self._is_due or is_tried or self._is_to_end() or self.ending is not None

    def take(self) -> None:
        """Do what can't wait: print, or end. Raises `Ending`."""
        if self.ending is not None:
            raise self.ending
        if self._is_trial and self._has_begun and not self.is_repeated():
            self.renews()
        if self._is_to_end():
            self._ask(self._run.check)
        if self._is_due:
            self.flush()
            self._is_due = False
            if self._tasks is not None:
                self._tasks.signal.watched, unseen = self._tasks.limited, self._tasks.unseen
                self._tasks.refresh()
                self._tasks.unseen = unseen

    def _count_turn(self) -> None:
        """Let a deadline strike while a task computes: after so many turns of tasks that have one, which are
        as many in every process."""
        assert self._tasks is not None
        task: Task | None = self._tasks.current
        deadlines = [] if self.limit() == inf else [self.limit()]
        while task is not None:
            deadlines += task.deadlines
            task = task.parent
        if not deadlines or self.passes():
            return
        self._turns += 1
        if self.is_repeated():
            _, step = self._recorded[self._next]
            if step.key == f"turn/{self._turns}:{TIME}":
                self._advance()
                self.seconds = step.output["at"]
        elif self._turns % _GLANCE == 0 and self._elapsed() >= min(deadlines) > self.seconds:
            self.seconds = self._elapsed()
            self._hold(Step(f"turn/{self._turns}:{TIME}", {"at": self.seconds}))

    # --- the end ----------------------------------------------------------------------------------

    def ending_with(self, run: Callable[[Callable[[], T]], T]) -> Callable[[Callable[[], T]], T]:
        """Return ``run``, which runs a program, so that what is done when it has ended isn't recorded."""

        def whole(body: Callable[[], T]) -> T:
            try:
                value = run(body)
                self.end()
                return value
            except Ending:
                raise
            except Exception:
                self.end()
                raise
            except Leaving:
                self.end()
                raise
            finally:
                self.is_over = self._has_left = True

        return whole

    def end(self) -> None:
        """The program has come to its end: record and print what is left."""
        step = self._head()
        if step is not None:
            self._part("", None, step)
        self.flush()

    def _ask_to_end(self) -> None:
        """In another thread: the run was cancelled, or is another worker's."""
        self._is_asked_to_end = True
        self._have_looked()

    def _ask_to_leave(self) -> None:
        """In another thread: another worker is to have the run. What is under way may end before that."""
        self._is_leaving = True
        self._have_looked()

    def _have_looked(self) -> None:
        if self._tasks is not None:
            self._tasks.signal.watch()
        self.rouse()

    def rouse(self) -> None:
        """Have the program look up if it waits, from any thread."""
        if self._outer is not None:
            with suppress(RuntimeError):  # the loop is closed: the program has ended
                self._outer.call_soon_threadsafe(self._wake)

    def _ask(self, call: Callable[[], T]) -> T:
        """Ask the run, which may say that it is over. No program can catch that."""
        try:
            return call()
        except BaseException as error:
            self.ending = Ending(error)
            self.is_over = True
            raise self.ending from error

    def _head(self) -> Step | None:
        """The next record, of which the program must ask for the effect; none if there are no more."""
        while self.is_repeated():
            _, step = self._recorded[self._next]
            if not _is_output(step):
                return step
            self._skip_printed(step)
        return None

    def _diverged(self, asked: str, task: Task | None, step: Step) -> Ending:
        """The program asks for something else than the record has."""
        number, _ = self._recorded[self._next]
        what = f"{asked or 'nothing more'}{self.place(task)}"
        error = ReplayDiverged(self._run.run_id, what, step.key, number)
        self.ending = Ending(error)
        self.is_over = True
        return self.ending

    def place(self, task: Task | None) -> str:
        """Return where a task of the program is, as " at file:line:column"; empty if that isn't known."""
        frame = sys._getframe() if task is None or task.greenlet is None else task.greenlet.gr_frame
        if self._tasks is not None and task is self._tasks.current:
            frame = sys._getframe()
        return place_in_program(frame)


def _is_fact(step: Step) -> bool:
    return step.key.endswith(f":{ENV}")


def _is_output(step: Step) -> bool:
    return step.key.endswith(f":{OUTPUT}")
