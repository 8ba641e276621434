"""A program that computes gives the asyncio loop around it turns, and can be cancelled at any of them."""

from __future__ import annotations

import asyncio
import sys
from statistics import median
from time import process_time

import pytest

from harnpy import Vm
from tests.support import ends, wait_until

BUSY = {
    "a loop": "while true { }",
    "a task": "spawn { while true { } }\nsleep(1h)",
    "a closure": "[1].map({ n -> while true { } })",
    "a generator": "gen fn g() { while true { }\n emit 1 }\nfor x in g() { }",
    "parallel": "parallel each [1, 2] { n -> while true { } }",
    "tail calls": "fn f(n) { return f(n + 1) }\nf(0)",
    "catching": "while true { try { throw 1 } catch (e) { } finally { } }",
    "a deadline": "deadline 1h { while true { } }",
}

#: Tasks at once, of which the loop waits for no more than a few before it has a turn.
MANY = 100

#: Seconds, which no test waits for.
MINUTE = 60

#: Seconds of processor time in which the loop must have its turn.
SOON = 0.05


@pytest.mark.parametrize("evaluator", ["compile", "walk"])
@pytest.mark.parametrize("program", BUSY)
def test_the_loop_has_turns_and_cancels(program: str, evaluator: str) -> None:
    vm, threads = Vm(evaluator=evaluator), {*sys._current_frames()}

    async def main() -> list[float]:
        await vm.run_async("return 1")
        running = asyncio.create_task(vm.run_async(BUSY[program]))
        gaps = []
        for _ in range(9):
            before = process_time()
            await asyncio.sleep(0)
            gaps.append(process_time() - before)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await vm.run_async("return 42") == 42
        return gaps

    with ends():
        assert median(asyncio.run(main())) < SOON
    assert not vm.signal.pending
    wait_until(lambda: sys._current_frames().keys() <= threads)


@pytest.mark.parametrize("program", BUSY)
def test_a_timeout_ends_it(program: str) -> None:
    vm = Vm()

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(vm.run_async(BUSY[program]), 0.02)

    with ends():
        asyncio.run(main())
    assert vm.run_source("return 1") == 1


def test_of_a_cancelled_program_only_what_cleans_up_runs() -> None:
    seen: list[str] = []
    vm = Vm()
    vm.register("see(what: string) -> nil", seen.append)

    async def main() -> None:
        source = """
fn f() {
  defer { see("deferred") }
  try { while true { } } catch (e) { see("caught") } finally { see("finally") }
}
f()
"""
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(vm.run_async(source), 0.02)

    with ends():
        asyncio.run(main())
    assert seen == ["finally", "deferred"]


def test_programs_of_several_vms_share_the_loop() -> None:
    """None of them waits, and each counts as long as any other does."""

    async def count(vm: Vm, done: list[int]) -> None:
        await vm.run_async("var i = 0\nwhile i < 200000 { i = i + 1 }")
        done.append(1)

    async def main() -> list[int]:
        done: list[int] = []
        spinning = asyncio.create_task(Vm().run_async("while true { }"))
        await asyncio.gather(*(count(Vm(), done) for _ in range(3)))
        spinning.cancel()
        return done

    with ends():
        assert asyncio.run(main()) == [1, 1, 1]


@pytest.mark.parametrize("evaluator", ["compile", "walk"])
@pytest.mark.parametrize("inside", [False, True], ids=["a loop of its own", "inside a loop"])
def test_the_first_coroutines_begin_while_tasks_begin_that_await_more(evaluator: str, inside: bool) -> None:
    seen: list[tuple[str, int]] = []
    vm = Vm(evaluator=evaluator)

    async def request(n: int) -> int:
        seen.append(("request", n))
        await asyncio.sleep(0)
        return n

    vm.register("see(n: int) -> nil", lambda n: seen.append(("task", n)))
    vm.register("request(n: int) -> int", request)
    again = f"parallel {MANY} {{ n ->\n see(n)\n request(n)\n }}"
    source = f"pipeline main(task) {{\n {again}\n return {again}\n }}"
    result = asyncio.run(vm.run_async(source)) if inside else vm.run_source(source)
    assert result == [*range(MANY)]
    # Again with tasks that begin on the stacks of those that have ended.
    for made in (seen[: 2 * MANY], seen[2 * MANY :]):
        for kind in ("task", "request"):
            assert [n for each, n in made if each == kind] == [*range(MANY)]
        assert made.index(("request", 0)) < made.index(("task", MANY // 2))


def test_an_interrupt_in_a_turn_of_the_loop_is_what_the_run_ends_with() -> None:
    """Whatever is left of that turn, all that was begun is closed."""
    closed: list[int] = []

    def interrupt() -> None:
        raise KeyboardInterrupt

    async def request(n: int) -> None:
        if n == 0:
            asyncio.get_running_loop().call_soon(interrupt)
        try:
            await asyncio.sleep(MINUTE)
        finally:
            closed.append(n)

    vm = Vm()
    vm.register("request(n: int) -> nil", request)
    with pytest.raises(KeyboardInterrupt):
        vm.run_source(f"parallel {MANY} {{ n -> request(n) }}")
    assert closed
    assert closed == [*range(len(closed))]
    assert not vm.run_source("return nil")


def test_what_the_loop_calls_in_its_turn_may_call_the_program() -> None:
    vm = Vm()
    double = vm.run_source(
        "fn double(n) { var i = 0\nwhile i < 5000 { i = i + 1 }\nreturn n * 2 }\nreturn double"
    )

    async def main() -> int:
        running = asyncio.create_task(vm.run_async("var i = 0\nwhile i < 300000 { i = i + 1 }\nreturn i"))
        for n in range(5):
            await asyncio.sleep(0)
            assert vm.call(double, n) == 2 * n
        return await running

    with ends():
        assert asyncio.run(main()) == 300000
