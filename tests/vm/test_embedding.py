"""Harn and Python calling each other: functions both ways, coroutines, loops, failures."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable
from threading import Thread
from weakref import ref

import pytest

from harnpy import Vm, VmError
from harnpy.llm.errors import CallError
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request
from harnpy.vm.errors import ExitRequest
from harnpy.world import World
from harnpy.world.streams import RealStreams

pytestmark = pytest.mark.usefixtures("clock")


async def double_later(n: int) -> int:
    await asyncio.sleep(0.02)
    return n * 2


DOUBLES = """
let all = parallel each [1, 2, 3] { n -> later(n) }
return all + [later(10)]
"""


def test_coroutine_functions_suspend_only_the_task_that_called_them() -> None:
    vm = Vm()
    vm.register("later(n: int) -> int", double_later)
    assert vm.run_source(DOUBLES) == [2, 4, 6, 20]


def test_the_same_inside_a_running_loop() -> None:
    async def main() -> list[int]:
        vm = Vm()
        vm.register("later(n: int) -> int", double_later)
        results = await asyncio.gather(vm.run_async(DOUBLES), double_later(4))
        return [*results[0], results[1]]

    assert asyncio.run(main()) == [2, 4, 6, 20, 8]


def test_a_coroutines_failure_is_the_callers() -> None:
    async def refuse(n: int) -> None:
        raise VmError.Thrown({"n": n})

    vm = Vm()
    vm.register("refuse(n: int) -> nil", refuse)
    assert vm.run_source("return try { refuse(3) } catch (e) { e.n }") == 3


def test_a_deadline_ends_the_wait_for_a_coroutine() -> None:
    cancelled: list[bool] = []

    async def forever() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    vm = Vm()
    vm.register("forever() -> nil", forever)
    source = 'return try { deadline 20ms { forever() } } catch (e) { e + "!" }'
    assert vm.run_source(source) == "Deadline exceeded!"
    vm.run_source("sleep(1ms)")
    assert cancelled == [True]


def test_an_interrupt_while_a_program_ends_leaves_no_loop_behind() -> None:
    vm = Vm()

    async def close() -> None:
        raise KeyboardInterrupt

    async def begin() -> None:
        vm.tasks.at_end(close)

    vm.register("begin() -> nil", begin)
    with pytest.raises(KeyboardInterrupt):
        vm.run_source("begin()")
    assert signal.set_wakeup_fd(-1) == -1
    assert vm.tasks.bridge is None


def test_calling_a_function_from_python_gives_a_finished_error() -> None:
    vm = Vm()
    fail = vm.run_source("fn fail(n) {\n  return 1 / n\n}\nreturn fail", file="calc.harn")
    with pytest.raises(VmError) as caught:
        vm.call(fail, 0)
    assert caught.value.text == "Runtime error: Division by zero (line 2)"
    assert [(frame.name, frame.file, frame.line) for frame in caught.value.frames] == [
        ("fail", "calc.harn", 2)
    ]


class Held:
    """What a failing function holds while it fails."""


class Failing:
    """Functions that fail for want of memory, and what they held."""

    def __init__(self) -> None:
        self.held: list[ref[Held]] = []

    def now(self) -> None:
        held = Held()
        self.held.append(ref(held))
        raise MemoryError

    async def later(self) -> None:
        await asyncio.sleep(0)
        self.now()


def fails(vm: Vm) -> None:
    with pytest.raises(VmError, match="Out of memory"):
        vm.run_source("fail()")


def fails_in_a_loop(vm: Vm) -> None:
    async def main() -> None:
        with pytest.raises(VmError, match="Out of memory"):
            await vm.run_async("fail()")

    asyncio.run(main())


@pytest.mark.parametrize("run", [fails, fails_in_a_loop])
@pytest.mark.parametrize("name", ["now", "later"])
def test_what_a_failed_run_held_goes_with_its_error(name: str, run: Callable[[Vm], None]) -> None:
    vm, failing = Vm(), Failing()
    vm.register("fail()", getattr(failing, name))
    gc.disable()
    try:
        run(vm)
        assert [held() for held in failing.held] == [None], "an error is in a circle"
    finally:
        gc.enable()


def test_an_uncaught_throw_carries_its_value_and_place() -> None:
    with pytest.raises(VmError.Thrown) as caught:
        Vm().run_source("pipeline main(task) {\n  let f = { x -> throw {code: x} }\n  f(4)\n}")
    assert caught.value.value == {"code": 4}
    assert [(frame.name, frame.line, frame.column) for frame in caught.value.frames] == [
        ("<closure>", 2, 18),
        ("pipeline", 3, 3),
    ]


def test_a_registered_signature_is_part_of_what_is_compiled() -> None:
    one, other = Vm(), Vm()
    one.register("f(a: string) -> any", lambda a: a)
    other.register("f(a: int = 7, b: int = 9) -> any", lambda a, b: [a, b])
    assert one.run_source("return f(1, 2)") == "1"
    assert other.run_source("return f(1, 2)") == [1, 2]
    assert other.run_source('return f("x")') == [7, 9]


def test_a_vm_refuses_a_second_program_inside_the_first() -> None:
    vm = Vm()
    vm.register("nested() -> any", lambda: vm.run_source("return 1"))
    with pytest.raises(RuntimeError, match="running a program already"):
        vm.run_source("return nested()")
    assert vm.run_source("return 2") == 2


def test_a_builtin_may_call_back_what_it_was_given() -> None:
    vm = Vm()
    vm.register("twice(f: callable) -> any", lambda f: [vm.call(f, 1), vm.call(f, 2)])
    assert vm.run_source("let t = spawn { 5 }\nlet r = twice({ x -> x + 1 })\nreturn [r, await(t)]") == [
        [2, 3],
        5,
    ]


def test_a_cancelled_run_leaves_its_vm_usable() -> None:
    written: list[str] = []

    async def main() -> list[int]:
        vm = Vm(World(streams=RealStreams(stdout=written.append)))
        vm.register("later(n: int) -> int", double_later)
        source = 'spawn { sleep(10000) }\ntry { sleep(10000) } catch (e) { println("not reached") }'
        running = asyncio.ensure_future(vm.run_async(source))
        await asyncio.sleep(0.03)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return await vm.run_async("sleep(1)\nlet t = spawn { later(4) }\nreturn [later(2), await(t)]")

    assert asyncio.run(main()) == [4, 8]
    assert written == []


def test_awaiting_in_a_blocking_run_inside_a_loop_says_what_to_do() -> None:
    async def main() -> None:
        vm = Vm()
        vm.register("later(n: int) -> int", double_later)
        with pytest.raises(RuntimeError, match="run_async"):
            vm.run_source("return later(1)")

    asyncio.run(main())


def test_a_vm_moves_between_threads_from_run_to_run() -> None:
    vm = Vm()
    program = "return parallel 3 { i -> sleep(1)\n i }"
    results = [vm.run_source(program)]
    thread = Thread(target=lambda: results.append(vm.run_source(program)))
    thread.start()
    thread.join()
    assert results == [[0, 1, 2], [0, 1, 2]]


def test_exit_from_a_task_reaches_the_embedder() -> None:
    with pytest.raises(ExitRequest) as left:
        Vm().run_source("spawn { exit(3) }\nsleep(50)")
    assert left.value.code == 3


class Flaky:
    """A model that is overloaded once."""

    def __init__(self) -> None:
        self.calls = 0

    def complete(self, request: Request) -> Reply:
        self.calls += 1
        if self.calls == 1:
            raise CallError("overloaded", "too much to do")
        return Reply("here I am", request.model, "flaky", request.model, 1, 1)


def test_an_embedders_model_answers_and_is_tried_again() -> None:
    vm, model = Vm(), Flaky()
    vm.provide("flaky", model)
    source = (
        'return llm_call("hi", nil, {provider: "flaky", model: "m", llm_retries: 1, llm_backoff_ms: 0}).text'
    )
    assert vm.run_source(source) == "here I am"
    assert model.calls == 2


def test_an_embedders_model_that_fails_is_an_error_of_the_call() -> None:
    vm = Vm()
    vm.provide("flaky", Flaky())
    error = vm.run_source('let r = llm_call_safe("hi", nil, {provider: "flaky", model: "m"})\nreturn r.error')
    assert (error["category"], error["provider"]) == ("overloaded", "flaky")
