"""The journal of a program on a tape: recorded, replayed, or continued live behind its records. Spec: 13 §3.

Unlike that of a durable run it records what each effect was asked for, so that another program is told from
the recorded one at the first effect that differs, and it shows again what was printed.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from harnpy.durable.journal import (
    ENV,
    MODEL,
    OUTPUT,
    PIECE,
    SESSION,
    TOOL,
    WAIT,
    WRITE,
    Ending,
    Journal,
    NotDurable,
)  # fmt: skip
from harnpy.durable.values import Unreadable, decode, decode_error, told
from harnpy.formats.manifest import VARIABLE as TRUST
from harnpy.tape.description import kind_of
from harnpy.tape.digests import Digests
from harnpy.tape.directory import changed_in
from harnpy.tape.redaction import Redaction
from harnpy.tape.rules import TapeDiverged
from harnpy.tape.tapes import TapeError
from harnpy.vm.errors import CalledOff, ExitRequest
from harnpy.vm.run.backtrace import harn_frames
from harnpy.vm.run.scheduler import places_in_program
from harnpy.workflow.engines.contract import Step

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
    from typing import Any

    from harnpy.durable.journal import Asked
    from harnpy.llm.reply import Reply
    from harnpy.llm.request import Request
    from harnpy.tape.directory import Changed
    from harnpy.tape.known_files import KnownFiles
    from harnpy.tape.rules import Rules
    from harnpy.tape.tapes import Tape, TapeWriter
    from harnpy.vm.run.tasks import Task
    from harnpy.workflow.engines.contract import Json
    from harnpy.world import World

    T = TypeVar("T")

#: How often a replay looks for what another thread of the program may bring: for two seconds or so.
_MOST_LOOKS: Final = 40


#: The tool of an agent whose call the running code is part of.
_TOOL: ContextVar[str | None] = ContextVar("tool of the tape", default=None)


class TapeRun:
    """What the journal of a tape is given as its run: the records, and where new ones go."""

    attempt = 1

    def __init__(self, name: str, steps: Sequence[Step], writer: TapeWriter | None) -> None:
        self.run_id = name
        self.recorded = steps
        self._writer = writer

    def record(self, *steps: Step) -> None:
        """Write the steps to the tape that is made, if one is."""
        if self._writer is not None:
            self._writer.write(steps)

    def stop(self) -> None:
        """Write no more steps."""
        self._writer = None

    def check(self) -> None:
        """Do nothing: nobody else ends it."""

    def on_end(self, call: Callable[[], None]) -> None:
        """Do nothing: nobody else ends it."""


class Follower:
    """Hears of what a program on a tape does, and has answers behind the end of its records.

    A subclass defines the methods that it needs: by itself a follower lets everything take its course.
    """

    def asked(self, key: str) -> None:
        """The program has asked for the effect with this key."""

    def printed(self, write: Callable[[str], object], text: str) -> None:
        """The program has printed a text, which ``write`` shows."""

    def changed(self, changed: Changed) -> None:
        """The program has come to a record that says what processes have changed."""

    def parted(self, difference: TapeDiverged) -> None:
        """The program has left its records here, and goes on without them."""

    def live(self) -> None:
        """The program is about to have the first effect without a record. May raise `Ending`."""

    def ended(self) -> None:
        """The program has come to its end, and to that of its records. May raise `Ending`."""

    def reply(self, asked: Callable[[], Json]) -> Reply | None:
        """Return the reply to a call of a model that has no record of its own, if it is known. ``asked``
        returns what the model is asked."""
        return None

    def pieces(self, key: str) -> Sequence[Step] | None:
        """Return what the tape has of the reply to the call with this key, behind the pieces that are among
        the records; None where those have none or all of it."""
        return None


class TapeJournal(Journal):
    """``tape`` has the records, if there are any; new ones go to ``writer``, if there is one."""

    #: That a tool begins is only noted.
    unnoticed = Journal.unnoticed | {TOOL}

    def __init__(
        self,
        world: World,
        rules: Rules,
        *,
        tape: Tape | None = None,
        steps: Sequence[Step] | None = None,
        writer: TapeWriter | None = None,
        masking: Redaction | None = None,
    ) -> None:
        name = tape.path if tape is not None else writer.path if writer is not None else "tape"
        given = (tape.steps if tape is not None else ()) if steps is None else steps
        if not rules.compares_output:
            given = [step for step in given if not step.key.endswith(f":{OUTPUT}")]
        if not rules.is_closed:
            given = [step for step in given if not is_decision(step.key)]
        run = TapeRun(name, given, writer)
        super().__init__(run, world)  # type: ignore[arg-type]
        self._stop_writing = run.stop
        self.compares = True
        self.masking: Redaction = Redaction() if masking is None else masking
        self.digests = Digests()
        #: What was edited since the tape was made, each as ``file:line``.
        self.edited: list[str] = []
        #: The run's directory: places in it are named from there.
        self.cwd = ""
        if writer is not None:
            writer.redaction = self.masking
        self.rules = rules
        self.tape = name
        self.may_have_happened = False
        self.follower: Follower = Follower()
        #: Returns what is asked of a model in place of a request, given the key of the call.
        self.change: Callable[[str, Request], Request] = lambda key, request: request
        #: What the records say of files beside what was asked for, if they are made.
        self.files: KnownFiles | None = None
        #: How many calls of models came from the records, and how many were made.
        self.calls_repeated = self.calls_made = 0
        self._copies = self._is_writing = writer is not None
        #: Sessions, each with its kind, to which the program has appended something else than is recorded;
        #: and whether what it appends there is being written again.
        self._rewritten: set[tuple[str, str]] = set()
        self.is_rewriting = False
        self._is_live = False
        self._is_at_end = False
        self._looks = 0
        self._is_whole = tape is None or tape.end is not None

    @property
    def is_closed(self) -> bool:
        """Whether nothing happens that isn't recorded."""
        return self.rules.is_closed

    @property
    def is_live(self) -> bool:
        """Whether an effect was had that has no record."""
        return self._is_live

    @property
    def step(self) -> int:
        """The number of records that were given out."""
        return self._next

    @property
    def tool(self) -> str | None:
        """The agent's tool that is being called, if the running code is part of a call."""
        return _TOOL.get()

    def write(self, write: Callable[[str], object], text: str) -> None:
        """Print ``text``, once it is recorded or its record is met."""
        self._cut_where_stopped()
        self.follower.printed(write, text)
        if not self.is_aside:
            super().write(write, text)

    def _new_key(self, task: Task | None, kind: str) -> str:
        self._refuse_aside()
        self._cut_where_stopped()
        key = super()._new_key(task, kind)
        self.follower.asked(key)
        return key

    def _cut_where_stopped(self) -> None:
        """Record nothing more where the run was stopped from outside: a replay doesn't know when that was, so
        it can't do what cleans up."""
        if self._is_writing and sys.exc_info()[1] is not None and is_stopped():
            self._is_writing = False
            self.flush()
            self._stop_writing()

    def _refuse_aside(self) -> None:
        if self.is_aside:
            raise NotDurable("an expression has no effects in a recorded run: it sees only what is there")

    @property
    def has_begun(self) -> bool:
        """Whether the program runs or has run: it could be read and checked."""
        return self._has_begun

    def met(self) -> list[Step]:
        """Return the records that were given out."""
        return [step for _, step in self._recorded[: self._next]]

    def remaining(self) -> list[Step]:
        """Return the records that weren't given out yet."""
        return [step for _, step in self._recorded[self._next :]]

    def reply_to(self, asked: Asked) -> Reply | None:
        """Return the reply to a call of a model that has no record; None when it has to be made."""
        known = self.follower.reply(lambda: self._wanted(asked))
        if known is not None:
            self.calls_repeated += 1
            self.calls_made -= 1
        return known

    def renew(self, steps: Iterable[Step]) -> None:
        """Have these take the place of the records with the same keys, before the program begins."""
        anew = {step.key: step for step in steps}
        self._recorded = [(number, anew.get(step.key, step)) for number, step in self._recorded]

    def changed(self, request: Request) -> Request:
        """Return what is asked of a model in place of ``request``, which the running task is about to ask."""
        return self.change(self._next_key(self._task(), MODEL), request)

    def rest(self) -> Sequence[Step] | None:
        """Return what the tape has of the reply to the call that the running task is about to make, behind
        the pieces that are among the records; None where the records have none or all of it."""
        return self.follower.pieces(self._next_key(self._task(), MODEL))

    def note(self, name: str, value: Json) -> None:
        """Have a fact on the tape that is made which the program doesn't ask for."""
        if self._copies:
            self._hold(Step(f"{name}:{ENV}", {"ok": value}))

    def warn(self, message: str) -> None:
        """Warn the person who records, if the program is on a tape that is made."""
        if self._copies:
            self._world.warn("tape", message)

    def refuse(self, error: TapeError) -> Ending:
        """Return the end of a program that can't go on as it should, to be raised."""
        self.ending, self.is_over = Ending(error), True
        return self.ending

    def at_once(self, kind: str, act: Callable[[], T], asked: Asked | None = None) -> T:
        if kind == WRITE and self.files is not None and asked is not None:
            asked = cache(asked)
            act = self.files.writing(act, asked)
        if kind not in (WRITE, SESSION) or not self.rules.rewrites:
            return super().at_once(kind, act, asked)
        acted = False

        def once() -> T:
            nonlocal acted
            acted = True
            return act()

        value = super().at_once(kind, once, asked)
        if kind == SESSION:
            if not acted and self._rewritten and self._is_rewritten(self._wanted(asked)):
                self.is_rewriting = True
                try:
                    act()
                finally:
                    self.is_rewriting = False
        elif not acted:
            # What a process had put there is missing: then the records are all that is known.
            with suppress(OSError):
                act()
        return value

    def _is_rewritten(self, asked: Json) -> bool:
        return _is_append(asked) and (asked[1], asked[2]) in self._rewritten

    async def of_process(
        self, name: str, kind: str, begin: Callable[[], Awaitable[T]], asked: Asked | None = None
    ) -> T:
        """As `waited`, for an effect of the process ``name``, which may have changed files by then."""
        if self.files is not None:
            self.files.expect(self._next_key(self._task(), kind), name)
        return await self.waited(kind, begin, asked)

    def _begin(self, effect: Any) -> None:
        if self.files is not None:
            self.files.begin(effect.key)
        super()._begin(effect)

    async def waited(self, kind: str, begin: Callable[[], Awaitable[T]], asked: Asked | None = None) -> T:
        if kind == WRITE and self.files is not None and asked is not None:
            begin = self.files.writing_later(begin, asked)
        if kind != WRITE or not self.rules.rewrites:
            return await super().waited(kind, begin, asked)
        begun = False

        async def once() -> T:
            nonlocal begun
            begun = True
            return await begin()

        value = await super().waited(kind, once, asked)
        if not begun:
            with suppress(OSError):
                await begin()
        return value

    def begin(self) -> None:
        """The program begins. A tape that is made of another one has what that knew of the outside."""
        self._has_begun = True
        self._thread = get_ident()  # a Vm may run elsewhere than where it was made
        if self._copies:
            self._held += [step for step in self._run.recorded if step.key.endswith(f":{ENV}")]

    def end(self) -> None:
        self._is_at_end = True
        super().end()
        self.follower.ended()

    def leave(self) -> None:
        """Record what a program has looked up that didn't begin: it is none, or can't be compiled."""
        if not self._has_begun:
            held, self._held = self._held, []
            self._run.record(*held)

    def _look_anew(self, name: str) -> None:
        self._refuse_aside()
        if self.is_closed:
            raise self._bare(self._parted((f"{name}:{ENV}", None), None, self._task()))

    def renews(self) -> bool:
        """Return whether anything is done outside of the records."""
        return not self.is_closed

    def anew(self, key: str, asked: Json = None) -> None:
        """An effect has no record. Raises `Ending` where nothing else may happen."""
        if self.is_closed and not self.is_over and not (self.rules.remakes and kind_of(key) == OUTPUT):
            raise self._parted((key, asked), None, self._task())
        self._elapsed()
        if not self._is_live and kind_of(key) != OUTPUT:
            self._is_live = True
            try:
                self.follower.live()
            except Ending:
                self._is_live = False
                raise

    def _written(
        self, key: str, value: object, error: Exception | None, asked: Json
    ) -> tuple[dict[str, Json], Exception | None]:
        output, error = super()._written(key, value, error, asked)
        if self.files is not None:
            self.files.record(key, asked, output, is_done=error is None)
        # Before the program has it: what it does with it then is masked in the same way.
        self.masking.learn_from_effect(key, output)
        self.calls_made += kind_of(key) == MODEL
        return output, error

    def _came_to(self, step: Step) -> Any:
        try:
            return super()._came_to(step)
        except Ending as over:
            raise self._bare(over) from None

    def _bare(self, over: Ending) -> BaseException:
        """Return what ends the run: before the program begins there is nothing to unwind."""
        return over if self._has_begun else over.error

    def _unread(self, step: Step, what: Exception) -> BaseException:
        number = effects_in(step for _, step in self._recorded[: self._next])
        return TapeError(f"{self.tape} is damaged at effect {number}, {step.key}: record the run again")

    def look(self, seconds: float) -> None:
        """Let time pass for what another thread brings. In a replay nobody brings anything from outside."""
        self._looks += 1
        if self.is_closed and not self.is_over and self._looks > _MOST_LOOKS:
            raise self._parted((self._next_key(None, WAIT), None), None, None)
        super().look(seconds)

    def _agrees(self, step: Step, asked: Json) -> bool:
        recorded = step.output.get("asked")
        if recorded == asked:
            return True
        if self.rules.rewrites and kind_of(step.key) == SESSION and _appends_alike(recorded, asked):
            self._rewritten.add((asked[1], asked[2]))
            return True
        return self.rules.remakes or (not self.rules.compares and step.key.endswith(_OF_MODELS))

    def _part(self, asked: str, task: Task | None, step: Step, wanted: Json = None) -> None:
        if kind_of(step.key) == OUTPUT:  # of the records that it isn't, nothing but a sum is known
            printed = "".join(self._as_recorded(text) for _, text in self._printed)
            asked, wanted = step.key if printed else "", told(printed)
        parted = self._parted((asked, wanted) if asked else None, step, task)
        if not self.rules.may_part:
            raise parted
        self.ending, self.is_over = None, False
        self.follower.parted(parted.error)  # type: ignore[arg-type]
        del self._recorded[self._next :]

    def _parted(self, asked: tuple[str, Json] | None, step: Step | None, task: Task | None) -> Ending:
        """Return the end of a program that differs from its record ``step``; None: there is none."""
        if not self.rules.may_part:
            self._show_again()
            self._printed, self._size = [], 0
        recorded = None if step is None else (step.key, _asked_of(step))
        number = effects_in(step for _, step in self._recorded[: self._next]) + 1
        place = self.place(task)
        if step is None and not self._is_whole:
            error: TapeError = TapeError(
                f"{self.tape} was cut off after effect {number - 1}: the program goes on{place}"
            )
        else:
            failure = self._failure(sys.exc_info()[1]) if asked is None and self._is_at_end else ""
            error = TapeDiverged(self.tape, number, place, asked, recorded, self.edited, failure)
        return self.refuse(error)

    def _failure(self, error: BaseException | None) -> str:
        """Return how the program ends early by what is raised."""
        if error is None:
            return ""
        if isinstance(error, ExitRequest):
            return f"ends with status {error.code}"
        frames = harn_frames(error.__traceback__)
        at = f" at {frames[0].unit.file}:{frames[0].line}:{frames[0].column}" if frames else ""
        return f"fails{at}: {error}"

    def place(self, task: Task | None) -> str:
        """Return where a task of the program is, " at file:line:column": in a file of the program's own if it
        has come from one, with the place in a bundled module behind it."""
        inner = ""
        while True:
            frame = None if task is None or task.greenlet is None else task.greenlet.gr_frame
            if task is None or self._tasks is None or task is self._tasks.current or task.parent is None:
                frame = frame or sys._getframe()
            for place, is_own in places_in_program(frame):
                if is_own:
                    place = place.removeprefix(self.cwd.rstrip("/") + "/")
                    return f" at {place}{f' (in {inner})' if inner else ''}"
                inner = inner or place
            task = task.parent if task is not None else None
            if task is None:
                return f" at {inner}" if inner else ""

    def _advance(self, asked: Json = None) -> None:
        _, step = self._recorded[self._next]
        self.calls_repeated += kind_of(step.key) == MODEL
        if self._copies:
            output = step.output if asked is None else {**step.output, "asked": asked}
            self._hold(Step(step.key, output))
        try:
            changed = changed_in(step.output)
        except (Unreadable, ValueError, TypeError, LookupError, AttributeError) as what:
            self._next += 1
            self.ending, self.is_over = Ending(self._unread(step, what)), True
            raise self.ending from None
        if changed.files:
            self.follower.changed(changed)
        super()._advance(asked)

    def _awaits_output(self) -> bool:
        return self.rules.compares_output and self.is_repeated()

    def _show_again(self) -> None:
        for write, text in self._printed:
            write(text)

    @contextmanager
    def calling(self, tool: str, policy: str) -> Iterator[None]:
        """A block in which an agent's tool runs: that it begins is an effect."""
        self.at_once(TOOL, lambda: tool, lambda: tool)
        token = _TOOL.set(tool)
        try:
            yield
        finally:
            _TOOL.reset(token)


