"""Session runtimes on tapes: `runtime(record="run.tape")`, `runtime(replay="run.tape")`. Spec: 13 §4.

A Python program isn't run by us, so what runs at the same time isn't put into one order. Effects are in
order within a *strand*: each turn of an agent is one, and each thread that calls the runtime, by its name. A
tool is one effect: what a Python function does inside isn't known.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from threading import Lock, current_thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

from harnpy.agent.factory.build import AgentBuild
from harnpy.agent.factory.loops import LoopFactory
from harnpy.durable.journal import ENV, ID, NOW, TOOL
from harnpy.durable.recorded import RecordedWorld
from harnpy.durable.stores import RecordedStore
from harnpy.durable.values import (
    Unreadable,
    Unrecordable,
    decode,
    decode_error,
    encode,
    encode_error,
    told,
    told_without_secrets,
)
from harnpy.session.runtime import SessionRuntime
from harnpy.session.stores import store_settings
from harnpy.storage.opening import open_store
from harnpy.tape.digests import Digests
from harnpy.tape.models import TapedProvider
from harnpy.tape.parts import TapedEnvironment, TapedPeople
from harnpy.tape.redaction import LearningRedaction
from harnpy.tape.rules import TapeDiverged
from harnpy.tape.tapes import COMPLETED, LAYOUT, End, Header, TapeError, TapeWriter, read_tape
from harnpy.version import __version__
from harnpy.workflow.engines.contract import Job, Step
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping
    from os import PathLike

    from harnpy.agent.factory.runner import LoopRunner, TurnConnections, TurnTasks
    from harnpy.durable.journal import Asked
    from harnpy.formats.dicts import Dict
    from harnpy.llm.call import Models
    from harnpy.llm.request import Request
    from harnpy.session.agents import AgentDef
    from harnpy.session.calling import Caller
    from harnpy.session.transaction import Txn
    from harnpy.tape.tapes import Tape
    from harnpy.workflow.engines.contract import Json

    T = TypeVar("T")

#: What the job of such a tape is called.
RUNTIME: Final = "runtime"
MEMORY: Final = "memory"

#: Whether the running code is part of an effect.
_INSIDE: ContextVar[bool] = ContextVar("inside an effect of a runtime", default=False)


def taped_runtime(
    url: str | None,
    agents: LoopFactory,
    record: str | PathLike[str] | None,
    replay: str | PathLike[str] | None,
    options: Mapping[str, Any],
) -> SessionRuntime:
    """Return a runtime whose agents and store are recorded to ``record``, or answered by ``replay``.

    Raises `TapeError`.
    """
    if replay is not None:
        tape = read_tape(replay)
        if tape.job.kind != RUNTIME:
            raise TapeError(f"{tape.path} is a program's tape: `harnpy replay {tape.path}` replays it")
        return _TapedRuntime(_Strands(tape=tape), "memory:", tape.job.store == MEMORY, agents, options)
    assert record is not None
    url = url or store_settings(World()).url
    writer, clock = TapeWriter(record), World().clock
    job = Job(RUNTIME, "runtime", {}, url.partition(":")[0])
    writer.begin(Header(LAYOUT, __version__, job, clock.now()))
    return _TapedRuntime(_Strands(writer=writer), url, job.store == MEMORY, agents, options)


class _Strands:
    """What all strands of a runtime share: the tape."""

    def __init__(self, *, tape: Tape | None = None, writer: TapeWriter | None = None) -> None:
        self._writer = writer
        self._begun = World().clock.monotonic()
        self._lock = Lock()
        self._strands: dict[str, _Strand] = {}
        self._turns: dict[str, int] = {}
        self.masking = LearningRedaction()
        self.masking.learn_variables(World().environment.all())
        if writer is not None:
            writer.redaction = self.masking
        self.name = tape.path if tape is not None else writer.path if writer is not None else ""
        self.is_closed = tape is not None
        #: The steps of a replay by their key, each with its number.
        self.recorded = {step.key: (n, step) for n, step in enumerate(tape.steps if tape else (), 1)}

    def strand(self, name: str) -> _Strand:
        """Return the strand of that name."""
        with self._lock:
            return self._strands.setdefault(name, _Strand(self, name))

    def turn(self, session: str) -> _Strand:
        """Return the strand of a session's next turn."""
        with self._lock:
            number = self._turns[session] = self._turns.get(session, 0) + 1
        return self.strand(f"{session}:{number}")

    def write(self, step: Step) -> None:
        """Append a step to the tape, unless the runtime has been closed."""
        with self._lock:
            if self._writer is not None:
                self._writer.write([step])

    def end(self) -> None:
        """The runtime is closed."""
        with self._lock:
            writer, self._writer = self._writer, None
        if writer is not None:
            writer.end(End(COMPLETED, seconds=round(World().clock.monotonic() - self._begun, 6)))


