"""Harn and Python calling each other: functions both ways, coroutines, loops, failures."""

from __future__ import annotations

import asyncio

import pytest

from harnpy import Vm, VmError


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


def test_calling_a_function_from_python_gives_a_finished_error() -> None:
    vm = Vm()
    fail = vm.run_source("fn fail(n) {\n  return 1 / n\n}\nreturn fail", file="calc.harn")
    with pytest.raises(VmError) as caught:
        vm.call(fail, 0)
    assert caught.value.text == "Runtime error: Division by zero (line 2)"
    assert [(frame.name, frame.file, frame.line) for frame in caught.value.frames] == [
        ("fail", "calc.harn", 2)
    ]


def test_another_exception_of_a_registered_function_ends_the_run() -> None:
    def broken() -> None:
        raise OSError("disk")

    vm = Vm()
    vm.register("broken() -> nil", broken)
    with pytest.raises(OSError, match="disk"):
        vm.run_source("try { broken() } catch (e) { 1 }")


def test_an_uncaught_throw_carries_its_value_and_place() -> None:
    with pytest.raises(VmError.Thrown) as caught:
        Vm().run_source("pipeline main(task) {\n  let f = { x -> throw {code: x} }\n  f(4)\n}")
    assert caught.value.value == {"code": 4}
    assert [(frame.name, frame.line, frame.column) for frame in caught.value.frames] == [
        ("<closure>", 2, 18),
        ("pipeline", 3, 3),
    ]
