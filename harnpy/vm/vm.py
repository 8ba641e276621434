"""The Vm: one interpreter, and everything that belongs to it.

It is handed what lies above it: the builtin catalog, and *services* such as the live sessions, made on
first use. Two Vms share nothing. `harnpy.Vm` is this class with harnpy's own builtins and services.
"""

from __future__ import annotations

import os.path
import sys

from harnpy.faults import LOOK
from harnpy.vm import compile as compiler
from harnpy.vm.declare import BuiltinTable
from harnpy.vm.errors import FAILURES, Cancelled, Leaving, VmMisuse
from harnpy.vm.unit import ALL, LANGUAGE
from harnpy.vm.values import Builtin, Fn
from harnpy.world import World

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
    from typing import Any, TypeVar

    from harnpy.spans import Spans
    from harnpy.vm.declare import Catalog
    from harnpy.vm.front_end import ReplSession
    from harnpy.vm.guard import VmGuard
    from harnpy.vm.imports import Imports
    from harnpy.vm.limits import Growth, Limits, Meter
    from harnpy.vm.modules import Linker
    from harnpy.vm.run.calls import Calls
    from harnpy.vm.run.scheduler import Bridge, Scheduler
    from harnpy.vm.run.tasks import TaskContext
    from harnpy.vm.unit import Unit
    from harnpy.vm.values import Iter, Value
    from harnpy.vm.values.operators import Sizes
    from harnpy.vm.walk.activation import Observer
    from harnpy.world.clock import ProgramClock
    from harnpy.world.files import Files

    State = TypeVar("State")
    Service = TypeVar("Service")


#: Python frames are cheap in CPython 3.11 (no C stack), and 512 Harn frames with callbacks need many. Some
#: calls do take C stack: this many frames are as deep as the usual 8 MiB surely hold.
RECURSION_LIMIT = 60_000


def allow_deep_recursion() -> None:
    if sys.getrecursionlimit() < RECURSION_LIMIT:
        sys.setrecursionlimit(RECURSION_LIMIT)


def _big_frame(size: int) -> Callable[..., Any]:
    """Return ``lambda body: body()``, whose frame claims ``size`` stack slots.

    CPython 3.11 keeps Python frames in chunks of 16 KiB and returns a chunk as soon as its first frame
    returns. A loop whose callee sits on that edge maps and unmaps memory at every call, 200 times slower.
    Below a huge frame everything shares one chunk.
    """

    def enter(body: Callable[[], Any]) -> Any:
        return body()

    new: Any = type(enter)
    big: Callable[..., Any] = new(enter.__code__.replace(co_stacksize=size), {})
    return big


class Signal:
    """``pending`` is what loops check: true while the running task has a deadline or was asked to end,
    and while the run is ``watched``, whichever task runs: it has limits, or it is inside an asyncio loop.
    ``alert`` is what tasks check when they wait: true when ``pending`` may be, in whichever task.
    ``cancelled``: the embedder has called the run off, perhaps from another thread.
    """

    __slots__ = ("alert", "cancelled", "pending", "watched")

    def __init__(self) -> None:
        self.alert = self.pending = self.watched = self.cancelled = False

    def watch(self) -> None:
        self.watched = self.alert = self.pending = True


if TYPE_CHECKING:
    from functools import cached_property as made_once
else:

    class made_once:  # noqa: N801  (as `cached_property` is called)
        """A part of a Vm that is made on first use. Then it is a plain attribute, faster than a property.

        As in `functools`, which the start of most programs doesn't load.
        """

        def __init__(self, make):
            self.make = make
            self.__doc__ = make.__doc__

        def __get__(self, vm, owner):
            made = self.make(vm)
            setattr(vm, self.make.__name__, made)
            return made


def _units(evaluator: str) -> Any:
    """The module that makes units for an evaluator."""
    if evaluator == "compile":
        return compiler
    if evaluator == "walk":
        from harnpy.vm import walk

        return walk
    raise ValueError(f"unknown evaluator {evaluator!r}: there are 'compile' and 'walk'")