class _Strand:
    """The journal of what happens one after the other: as `Journal`, for a program that isn't ours."""

    may_have_happened = False
    #: Whether what effects are asked for is recorded with them.
    compares = True
    is_aside = False

    def __init__(self, strands: _Strands, name: str) -> None:
        self._strands = strands
        self._name = name
        self._count = 0
        self.is_closed = strands.is_closed
        self.masking = strands.masking
        self.digests = Digests()

    def passes(self) -> bool:
        """Return whether what is asked for now is part of an effect."""
        return _INSIDE.get()

    def renews(self) -> bool:
        """Return whether anything is done outside of the tape."""
        return not self.is_closed

    def at_once(self, kind: str, act: Callable[[], T], asked: Asked | None = None) -> T:
        """Return what ``act()`` returns, or what it did when this was recorded. Raises what it raises."""
        if self.passes():
            return act()
        key, wanted = self._next(kind, asked)
        if self.is_closed:
            known: T = self._known(key, wanted)
            return known
        token = _INSIDE.set(True)
        try:
            value = act()
        except Exception as error:
            self._keep(key, wanted, error=error)
            raise
        finally:
            _INSIDE.reset(token)
        self._keep(key, wanted, value)
        return value

    async def waited(self, kind: str, begin: Callable[[], Awaitable[T]], asked: Asked | None = None) -> T:
        """Return what ``await begin()`` returns, or what it did when this was recorded."""
        if self.passes():
            return await begin()
        key, wanted = self._next(kind, asked)
        if self.is_closed:
            known: T = self._known(key, wanted)
            return known
        with _inside():
            try:
                value = await begin()
            except Exception as error:
                self._keep(key, wanted, error=error)
                raise
        self._keep(key, wanted, value)
        return value

    def fact(self, name: str, look: Callable[[], T], is_kept: Callable[[T], bool] = lambda value: True) -> T:
        """Return what ``look()`` returns, or what it did when this was first asked for on any strand."""
        key, strands = f"{name}:{ENV}", self._strands
        if key not in strands.recorded:
            if self.is_closed:
                raise TapeDiverged(strands.name, len(strands.recorded) + 1, "", (key, None), None)
            try:
                output: dict[str, Json] = {"ok": encode(look(), utf8=True)}
            except OSError as error:
                output = {"error": encode_error(error)}
            step = Step(key, output)
            strands.recorded[key] = (0, step)
            strands.write(step)
        known: T = self._outcome(strands.recorded[key][1])
        return known

    def changed(self, request: Request) -> Request:
        """Return the request: nothing changes it."""
        return request

    def rest(self) -> None:
        """Return None: a reply is on the tape as a whole, or in none of its pieces."""

    def reply_to(self, asked: Asked) -> None:
        """Return None: a call that isn't recorded is made."""

    def _next(self, kind: str, asked: Asked | None) -> tuple[str, Json]:
        self._count += 1
        return f"{self._name}/{self._count}:{kind}", None if asked is None else told_without_secrets(
            asked, self.masking
        )

    def _keep(self, key: str, asked: Json, value: Any = None, error: Exception | None = None) -> None:
        output: dict[str, Json] = {} if asked is None else {"asked": asked}
        if error is None:
            try:
                output["ok"] = encode(value, utf8=True)
            except Unrecordable as what:
                raise TapeError(f"{key} came to {what}, which a tape can't hold: return plain data") from None
        else:
            output["error"] = encode_error(error)
        self.masking.learn_from_effect(key, output)
        self._strands.write(Step(key, output))

    def _known(self, key: str, asked: Json) -> Any:
        strands = self._strands
        number, step = strands.recorded.get(key, (0, None))
        if step is None:
            prefix = key.rpartition(":")[0] + ":"
            other = next((each for each in strands.recorded if each.startswith(prefix)), None)
            if other is None:
                raise TapeDiverged(strands.name, len(strands.recorded) + 1, "", (key, asked), None)
            number, step = strands.recorded[other]
        if step.key != key or step.output.get("asked") != asked:
            recorded = (step.key, step.output.get("asked"))
            raise TapeDiverged(strands.name, number, "", (key, asked), recorded)
        return self._outcome(step)

    def _outcome(self, step: Step) -> Any:
        output = step.output
        try:
            if "error" not in output:
                return decode(output["ok"])
            error = decode_error(output["error"])
        except Unreadable as what:
            raise TapeError(f"{self._strands.name} can't be replayed from '{step.key}': {what}") from None
        raise error


