"""A Vm that has just what builtins use, so that they are tested without the language around them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from harnpy.builtins import catalog
from harnpy.faults import LOOK
from harnpy.vm.errors import VmError, reporting_faults
from harnpy.vm.run.aio import open_loop
from harnpy.vm.run.scheduler import Scheduler
from harnpy.vm.values import Builtin, Fn
from harnpy.vm.vm import Signal, Vm
from harnpy.world.clock import ProgramClock
from harnpy.world.files import RealFiles
from harnpy.world.ids import RealEntropy


class FakeWorld:
    """A world of plain attributes: what was written, what is there to read, the clock. Files are real."""

    def __init__(self) -> None:
        self.errors = ""
        self.input = ""
        self.variables: dict[str, str] = {}
        self.terminals: set[str] = set()
        self.time = 1_700_000_000.25
        self.random = random.Random(7)
        self.minted = 0
        self.files = RealFiles()
        self.entropy = RealEntropy()
        self.clock = self.environment = self.ids = self.streams = self

    def write_err(self, text: str) -> None:
        self.errors += text

    def read_line(self, within: float | None = None) -> str | None:
        if not self.input:
            return None
        line, _, self.input = self.input.partition("\n")
        return line

    def read_all(self, within: float | None = None) -> str:
        text, self.input = self.input, ""
        return text

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float | None) -> None:
        raise AssertionError("a builtin under test waited for something that never comes")

    def get(self, name: str) -> str | None:
        return self.variables.get(name)

    def new(self) -> str:
        self.minted += 1
        return f"018f0000-0000-7000-8000-{self.minted:012x}"

    def isatty(self, stream: str) -> bool:
        return stream in self.terminals


class FakeTasks(Scheduler):
    """The scheduler, but nobody waits: ``slept`` has the seconds of every sleep."""

    def __init__(self, vm: Any) -> None:
        super().__init__(vm, open_loop)
        self.slept: list[float] = []
        self.while_asleep: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.while_asleep()


class FakeVm:
    open_spans: tuple[Any, ...] = ()

    def __init__(self) -> None:
        self.out = ""
        self.world = self.unguarded = FakeWorld()
        self.clock = ProgramClock(self.world)
        self.signal = Signal()
        self.meter = self.growth = self._sizes = None
        self.tasks = FakeTasks(self)
        self._states: dict[type, Any] = {}
        self._services: dict[type, Any] = {}

    def write(self, text: str) -> None:
        self.out += text

    def write_err(self, text: str) -> None:
        self.world.write_err(text)

    def enter_worker(self, body: Callable[[], None]) -> None:
        body()

    def state(self, cls: type) -> Any:
        return self._states.setdefault(cls, cls())

    def service(self, cls: type, make: Callable[[Any], Any]) -> Any:
        return self._services.setdefault(cls, make(self))

    def callback(self, value: Any, n: int) -> Callable[..., Any] | None:
        if type(value) is Builtin:
            return lambda depth, *args: value.call(self, *args[: value.max_args])
        return value.call if type(value) is Fn else None

    iterate, handle, sizes = Vm.iterate, Vm.handle, Vm.sizes

    def poll(self) -> None:
        self.tasks.poll()

    def run(self, name: str, *args: Any) -> Any:
        """Call the builtin ``name`` as generated code would."""
        declaration = catalog.find(name)
        assert declaration is not None, f"no builtin {name}"
        bound = declaration.bind()
        call = bound.call
        if catalog.raises_faults(declaration.function.__module__):
            call = reporting_faults(name, call)
        before = LOOK.get()
        LOOK.set(lambda items: self.poll() if self.signal.pending else None)
        try:
            return call(self, *args[: bound.max_args])
        finally:
            LOOK.set(before)

    def failure(self, name: str, *args: Any) -> Any:
        """What `catch` would see of a failing call: the thrown value, or the text."""
        try:
            result = self.run(name, *args)
        except VmError.Thrown as error:
            return error.value
        except VmError as error:
            return error.text
        raise AssertionError(f"{name} did not fail but returned {result!r}")


@pytest.fixture
def vm() -> FakeVm:
    return FakeVm()


def make_fn(function: Callable[..., Any]) -> Fn:
    """A Harn closure that runs a Python function."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return Fn(None, names, lambda depth, *args: function(*args))


@pytest.fixture
def fn() -> Callable[[Callable[..., Any]], Fn]:
    return make_fn