class Vm:
    """One interpreter.

    ``catalog``: the builtins. ``world``: everything outside (default: the real one). ``deny``: builtins that
    fail; ``allow``: the only ones that don't. ``refused``: the effects that programs may not have.
    ``evaluator``: ``"compile"``, or ``"walk"`` to have the tree walked, which is slow and can be watched by
    an ``observer``. ``limits``: what one run may use.
    """

    def __init__(
        self,
        catalog: Catalog,
        world: World | None = None,
        deny: Iterable[str] = (),
        allow: Iterable[str] | None = None,
        evaluator: str = "compile",
        limits: Limits | None = None,
        refused: frozenset[str] = frozenset(),
    ) -> None:
        self.unguarded = World() if world is None else world
        """The world for what the Vm does on its own account."""
        self.units = _units(evaluator)
        self.observer: Observer | None = None
        allowed = None if allow is None else frozenset(allow)
        self.builtins = BuiltinTable(catalog, self, frozenset(deny), allowed)
        self._refused = refused
        self.signal = Signal()
        #: What this run has used of its limits; None when it has none.
        self.meter: Meter | None = self._meter(limits)
        #: What holds collections to their limit; it must see every value.
        self.growth: Growth | None = None if self.meter is None else self.meter.growth()
        if self.growth is not None:
            self.units = _units("walk")
        self.write = self._counted(self.unguarded.streams.write_out)
        self.write_err = self._counted(self.unguarded.streams.write_err)
        #: Whether harnpy's own checks (03 §16) refuse programs, too, and not only those of the language.
        self.careful = False
        #: Called with a unit before it runs when the static checks warn of something in it.
        self.on_warnings: Callable[[Unit], object] | None = None
        #: Called when a program or a REPL session starts, as the first thing that its root task does.
        self.on_start: list[Callable[[], object]] = []
        self.enter = _big_frame(66_000)
        self.enter_worker = _big_frame(17_000)
        self.source_dir: str | None = None
        #: Where the modules of a program are read from, if not from the world's files.
        self.module_files: Files | None = None
        #: What messages call the file of the program.
        self.file: str | None = None
        #: Records spans when it is set before a program starts.
        self.traced = False
        #: Whether functions that are made now are to be recorded while spans are.
        self.traceable = False
        #: Whether every call of a function is made, as a profile counts them, and none is written out.
        self.every_call = False
        #: The spans of the program since it began to record them.
        self.spans: Spans | None = None
        self._running = False
        self._tasks: Scheduler | None = None
        self._calls: Calls | None = None
        self._sizes: Sizes | None = None
        self._world: World | None = None
        self._clock: ProgramClock | None = None
        self._given: dict[str, Value] = {"argv": []}
        #: What failed in this run although nothing was raised, by its name. The exit status says so unless
        #: the program's value decides. Spec: 09 §2.3.
        self.failures: dict[str, str] = {}
        self._states: dict[type, Any] = {}
        self._services: dict[type, Any] = {}

    def _meter(self, limits: Limits | None) -> Meter | None:
        if limits is None:
            return None
        from harnpy.vm.limits import Meter

        return Meter(limits, self.unguarded.clock.monotonic)

    def _counted(self, write: Callable[[str], object]) -> Callable[[str], object]:
        """``write`` for a program's output, of which there may be a limit."""
        return write if self.meter is None else self.meter.counting(write)

    # --- running ----------------------------------------------------------------------------------

    def run_source(
        self,
        source: str,
        *,
        file: str = "<script>",
        directory: str | None = None,
        args: Sequence[str] = (),
        entry: str | None = None,
        checked: bool = True,
    ) -> Value:
        """Run a program and return its value (02 §10.5).

        ``file`` names it in messages; imports and templates are looked for in ``directory``, else where
        that file is, else in the working directory. ``args`` become `argv`, ``entry`` is the pipeline to
        run instead of the usual one; ``checked=False`` leaves out the static checks, as user tests do.
        Raises SourceFault before it starts, VmError when it fails.
        """
        self._refuse_when_running()
        self.signal.cancelled = False  # from here on: while it is parsed and checked, too
        self.file, self.source_dir = file, directory or self._directory_of(file)
        self._given["argv"] = list(args)
        # Mocks, colour mode and their like belong to one program (04 §0.9); services to the Vm.
        self._states.clear()
        self.failures.clear()
        if self._clock is not None:
            self._clock.reset()
        self.spans, self.traceable = None, self.traced
        self.notice(source)
        allow_deep_recursion()
        imports = self.imports_of(source, self.source_dir)
        checks = (ALL if self.careful else LANGUAGE) if checked else ""
        unit = self.units.program_unit(source, file, entry, self.builtins, checks, imports)
        unit.directory = self.source_dir
        if unit.warnings and self.on_warnings is not None:
            self.on_warnings(unit)
        linker = self.linker(unit, set()) if imports else None
        main = unit.main(self, {}, linker, {})
        if self.traced:
            from harnpy.vm.run.spans import recorded_pipeline

            self.record_spans()
            main = recorded_pipeline(self, entry or os.path.basename(file), main)
        return self.start(lambda: main(1))

    def run_file(
        self, path: str, *, args: Sequence[str] = (), entry: str | None = None, checked: bool = True
    ) -> Value:
        """Run the program in the file ``path``. Raises OSError when it can't be read."""
        source = self.unguarded.files.read_text(path, "replace")
        return self.run_source(source, file=path, args=args, entry=entry, checked=checked)

    @property
    def sources(self) -> Files:
        """The files that the modules of a program are read from."""
        return self.unguarded.files if self.module_files is None else self.module_files

    def notice(self, source: str) -> None:
        """Note whether a file of the program may have spans recorded (04 §25)."""
        self.traceable = self.traceable or "enable_tracing" in source

    def record_spans(self) -> None:
        """Record what the program does from now on (04 §25)."""
        from harnpy.spans import Spans

        self.spans = Spans(self.unguarded.clock, lambda: self.tasks.current)

    def _directory_of(self, file: str) -> str | None:
        """The directory of a file, None for a name like ``<stdin>``."""
        if file.startswith("<"):
            return None
        return os.path.dirname(os.path.normpath(os.path.join(self.sources.cwd(), file)))

    def imports_of(self, source: str, directory: str | None) -> Imports | None:
        """Return what the imports of a text in ``directory`` bring; None for a text without any."""
        if "import" not in source:
            return None
        from harnpy.vm.modules import Modules

        return self.state(Modules).imports_of(self, source, directory or self.sources.cwd())

    def linker(self, unit: Unit, bound: set[str]) -> Linker:
        """A linker for ``unit``, a program or an input."""
        from harnpy.vm.modules import Linker

        return Linker(self, unit, bound)

    def start(self, body: Callable[[], Value]) -> Value:
        """Run ``body`` as a program, after what `on_start` holds."""

        def started() -> Value:
            for prepare in self.on_start:
                prepare()
            return body()

        return self.run(started)

    def run(self, body: Callable[[], Value]) -> Value:
        """Run ``body`` as the root task; errors leave in their final form."""
        self._begin()
        before = LOOK.get()
        LOOK.set(None if self._tasks is None else self._tasks.looker)
        try:
            value = self.enter(body)
            if self.signal.cancelled:
                self.poll()
            return value
        except FAILURES as error:
            if self.signal.cancelled:
                raise Cancelled from error
            from harnpy.vm.run.backtrace import finish

            raise finish(error)  # noqa: B904  (it has its cause)
        except Leaving as leaving:
            if self.signal.cancelled and leaving.becomes is None:
                raise Cancelled from None
            from harnpy.vm.run.backtrace import left

            raise left(leaving) from None
        finally:
            LOOK.set(before)
            self._running = False
            if self._tasks:
                self._tasks.shut_down()

    async def run_async(
        self, source: str, *, file: str = "<script>", args: Sequence[str] = (), entry: str | None = None
    ) -> Value:
        """Like `run_source`, inside the running asyncio loop: while the program waits, the loop goes on."""
        from harnpy.vm.run.aio import run_inside

        return await run_inside(
            self.tasks, lambda: self.run_source(source, file=file, args=args, entry=entry)
        )

    def cancel(self) -> None:
        """End the program that runs, from any thread: whoever runs it gets `Cancelled`.

        Nothing happens when none runs. Its `finally` and `defer` blocks run, as far as they neither wait nor
        go on for long (09 §16.2); a Python function that it has called goes on to its own end.
        """
        self.signal.cancelled = True
        self.signal.alert = self.signal.pending = True
        if self._tasks is not None:
            self._tasks.rouse()

    @made_once
    def tasks(self) -> Scheduler:
        """The scheduler; from its first use on, output goes through the running task."""
        from harnpy.vm.run.scheduler import Scheduler

        self._tasks = Scheduler(self, _open_bridge)
        self.write = self._counted(self._tasks.write)
        return self._tasks

    def poll(self) -> None:
        """Raise what is due in the running task; called when ``signal.pending``."""
        self.tasks.poll()

    def _begin(self) -> None:
        allow_deep_recursion()
        self._refuse_when_running()
        self._running = True
        if self.meter is not None:
            self.meter.begin()
            self.tasks.refresh()

    def _refuse_when_running(self) -> None:
        if self._running:
            raise VmMisuse("this Vm is running a program already; use another Vm, or `call` a function")

    def repl(self) -> ReplSession:
        """A session that keeps what its inputs bind."""
        from harnpy.vm.front_end import ReplSession

        return ReplSession(self)

    # --- calling ----------------------------------------------------------------------------------

    @property
    def calls(self) -> Calls:
        """The call helpers, made on first use: a program that only calls builtins needs none."""
        if self._calls is None:
            from harnpy.vm.run.calls import Calls

            self._calls = Calls(self)
        return self._calls

    def call(self, function: Value, *args: Value) -> Value:
        """Call a callable Harn value. Raises VmError when it fails or is not callable.

        Raises UnsupportedValue for arguments that Harn can't hold, and VmMisuse where a coroutine that a
        program waits for calls what would wait itself: that takes `call_async`.
        """
        args = _arguments(args)
        if self._running:
            if self.signal.pending:
                self.poll()
            return self.tasks.nested(lambda: self.calls.call(function, 1, args))
        self.signal.cancelled = False
        return self.run(lambda: self.calls.call(function, 1, args))

    async def call_async(self, function: Value, *args: Value) -> Value:
        """Like `call`, inside the running asyncio loop: while the function waits, the loop goes on.

        In a coroutine that a program waits for, the function runs in a task of its own, a child of the one
        that waits. Cancelling this ends it. Raises VmMisuse while a program runs that doesn't wait for it.
        Spec: 09 §16.2.
        """
        from harnpy.vm.run.aio import is_left_over, run_inside

        args, bridge = _arguments(args), self.tasks.bridge
        if self._running and bridge is not None:
            return await bridge.in_own_task(lambda: self.calls.call(function, 1, args))
        self._refuse_when_running()
        if bridge is not None or is_left_over(self.tasks):
            raise VmMisuse("the program that waited for this coroutine has ended")
        return await run_inside(self.tasks, lambda: self.call(function, *args))

    def callback(self, function: Value, count: int) -> Callable[..., Value] | None:
        """``function`` as a Python callable ``g(0, *args)`` for ``count`` arguments; None if it isn't one."""
        if type(function) is Fn:
            if function.arity == count and not self.signal.pending:
                return function.call
        elif type(function) is not Builtin:
            return None
        call, signal, poll = self.calls.call, self.signal, self.poll

        def general(depth: int, *args: Value) -> Value:
            if signal.pending:
                poll()
            return call(function, depth, args)

        return general

    def iterate(self, value: Value) -> Iterator[Value]:
        """The items of an iterable value. Raises TypeFault for any other."""
        from harnpy.vm.values.iterators import iterator

        return iterator(value, self.signal, self.poll)

    def handle(self, value: Value) -> Iter:
        """A lazy iterator over the items of an iterable value."""
        from harnpy.vm.values.iterators import handle

        return handle(value, self.signal, self.poll)

    @property
    def sizes(self) -> Sizes:
        """Return how large the results of builtins may be."""
        if self._sizes is None:
            from harnpy.vm.values.operators import Sizes

            self._sizes = Sizes() if self.growth is None else self.growth.sizes()
        return self._sizes

    # --- names ------------------------------------------------------------------------------------

    def global_names(self) -> Iterator[str]:
        """The names of the values that programs are given (02 §22)."""
        yield from self._given
        yield from self.builtins.catalog.global_names()

    def global_value(self, name: str) -> Value:
        return self._given[name] if name in self._given else self.builtins.global_value(name)

    def set_global(self, name: str, value: Value) -> None:
        """Give programs a value under ``name``; their own names shadow it.

        Raises UnsupportedValue for one that Harn can't hold, or that has such a part.
        """
        self._given[name] = _given(value, f"the global `{name}`")

    def suggest(self, name: str, candidates: Iterable[str]) -> str | None:
        """The nearest of ``candidates``, for "did you mean" (02 §9.3)."""
        from harnpy.formats.suggestions import nearest_at_run_time

        return nearest_at_run_time(name, candidates)

    def suggest_name(self, name: str, candidates: Iterable[str]) -> str | None:
        """Return what an undefined name may mean: a habit of another language, or the nearest (02 §9.3)."""
        from harnpy.syntax.habits import name_for

        return name_for(name) or self.suggest(name, candidates)

    @property
    def world(self) -> World:
        """The world as programs reach it: what they have it do obeys the rules in force."""
        if self._world is None:
            from harnpy.world.guarded import GuardedWorld

            self._world = GuardedWorld(self.unguarded, self.guard, self.clock)
        return self._world

    @property
    def clock(self) -> ProgramClock:
        """The clock that programs see, and may set (04 §14)."""
        if self._clock is None:
            from harnpy.world.clock import ProgramClock

            self._clock = ProgramClock(self.unguarded.clock)
        return self._clock

    @property
    def open_spans(self) -> tuple[dict[str, Value], ...]:
        """The spans that the program has opened itself in the running task, outermost first."""
        return () if self._tasks is None else self._tasks.current.open_spans

    def _ruling_context(self) -> TaskContext | None:
        return None if self._tasks is None else self._tasks.responsible().context

    @property
    def guard(self) -> VmGuard:
        """The rules in force in the running task."""
        from harnpy.vm.guard import VmGuard

        return VmGuard(self._refused, self._ruling_context, self.poll)

    # --- what hangs off a Vm ----------------------------------------------------------------------

    def state(self, cls: type[State], make: Callable[[], State] | None = None) -> State:
        """The instance of ``cls`` that belongs to the program being run; ``make`` makes it on first use."""
        found = self._states.get(cls)
        if found is None:
            found = self._states[cls] = (cls if make is None else make)()
        return found

    def service(self, cls: type[Service], make: Callable[[Vm], Service]) -> Service:
        """The instance of ``cls`` that belongs to this Vm, whichever program runs; ``make(vm)`` makes it."""
        found = self._services.get(cls)
        if found is None:
            found = self._services[cls] = make(self)
        return found

    @property
    def task_context(self) -> TaskContext | None:
        """Return what the running task works under, None when nothing is in force in it."""
        return None if self._tasks is None else self._tasks.current.context


def _given(value: Any, door: str) -> Value:
    """`given`, which isn't loaded for a text or nil."""
    if value is None or type(value) is str:
        return value
    from harnpy.vm.values.given import given

    return given(value, door)


def _arguments(args: tuple[Any, ...]) -> tuple[Value, ...]:
    return tuple(_given(value, f"argument {n} of `call`") for n, value in enumerate(args, 1))


def _open_bridge(tasks: Scheduler, awaitable: Awaitable[Any]) -> Bridge:
    from harnpy.vm.run.aio import open_loop

    return open_loop(tasks, awaitable)
