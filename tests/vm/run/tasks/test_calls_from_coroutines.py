"""Coroutines of the embedder that call the program which waits for them. Spec: 09 §16.2."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harnpy import Vm, VmError
from harnpy.vm.errors import Cancelled, ExitRequest, VmMisuse
from tests.support import ends

#: Bodies of functions: what each returns, whoever calls it.
BODIES = {
    "computes": "return 1 + 1",
    "awaits a task": "return await(spawn { 3 })",
    "parallel": "return parallel each [1, 2] { x -> x * 2 }",
    "sleeps": "sleep(1ms)\nreturn 4",
    "awaits one that sleeps": "return await(spawn { sleep(1ms)\n 5 })",
    "calls again": "return through({ -> sleep(1ms)\n 6 })",
    "receives": 'let c = channel("c")\nspawn { sleep(1ms)\n send(c, 7) }\nreturn receive(c)',
    "loops over a stream": "gen fn g() { emit 1\n sleep(1ms)\n emit 2 }\nfor x in g() { print(x) }\nreturn 3",
    "fails": "sleep(1ms)\nthrow {code: 8}",
    "prints": 'print("a")\nsleep(1ms)\nprint("b")\nreturn nil',
}
#: Where it is called from.
PLACES = {
    "the root": "return through({ -> f() })",
    "a task": "return await(spawn { through({ -> f() }) })",
    "several at once": "return parallel each [1, 2, 3] { x -> through({ -> f() }) }",
}


def run(vm: Vm, source: str, *, inside: bool) -> Any:
    """Return what the program comes to, with a thrown value instead of the error."""
    with ends():
        try:
            return asyncio.run(vm.run_async(source)) if inside else vm.run_source(source)
        except VmError.Thrown as error:
            return {"thrown": error.value}


def calling(evaluator: str = "compile") -> tuple[Vm, list[str]]:
    """Return a Vm whose `through` is a coroutine that calls what it is given, and what programs print."""
    printed: list[str] = []
    vm = Vm(evaluator=evaluator)
    vm.unguarded.streams.write_out = printed.append

    async def through(function: Any) -> Any:
        await asyncio.sleep(0)
        return await vm.call_async(function)

    vm.register("through(f: any) -> any", through)
    return vm, printed


@pytest.mark.parametrize("inside", [False, True], ids=["own loop", "inside a loop"])
@pytest.mark.parametrize("evaluator", ["compile", "walk"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("body", BODIES)
def test_a_function_comes_to_the_same_whoever_calls_it(
    body: str, place: str, evaluator: str, inside: bool
) -> None:
    source = f"fn f() {{ {BODIES[body]} }}\n{PLACES[place]}"
    vm, printed = calling(evaluator)
    came = run(vm, source, inside=inside)
    other, as_itself = calling(evaluator)
    other.register("through(f: any) -> any", lambda function: other.call(function))
    assert came == run(other, source, inside=inside)
    assert "".join(printed) == "".join(as_itself)


@pytest.mark.parametrize("inside", [False, True], ids=["own loop", "inside a loop"])
@pytest.mark.parametrize("body", BODIES)
def test_a_call_that_would_wait_in_the_loop_says_what_to_use(body: str, inside: bool) -> None:
    """It would stand still for ever: nothing else in the loop can go on meanwhile."""
    vm = Vm()

    async def through(function: Any) -> Any:
        return vm.call(function)

    vm.register("through(f: any) -> any", through)
    for place in PLACES.values():
        if body == "computes":
            assert run(vm, f"fn f() {{ {BODIES[body]} }}\n{place}", inside=inside) in (2, [2, 2, 2])
        else:
            with pytest.raises(VmMisuse, match=r"use `await vm\.call_async`"):
                run(vm, f"fn f() {{ {BODIES[body]} }}\n{place}", inside=inside)
    assert run(vm, "sleep(1ms)\nreturn 9", inside=inside) == 9


@pytest.mark.parametrize("inside", [False, True], ids=["own loop", "inside a loop"])
@pytest.mark.parametrize(
    "ending",
    [
        "return try { deadline 1ms { through(slow) } }",
        "let t = spawn { through(slow) }\nsleep(1ms)\ncancel(t)\nreturn 1",
        "spawn { through(slow) }\nsleep(1ms)\nreturn 1",
    ],
)
def test_the_call_ends_with_the_task_that_waits(ending: str, inside: bool) -> None:
    """As its children do: nothing of it runs any more."""
    vm, _ = calling()
    ended: list[str] = []
    vm.register("note(text: string) -> nil", ended.append)
    slow = '{ -> defer { note("defer") }\nsleep(1h) }'
    assert run(vm, f"let slow = {slow}\n{ending}", inside=inside)
    assert ended == []
    assert run(vm, "return through({ -> 1 })", inside=inside) == 1
    assert ended == []


@pytest.mark.parametrize("inside", [False, True], ids=["own loop", "inside a loop"])
def test_cancelling_the_program_ends_the_call(inside: bool) -> None:
    vm, _ = calling()
    ended: list[str] = []
    vm.register("note(text: string) -> nil", ended.append)
    vm.register("stop() -> nil", vm.cancel)
    slow = '{ -> defer { note("ended") }\nspawn { stop() }\nsleep(1h) }'
    with pytest.raises(Cancelled):
        run(vm, f"through({slow})", inside=inside)
    assert ended == ["ended"]
    assert run(vm, "return through({ -> 1 })", inside=inside) == 1


@pytest.mark.parametrize("inside", [False, True], ids=["own loop", "inside a loop"])
def test_a_coroutine_may_end_its_call_and_go_on(inside: bool) -> None:
    vm = Vm()
    ended: list[str] = []
    late = vm.run_source('return { -> sleep(1ms)\n "late" }')
    began = asyncio.Event()

    async def impatient(function: Any) -> str:
        call = asyncio.ensure_future(vm.call_async(function))
        await began.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        ended.append("given up")
        return str(await vm.call_async(late))

    vm.register("impatient(f: any) -> any", impatient)
    vm.register("begin() -> nil", began.set)
    vm.register("note(text: string) -> nil", ended.append)
    slow = '{ -> try { begin()\n sleep(1h) } finally { note("cleaned") } }'
    assert run(vm, f"return impatient({slow})", inside=inside) == "late"
    assert ended == ["cleaned", "given up"]


def test_two_calls_of_one_coroutine_go_on_together() -> None:
    vm = Vm()
    order: list[int] = []
    vm.register("note(n: int) -> nil", order.append)

    async def both(first: Any, second: Any) -> list[Any]:
        return await asyncio.gather(vm.call_async(first, 1), vm.call_async(second, 2))

    vm.register("both(f: any, g: any) -> list", both)
    f = "{ n -> note(n)\n sleep(1ms)\n note(n)\n n }"
    assert run(vm, f"return both({f}, {f})", inside=False) == [1, 2]
    assert order in ([1, 2, 1, 2], [1, 2, 2, 1])


def test_functions_that_call_themselves_through_coroutines_overflow() -> None:
    vm, _ = calling()
    found = run(
        vm, "fn f() { return through(f) }\nreturn try { f() } catch (e) { to_string(e) }", inside=False
    )
    assert "Stack overflow: too many nested calls" in found


def test_in_a_loop_without_a_program() -> None:
    vm = Vm()

    async def wait() -> int:
        await asyncio.sleep(0)
        return 20

    vm.register("wait() -> int", wait)
    function = vm.run_source("return { n -> wait() + n }")

    async def main() -> Any:
        with pytest.raises(VmMisuse):
            vm.call(function, 1)
        return await vm.call_async(function, 1)

    assert asyncio.run(main()) == 21


def test_nobody_waits_for_the_coroutine() -> None:
    """A second program would run in the Vm."""
    vm, _ = calling()
    function = vm.run_source("return { n -> sleep(n)\n n }")

    async def main() -> None:
        running = asyncio.create_task(vm.run_async("sleep(5ms)\nreturn 2"))
        await asyncio.sleep(0)
        with pytest.raises(VmMisuse, match="no task of which waits"):
            await vm.call_async(function, 1)
        assert await running == 2
        calls = (vm.call_async(function, n) for n in (3, 2, 1))
        first, *others = await asyncio.gather(*calls, return_exceptions=True)
        assert first == 3
        assert [type(each) for each in others] == [VmMisuse, VmMisuse]

    with ends():
        asyncio.run(main())


@pytest.mark.parametrize("inside", [False, True], ids=["own loop", "inside a loop"])
@pytest.mark.parametrize(
    "source",
    [
        "let t = spawn { tidy() }\nbegun()\ncancel(t)\nwhile !refused() { sleep(1ms) }\nreturn 1",
        "spawn { tidy() }\nbegun()\nreturn 1",
    ],
)
def test_the_task_that_waited_has_ended(source: str, inside: bool) -> None:
    vm = Vm()
    function = vm.run_source("return { -> sleep(1h) }")
    refused: list[str] = []
    begun = asyncio.Event()

    async def tidy() -> None:
        try:
            begun.set()
            await asyncio.sleep(3600)
        finally:
            try:
                await vm.call_async(function)
            except VmMisuse as error:
                refused.append(str(error))

    vm.register("tidy() -> any", tidy)
    vm.register("begun() -> any", begun.wait)
    vm.register("refused() -> bool", lambda: bool(refused))
    assert run(vm, source, inside=inside) == 1
    assert refused
    assert run(vm, "return 2", inside=inside) == 2


@pytest.mark.parametrize("turns", [500, 1_000, 5_000, 100_000])
@pytest.mark.parametrize("place", ["go(f)", "await(spawn { go(f) })"])
@pytest.mark.parametrize("evaluator", ["compile", "walk"])
def test_a_call_in_the_loop_never_waits_however_long_it_computes(
    evaluator: str, place: str, turns: int
) -> None:
    vm = Vm(evaluator=evaluator)

    async def go(function: Any) -> Any:
        return vm.call(function)

    vm.register("go(f: any) -> any", go)
    source = f"let f = {{ -> var i = 0\nwhile i < {turns} {{ i += 1 }}\nsleep(1ms)\n5 }}\nreturn {place}"
    with pytest.raises(VmMisuse, match="call_async"):
        run(vm, source, inside=True)
    assert run(vm, "return 6", inside=True) == 6


@pytest.mark.parametrize("inside", [False, True], ids=["own loop", "inside a loop"])
@pytest.mark.parametrize("evaluator", ["compile", "walk"])
def test_a_stream_that_a_call_in_the_loop_reads_leaves_tasks_alone(evaluator: str, inside: bool) -> None:
    vm = Vm(evaluator=evaluator)

    async def go(function: Any) -> Any:
        return vm.call(function)

    vm.register("go(f: any) -> any", go)
    source = """
    gen fn g() { emit 1
    emit 2 }
    let sum = go({ -> var n = 0
    for x in g() { n += x }
    n })
    return [sum, await(spawn { sleep(1ms)
    4 }), parallel each [5, 6] { x -> sleep(1ms)
    x }]
    """
    assert run(vm, source, inside=inside) == [3, 4, [5, 6]]


def test_another_loop_in_a_plain_function_is_not_the_programs() -> None:
    """What a plain function calls waits as ever, in whatever loop it runs it."""
    vm = Vm()

    def plain(function: Any) -> Any:
        async def main() -> Any:
            return vm.call(function)

        return asyncio.run(main())

    async def nothing() -> None:
        await asyncio.sleep(0)

    vm.register("plain(f: any) -> any", plain)
    vm.register("nothing() -> any", nothing)
    assert run(vm, "nothing()\nreturn plain({ -> await(spawn { 3 }) })", inside=False) == 3
    endless = "deadline 1ms { plain({ -> while true { } }) }"
    source = f"nothing()\nreturn try {{ await(spawn {{ {endless} }}) }} catch (e) {{ to_string(e) }}"
    assert "deadline" in run(vm, source, inside=False).lower()


@pytest.mark.parametrize("inside", [False, True], ids=["own loop", "inside a loop"])
def test_what_is_no_error_of_the_program_is_the_coroutines(inside: bool) -> None:
    vm = Vm()

    async def careful(function: Any, *args: Any) -> str:
        try:
            await vm.call_async(function, *args)
        except (TypeError, VmMisuse) as error:
            return type(error).__name__
        raise AssertionError

    def again() -> None:
        vm.run_source("return 1")

    vm.register("refused(f: any) -> string", lambda function: careful(function, object()))
    vm.register("careful(f: any) -> string", careful)
    vm.register("again() -> nil", again)
    assert run(vm, "return refused({ x -> x })", inside=inside) == "UnsupportedValue"
    assert run(vm, "return careful({ -> sleep(1ms)\n again() })", inside=inside) == "VmMisuse"


@pytest.mark.parametrize("inside", [False, True], ids=["own loop", "inside a loop"])
def test_exit_in_a_call_ends_the_program(inside: bool) -> None:
    vm, _ = calling()
    with pytest.raises(ExitRequest) as caught:
        run(vm, "return through({ -> sleep(1ms)\n exit(3) })", inside=inside)
    assert caught.value.code == 3
    assert run(vm, "return through({ -> 1 })", inside=inside) == 1


@pytest.mark.parametrize("inside", [False, True], ids=["own loop", "inside a loop"])
def test_calls_that_end_are_forgotten(inside: bool) -> None:
    vm = Vm()
    left: list[int] = []

    async def many(quick: Any, slow: Any, failing: Any) -> None:
        for _ in range(20):
            assert await vm.call_async(quick) == 1
            with pytest.raises(VmError.Thrown):
                await vm.call_async(failing)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.001):
                    await vm.call_async(slow)
        left.append(len(vm.tasks.root.children or ()))

    vm.register("many(f: any, g: any, h: any) -> nil", many)
    run(vm, "many({ -> 1 }, { -> sleep(1h) }, { -> throw 1 })", inside=inside)
    assert left == [0]


def test_a_second_cancellation_waits_for_the_call_too() -> None:
    vm = Vm()
    said: list[str] = []
    vm.register("note(text: string) -> nil", said.append)
    began = asyncio.Event()
    vm.register("begin() -> nil", began.set)

    async def cancelled_twice(function: Any) -> None:
        call = asyncio.ensure_future(vm.call_async(function))
        await began.wait()
        for _ in range(2):
            call.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await call
        said.append("over")

    vm.register("cancelled_twice(f: any) -> nil", cancelled_twice)
    slow = '{ -> try { begin()\n sleep(1h) } finally { note("tidied") } }'
    run(vm, f"cancelled_twice({slow})", inside=True)
    assert said == ["tidied", "over"]


def test_in_another_loop_than_the_programs() -> None:
    vm = Vm()

    def elsewhere() -> None:
        asyncio.run(vm.call_async(None))

    vm.register("elsewhere() -> nil", elsewhere)
    with pytest.raises(VmMisuse, match="is running a program already"):
        vm.run_source("elsewhere()")
