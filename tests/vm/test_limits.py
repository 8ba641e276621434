"""Limits of an embedder: each ends a run wherever it is, however it was started, and the Vm goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

from harnpy import LimitExceeded, Limits, Vm, VmError
from harnpy.vm.errors import ExitRequest
from harnpy.vm.run.backtrace import render
from harnpy.world import World
from harnpy.world.streams import RealStreams
from tests.clock import SimulatedClock

pytestmark = pytest.mark.usefixtures("clock")


def in_sync(vm: Vm, source: str) -> Any:
    return vm.run_source(source)


def in_a_thread(vm: Vm, source: str) -> Any:
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(vm.run_source(source))
        except VmError as error:
            outcome.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(outcome[0], VmError):
        raise outcome[0]
    return outcome[0]


def in_a_loop(vm: Vm, source: str) -> Any:
    return asyncio.run(vm.run_async(source))


FORMS = [in_sync, in_a_thread, in_a_loop]

#: A limit, and a program that goes beyond it whatever it catches.
BEYOND = {
    "seconds": "while true { try { sleep(1ms) } catch (e) { } }",
    "steps": "while true { try { assert(false) } catch (e) { } finally { } }",
    "output": 'while true { try { print("ab") } catch (e) { } }',
    "items": "for i in [[]] { var xs = i; while true { try { xs = xs + [1] } catch (e) { } } }",
    "sessions": "for i in 0 to 100 { try { agent_session_open() } catch (e) { } }",
    "tasks": "for i in 0 to 100 { try { spawn { sleep(1h) } } catch (e) { } }",
    "model_calls": 'while true { try { llm_call("hi", nil, {provider: "mock"}) } catch (e) { } }',
}


@pytest.mark.parametrize("run", FORMS)
@pytest.mark.parametrize("evaluator", ["compile", "walk"])
@pytest.mark.parametrize("limit", BEYOND)
def test_a_limit_ends_the_run_and_nothing_else(
    limit: str, evaluator: str, run: Callable[[Vm, str], Any]
) -> None:
    vm = Vm(silent(), limits=Limits(**{limit: 9}), evaluator=evaluator)
    for _ in range(2):
        with pytest.raises(LimitExceeded) as caught:
            run(vm, BEYOND[limit])
        error = caught.value
        assert (error.limit, error.code, error.category) == (limit, f"limit_{limit}", "limit_exceeded")
        assert [frame.line for frame in error.frames] == [1]
        assert "1 | " in render(error)
        assert run(vm, "return 6 * 7") == 42
        vm.sessions.clear()


WAITING = {
    "asleep": "sleep(1h)",
    "in a channel": "let t = spawn { sleep(1h) }\nreceive(channel())",
    "for a task": "await(spawn { while true { } })",
    "in a deadline": "try { deadline 1h { while true { } } } catch (e) { }",
    "in parallel": "parallel each [1, 2] { n -> while true { } }",
    "in a callback": "[1].map({ n -> while true { } })",
    "in tail calls": "fn f(n) { return f(n + 1) }\nf(0)",
    "in a generator": "gen fn g() { while true { emit 1 } }\nfor x in g() { }",
    "in a deferred block": "fn f() { defer { while true { } } }\nf()",
}


@pytest.mark.parametrize("run", FORMS)
@pytest.mark.parametrize("program", WAITING)
def test_the_time_ends_wherever_the_program_is(program: str, run: Callable[[Vm, str], Any]) -> None:
    vm = Vm(limits=Limits(seconds=0.5))
    with pytest.raises(LimitExceeded, match=r"of 0\.5 seconds"):
        run(vm, WAITING[program])
    assert run(vm, "sleep(400ms)\nreturn 1") == 1


def test_the_call_stack_leads_through_the_task() -> None:
    vm = Vm(limits=Limits(steps=50))
    with pytest.raises(LimitExceeded) as caught:
        vm.run_source("fn spin() { while true { } }\nlet t = spawn {\n  spin()\n  1\n}\nawait(t)")
    assert [(frame.name, frame.line) for frame in caught.value.frames] == [
        ("spin", 1),
        ("<task>", 3),
        ("pipeline", 6),
    ]


def test_nothing_of_the_program_runs_after_a_limit() -> None:
    written: list[str] = []
    vm = Vm(World(streams=RealStreams(stdout=written.append)), limits=Limits(steps=100))
    source = """
