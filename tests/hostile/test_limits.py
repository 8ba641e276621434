"""Whatever a program does, the embedder ends it, in each way to run it, and the Vm goes on. Spec: 09 §16."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from threading import Thread, Timer
from typing import Any

import pytest

import harnpy
from harnpy import LimitExceeded, Limits, Vm, VmError
from tests.hostile.clock import CpuClock
from tests.hostile.programs import PROGRAMS, setup_of
from tests.worlds import OwnWorld

#: Seconds of computing on a machine however slow; on an idle one of 2026 all of them end within 0.6.
_MOST = 5.0
#: Seconds after which a program is cancelled.
_SOON = 0.02


class LateClock(CpuClock):
    """Stands still until a program begins."""

    begun: float | None = None

    def begin(self) -> None:
        self.begun = time.process_time()

    def monotonic(self) -> float:
        return 0.0 if self.begun is None else super().monotonic()


def source_of(name: str) -> str:
    return f"{setup_of(name)}\nbegin()\n{PROGRAMS[name]}\n"


def limited(evaluator: str = "compile") -> tuple[Vm, LateClock]:
    """A Vm whose programs have half a second from `begin()` on."""
    clock = LateClock()
    vm = Vm(OwnWorld(stdout=lambda text: None, clock=clock), limits=Limits(seconds=0.5), evaluator=evaluator)
    vm.register("begin() -> nil", clock.begin)
    return vm, clock


def ended_by_its_limit(vm: Vm, name: str) -> None:
    with pytest.raises(LimitExceeded) as caught:
        vm.run_source(source_of(name))
    assert caught.value.limit == "seconds"
    assert caught.value.frames


@pytest.mark.parametrize("evaluator", ["compile", "walk"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_limit_ends_it(name: str, evaluator: str) -> None:
    vm, clock = limited(evaluator)
    ended_by_its_limit(vm, name)
    assert clock.begun is not None
    assert time.process_time() - clock.begun < _MOST
    clock.begun = None
    assert vm.run_source("return range(3).sum()") == 3


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_limit_ends_it_in_a_thread(name: str) -> None:
    vm, clock = limited()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            ended_by_its_limit(vm, name)
        except BaseException as error:
            failures.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    assert failures == []
    assert clock.begun is not None
    assert time.process_time() - clock.begun < _MOST
    clock.begun = None
    assert vm.run_source("return 1") == 1


#: A loop doesn't interrupt a regex, which has its own bound.
_REGEXES = ("a regex", "another regex")


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in _REGEXES])
def test_its_loop_ends_it(name: str) -> None:
    vm = Vm(OwnWorld(stdout=lambda text: None))
    begun: list[float] = []

    async def main() -> float:
        running = asyncio.create_task(vm.run_async(source_of(name)))

        def begin() -> None:
            begun.append(time.process_time())
            asyncio.get_running_loop().call_later(_SOON, running.cancel)

        vm.register("begin() -> nil", begin)
        with pytest.raises(asyncio.CancelledError):
            await running
        took = time.process_time() - begun[0]
        assert await vm.run_async("return 1") == 1
        return took

    assert asyncio.run(main()) < _MOST


@pytest.fixture(scope="module")
def apart() -> Iterator[Any]:
    with harnpy.isolated(memory="2G", write_out=lambda text: None) as vm:
        yield vm


@pytest.mark.parametrize("name", PROGRAMS)
def test_its_embedder_ends_it_in_a_process_of_its_own(name: str, apart: Any) -> None:
    begun: list[float] = []

    def begin() -> None:
        begun.append(time.process_time() + computed(apart))
        Timer(_SOON, apart.cancel).start()

    apart.register("begin() -> nil", begin)
    with pytest.raises(VmError, match=r"Error \[cancelled\]"):
        apart.run_source(source_of(name))
    if apart._child is not None:  # else it was killed after the same time
        assert time.process_time() + computed(apart) - begun[0] < _MOST
    assert apart.run_source("return 1") == 1


def computed(vm: Any) -> float:
    """The seconds that a child has computed."""
    with open(f"/proc/{vm._child.process.pid}/stat", encoding="ascii") as file:
        user, system = file.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