@contextmanager
def _inside() -> Iterator[None]:
    token = _INSIDE.set(True)
    try:
        yield
    finally:
        _INSIDE.reset(token)


class _Here:
    """The journal of whichever thread calls."""

    may_have_happened = False
    is_aside = False

    def __init__(self, strands: _Strands) -> None:
        self._strands = strands

    def __getattr__(self, name: str) -> Any:
        return getattr(self._strands.strand(current_thread().name), name)


class _Clock:
    """A clock whose times are recorded. Nobody sleeps in a replay."""

    def __init__(self, clock: Any, journal: Any) -> None:
        self._clock = clock
        self._journal = journal

    def now(self) -> float:
        return self._journal.at_once(NOW, self._clock.now)  # type: ignore[no-any-return]

    def monotonic(self) -> float:
        return self._journal.at_once(NOW, self._clock.monotonic)  # type: ignore[no-any-return]

    def sleep(self, seconds: float | None) -> None:
        if self._journal.renews():
            self._clock.sleep(seconds)


class _Ids:
    def __init__(self, ids: Any, journal: Any) -> None:
        self._ids = ids
        self._journal = journal

    def new(self) -> str:
        return self._journal.at_once(ID, self._ids.new)  # type: ignore[no-any-return]


class _Build(AgentBuild):
    """An agent whose tools' calls are effects."""

    def __init__(self, definition: AgentDef, session: Txn, world: World, tasks: TurnTasks, strand: _Strand):
        super().__init__(definition, session, world, tasks)
        self._strand = strand

    def add_entry(self, entry: Dict) -> None:
        handler, name = entry.get("handler"), entry["name"]
        if callable(handler):

            def call(arguments: Dict) -> Any:
                asked = lambda: [name, told(arguments)]  # noqa: E731
                return self._strand.at_once(TOOL, lambda: handler(arguments), asked)

            entry = {**entry, "handler": call}
        super().add_entry(entry)


class _TurnLoops(LoopFactory):
    """The factory of one turn, whose world and models are on its strand."""

    def __init__(self, loops: LoopFactory, strand: _Strand) -> None:
        self.__dict__.update(loops.__dict__)
        real, journal = loops._world, strand
        cwd = real.files.cwd()
        parts = {"clock": _Clock, "environment": TapedEnvironment, "people": TapedPeople}
        self._world = RecordedWorld(real, journal, cwd, parts)  # type: ignore[arg-type]
        self._made = loops._models
        self._strand = strand

    def _build(self, definition: AgentDef, session: Txn, tasks: TurnTasks) -> AgentBuild:
        return _Build(definition, session, self._world, tasks, self._strand)

    def _models_beside(self, tasks: TurnTasks, connections: TurnConnections) -> Models:
        models = copy(super()._models_beside(tasks, connections))
        models.world = self._world
        find, strand = models.provider, self._strand

        def taped(request: Any) -> Any:
            provider = find(request)
            is_own = provider is models.mock
            return TapedProvider(provider, strand, is_own=is_own, find=find)  # type: ignore[arg-type]

        models.provider = taped  # type: ignore[method-assign]
        return models


class _TapedLoops(LoopFactory):
    def __init__(self, loops: LoopFactory, strands: _Strands) -> None:
        self.__dict__.update(loops.__dict__)
        self._strands = strands
        self._of_all = loops

    def __call__(self, definition: AgentDef, session: Txn) -> LoopRunner:
        return _TurnLoops(self._of_all, self._strands.turn(session.id))(definition, session)


class _TapedRuntime(SessionRuntime):
    """``is_own``: its sessions are in memory, so they come about again, and are no effects."""

    def __init__(
        self, strands: _Strands, url: str, is_own: bool, agents: LoopFactory, options: Mapping[str, Any]
    ) -> None:
        here: Any = _Here(strands)
        self._strands = strands
        self._real = open_store(url)
        world = World()
        given = {"clock": _Clock(world.clock, here), "ids": _Ids(world.ids, here), **options}
        store: Any = self._real if is_own else RecordedStore(self._real, here)
        super().__init__(store, agents=_TapedLoops(agents, strands), **given)

    def close(self, *, caller: Caller | None = None) -> None:
        super().close(caller=caller)
        self._real.close()
        self._strands.end()
