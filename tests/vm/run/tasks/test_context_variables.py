"""Python's context variables in tasks: each has a copy of its starter's. Spec: 05 §1.3, 09 §16.2."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar, copy_context
from decimal import getcontext, localcontext
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from opentelemetry import trace

import harnpy
from harnpy import Vm
from harnpy.serve.program import Program
from harnpy.session.drafting import current_metadata, metadata

TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")
SPAN = trace.SpanContext(trace_id=7, span_id=9, is_remote=False)
HOST = ["acme", 50, 9, {"by": "host"}]


@contextmanager
def host(name: str = "acme") -> Iterator[None]:
    """Set what an application may have set: its own variable, arithmetic, a span, metadata of ours."""
    token = TENANT.set(name)
    try:
        with localcontext(prec=50), trace.use_span(trace.NonRecordingSpan(SPAN)), metadata(by="host"):
            yield
    finally:
        TENANT.reset(token)


def seen() -> list[Any]:
    span = trace.get_current_span().get_span_context()
    return [TENANT.get(), getcontext().prec, span.span_id, current_metadata()]


async def seen_soon() -> list[Any]:
    await asyncio.sleep(0)
    return seen()


def change() -> None:
    TENANT.set("a task's own")


def equipped(vm: Any) -> Any:
    vm.register("seen() -> list", seen)
    vm.register("seen_soon() -> list", seen_soon)
    vm.register("change() -> nil", change)
    return vm


# How a host runs a program: each returns what the program returned.

Run = Callable[[str], Any]


def with_run(source: str) -> Any:
    return equipped(Vm()).run_source(source)


def walked(source: str) -> Any:
    return equipped(Vm(evaluator="walk")).run_source(source)


def with_call(source: str) -> Any:
    vm = equipped(Vm())
    function = vm.run_source(f"return {{ -> {source}\n}}")
    return vm.call(function)


def with_run_async(source: str) -> Any:
    return asyncio.run(equipped(Vm()).run_async(source))


def inside_another(source: str) -> Any:
    """As a builtin of another program, which awaits it."""
    outer, inner = Vm(), equipped(Vm())
    outer.register("run() -> any", lambda: inner.run_async(source))
    return outer.run_source("return await(spawn { run() })")


def in_a_thread(source: str) -> Any:
    found: list[Any] = []
    thread = Thread(target=copy_context().run, args=(lambda: found.append(with_run(source)),))
    thread.start()
    thread.join()
    return found[0]


def with_to_thread(source: str) -> Any:
    return asyncio.run(asyncio.to_thread(with_run, source))


@cache
def apart() -> Any:
    """One process for all; it ends with this one."""
    return equipped(harnpy.isolated())


def isolated(source: str) -> Any:
    return apart().run_source(source)


@asynccontextmanager
async def serving(path: Path, source: str) -> AsyncIterator[Callable[[], Any]]:
    path.write_text(f"pub fn run() {{\n{source}\n}}")
    async with Program(equipped(Vm()), str(path)) as program:
        yield lambda: program.call(program.module.functions["run"], [])


WAYS_IN: list[Run] = [
    with_run,
    walked,
    with_call,
    with_run_async,
    inside_another,
    in_a_thread,
    with_to_thread,
    isolated,
]

LOOK = """
let look = { ->
  let found = [seen(), seen_soon()]
  change()
  found
}
"""
#: How a program starts tasks: each returns a list of what `look` returned, or of what `seen` did.
STARTS = {
    "none": "return [seen(), seen_soon()]",
    "spawn": "return await(spawn { look() })",
    "spawn twice": "let a = spawn { look() }\nlet b = spawn { look() }\nreturn await(a) + await(b)",
    "spawn inside": "return await(spawn { await(spawn { look() }) + look() })",
    "parallel": "let all = parallel 3 { _i -> look() }\nreturn all[0] + all[1] + all[2] + [seen()]",
    "each": "let all = parallel each [1, 2] { _n -> look() }\nreturn all[0] + all[1] + [seen()]",
    "capped": "return parallel each [1, 2] with { max_concurrent: 1 } { _n -> look() }.flat_map({ x -> x })",
    "settle": "let all = parallel settle [1] { _n -> look() }\nreturn unwrap(all.results[0]) + [seen()]",
    "stream": "let all = parallel each [1, 2] { _n -> look() } as stream\nvar found = []\n"
    "for one in all { found = found + one }\nreturn found",
    "race": "return parallel_race([1], { _n -> look() }) + [seen()]",
    "generator": "gen fn items() { emit seen()\nemit seen_soon() }\nreturn iter(items()).to_list()",
    "pulled elsewhere": "gen fn items() { emit seen()\nemit seen_soon() }\nlet all = items()\n"
    "return [all.next().value] + await(spawn { [all.next().value] })",
    "supervisor": 'let out = channel("out", 9)\nlet fails = { info ->\n send(out, seen())\n change()\n'
    ' if info.attempt == 1 { throw "again" }\n}\n'
    "let it = supervisor_start({children: [{task: fails}]})\n"
    "let found = [receive(out), receive(out)]\nsupervisor_stop(it)\nreturn found",
    "channel": 'let out = channel("out", 1)\nspawn { send(out, look()) }\nreturn receive(out)',
}


@pytest.mark.parametrize("run", WAYS_IN)
def test_every_task_sees_what_its_starter_had(run: Run) -> None:
    with host():
        for name, source in STARTS.items():
            found = run(LOOK + source)
            assert len(found) > 1, name
            assert found == [HOST] * len(found), name
        assert TENANT.get() == "acme"


def test_calls_of_a_served_program_see_what_their_callers_have(tmp_path: Path) -> None:
    """The program itself was loaded by somebody else."""

    async def called(run: Callable[[], Any], name: str) -> Any:
        with host(name):
            return await run()

    async def main(source: str) -> list[Any]:
        async with serving(tmp_path / "served.harn", source) as run:
            return await asyncio.gather(called(run, "a"), called(run, "b"))

    for source in STARTS.values():
        for name, found in zip("ab", asyncio.run(main(LOOK + source)), strict=True):
            assert found == [[name, *HOST[1:]]] * len(found)


@pytest.mark.parametrize("evaluator", ["compile", "walk"])
@pytest.mark.parametrize("way", ["sync", "async"])
def test_the_program_itself_runs_in_its_callers_context(evaluator: str, way: str) -> None:
    """What it sets is set afterwards, as with any function and any coroutine."""
    vm = equipped(Vm(evaluator=evaluator))

    async def main() -> str:
        await vm.run_async("gen fn g() { change()\nemit 1 }\niter(g()).to_list()")
        return TENANT.get()

    def run() -> str:
        vm.run_source("gen fn g() { change()\nemit 1 }\niter(g()).to_list()")
        return TENANT.get()

    context = copy_context()
    assert context.run(run if way == "sync" else lambda: asyncio.run(main())) == "a task's own"
    assert TENANT.get() == "nobody"


def test_a_task_that_is_aborted_cleans_up_in_its_own_context() -> None:
    vm = equipped(Vm())
    ends: list[str] = []
    begun: list[bool] = []

    async def wait() -> None:
        TENANT.set("the coroutine's own")
        begun.append(True)
        try:
            await asyncio.Event().wait()
        finally:
            ends.append(TENANT.get())

    vm.register("wait() -> nil", wait)
    vm.register("begun() -> bool", lambda: bool(begun))
    source = "let t = spawn { wait() }\nwhile !begun() { sleep(1ms) }\ncancel(t)\nreturn seen()"
    with host():
        assert vm.run_source(source) == HOST
    assert ends == ["the coroutine's own"]


def test_a_task_that_a_coroutine_starts_is_on_nobodys_behalf() -> None:
    """The rules of a task that waits hold for the coroutine, and not for a program that this starts."""
    vm = Vm()
    responsible: list[bool] = []

    async def start() -> None:
        tasks = vm.tasks
        waiting = tasks.responsible()
        tasks.create(lambda depth: responsible.append(tasks.responsible() is waiting), tasks.root)
        await asyncio.sleep(0)

    vm.register("start() -> nil", start)
    vm.register("over() -> bool", lambda: bool(responsible))
    vm.run_source("await(spawn { start() })\nwhile !over() { sleep(1ms) }")
    assert responsible == [False]