fn f() {
  defer { println("deferred") }
  try { retry 3 { while true { } } } catch (e) { println("caught") } finally { println("finally") }
}
f()
"""
    with pytest.raises(LimitExceeded):
        vm.run_source(source)
    assert written == []


def test_every_run_begins_with_nothing_used() -> None:
    vm = Vm(silent(), limits=Limits(steps=50, output=20, model_calls=1))
    for _ in range(5):
        vm.run_source(
            'for i in 0 to 30 { }\nprint("12345678901234567890")\nllm_call("", nil, {provider: "mock"})'
        )
    count = vm.run_source("return { n -> for i in 0 to n { } }")
    for _ in range(3):
        vm.call(count, 30)
        with pytest.raises(LimitExceeded):
            vm.call(count, 100)
    talk = vm.repl()
    talk.run("let x = 1")
    with pytest.raises(LimitExceeded):
        talk.run("while true { }")
    assert talk.run("x") == 1


def test_tasks_that_have_ended_do_not_count() -> None:
    vm = Vm(limits=Limits(tasks=2))
    assert vm.run_source("var n = 0\nfor i in 1 to 50 { n = n + await(spawn { i }) }\nreturn n") == 1275
    assert vm.run_source("return parallel each [1, 2, 3] with {max_concurrent: 2} { n -> n }") == [1, 2, 3]


GROWING = {
    "in place": "var xs = []\nwhile true { xs = xs + [1, 2] }",
    "by its index": 'var d = {}\nvar i = 0\nwhile true { d["k${i}"] = 1\ni = i + 1 }',
    "by a compound": "var xs = []\nwhile true { xs += [1] }",
    "doubled": "var xs = [1]\nwhile true { xs = xs + xs }",
    "two of a kind": "var a = [1]\nvar b = a\nwhile true { b = a + [1]\na = b }",
    "merged": 'var d = {}\nvar i = 0\nwhile true { d = d + {["k${i}"]: 1}\ni = i + 1 }',
    "spread": "var xs = [1]\nwhile true { xs = [...xs, 1] }",
    "nested": "var d = {xs: []}\nwhile true { d.xs = d.xs + [1] }",
    "a method": "var xs = []\nwhile true { xs = xs.push(1) }",
    "a builtin": 'let xs = json_parse("[" + "1,".repeat(99) + "1]")',
    "a range": "let xs = range(1000000000).to_list()",
    "a string's parts": 'let xs = ("a," * 100).split(",")',
    "a set": "var s = set([])\nvar i = 0\nwhile true { s = set_add(s, i)\ni = i + 1 }",
    "a parameter": "fn f(xs) { return f(xs + [1]) }\nf([])",
    "in a task": "await(spawn { var xs = []\nwhile true { xs = xs + [1] } })",
}


@pytest.mark.parametrize("how", GROWING)
def test_no_collection_grows_beyond_its_limit(how: str) -> None:
    vm = Vm(limits=Limits(items=50))
    with pytest.raises(LimitExceeded, match="its limit of 50 items in a collection"):
        vm.run_source(GROWING[how])
    assert vm.run_source("return range(50).to_list().count") == 50


def test_standard_error_is_output() -> None:
    world = World(streams=RealStreams(stdout=lambda text: None, stderr=lambda text: None))
    with pytest.raises(LimitExceeded, match="of 10 characters of output"):
        Vm(world, limits=Limits(output=10)).run_source('print("123456")\neprint("78901")')


def test_a_function_of_the_embedder_cannot_swallow_it() -> None:
    vm = Vm(limits=Limits(steps=100))

    def tolerant(function: Any) -> None:
        try:
            vm.call(function)
        except Exception:
            return

    vm.register("tolerant(f: closure) -> nil", tolerant)
    with pytest.raises(LimitExceeded):
        vm.run_source("tolerant({ -> while true { } })")


def test_exit_is_no_limit() -> None:
    with pytest.raises(ExitRequest):
        Vm(limits=Limits(steps=5)).run_source("exit(3)")


@pytest.mark.parametrize("name", BEYOND)
@pytest.mark.parametrize("value", [0, -1, True, "5", float("nan"), float("inf")])
def test_a_limit_is_a_positive_number(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^Limits\({name}="):
        Limits(**{name: value})
    with pytest.raises(TypeError, match="minutes"):
        Limits(minutes=5)  # type: ignore[call-arg]


def test_without_limits_there_is_no_meter(clock: SimulatedClock) -> None:
    vm = Vm()
    vm.run_source("for i in 0 to 100 { }")
    assert vm.meter is None
    assert not vm.signal.pending


def silent() -> World:
    return World(streams=RealStreams(stdout=lambda text: None))