def is_stopped() -> bool:
    """Return whether the code that runs now cleans up after a run that was stopped: by a signal, or by
    `Vm.cancel`."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, KeyboardInterrupt | CalledOff):
        error = error.__context__
    return error is not None


def effects_in(steps: Iterable[Step]) -> int:
    """Return how many of the steps are effects that the program asks for."""
    return sum(kind_of(step.key) not in (ENV, OUTPUT) for step in steps)


def given(step: Step) -> Any:
    """Return, or raise, what a record says that an effect came to."""
    if "error" in step.output:
        raise decode_error(step.output["error"])
    return decode(step.output["ok"])


def is_decision(key: str) -> bool:
    """Return whether a fact is whether a person trusts something: the person of then, on that machine."""
    return key.endswith(f":{ENV}") and (key == f"variable/{TRUST}:{ENV}" or is_of_decisions(key))


def is_of_decisions(path: str) -> bool:
    """Return whether a path is that of a decision about trust, or of their directory (09 §12.1)."""
    return "/harn/trust/" in path


def _is_append(asked: Any) -> bool:
    return isinstance(asked, list) and len(asked) == 5 and asked[0] == "append"


def _appends_alike(one: Any, other: Any) -> bool:
    """Return whether both append as many events of the same kinds at the same place of a session."""
    if not _is_append(one) or not _is_append(other) or one[:4] != other[:4]:
        return False
    return [kind for kind, _ in one[4]] == [kind for kind, _ in other[4]]


#: What comes of a model.
_OF_MODELS = (f":{MODEL}", f":{PIECE}")


def _asked_of(step: Step) -> Json:
    return step.output.get("asked") if isinstance(step.output, dict) else step.output
