"""The embedder cancels a run: wherever the program is, it ends there, and can't keep it from happening."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest

from harnpy import Cancelled, Vm, VmError
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request
from tests.support import ends
from tests.worlds import OwnWorld

#: Where programs are when they are cancelled: each calls `begun()` first, then waits or computes for ever.
PLACES = {
    "a loop": "begun()\nwhile true { }",
    "a sleep": "begun()\nsleep(1h)",
    "a model call": 'begun()\nllm_call("hi", nil, {provider: "slow", model: "m"})',
    "a request": "begun()\nhttp_get(address)",
    "a coroutine": "begun()\nforever()",
    "a process": 'begun()\nexec("sleep", "1000")',
    "a channel": "let c = channel(1)\nspawn { begun()\n sleep(1h) }\nreceive(c)",
    "a lock": "let t = spawn { mutex { begun()\n sleep(1h) } }\nsleep(1ms)\nmutex { 1 }",
    "parallel": "parallel each [1, 2] { n -> begun()\n sleep(1h) }",
    "parallel that computes": "parallel each [1, 2] { n -> begun()\n while true { } }",
    "a generator": "gen fn g() { begun()\n sleep(1h)\n emit 1 }\nfor x in g() { }",
    "a retry": "begun()\nretry 1000000 { sleep(1h) }",
    "a retry that computes": "begun()\nretry 1000000 { while true { } }",
    "a try": "begun()\nwhile true { try { sleep(1h) } catch (e) { } }",
    "a try that computes": "begun()\nwhile true { try { while true { } } catch (e) { } }",
    "a result": "begun()\nwhile true { let r = try { sleep(1h) } }",
    "a deadline": "begun()\ndeadline 1h { while true { } }",
    "a defer": "fn f() { defer { begun()\n while true { } } }\nf()",
    "a finally": "try { 1 } finally { begun()\n sleep(1h) }",
    "a callback": "begun()\n[1].map({ n -> while true { } })",
    "a finally that goes on": "begun()\nwhile true { try { sleep(1h) } finally { while true { } } }",
    "a finally that leaves": "begun()\nwhile true { try { sleep(1h) } finally { continue } }",
    "a finally that throws": "begun()\nwhile true { try { try { sleep(1h) } finally { throw 1 } } catch {} }",
}


class Slow:
    async def complete(self, request: Request) -> Reply:
        await asyncio.sleep(3600)
        raise AssertionError


class Run:
    """A program that a thread of its own runs."""

    def __init__(self, source: str, evaluator: str = "compile", **functions: Callable[..., Any]) -> None:
        self.vm = Vm(OwnWorld(stdout=lambda text: None), evaluator=evaluator)
        self.begun, self.error = Event(), None  # type: BaseException | None
        self.value: Any = None
        self.vm.register("begun() -> nil", self.begun.set)
        self.vm.provide("slow", Slow())

        async def forever() -> None:
            await asyncio.sleep(3600)

        self.vm.register("forever() -> nil", forever)
        for name, function in functions.items():
            self.vm.register(f"{name}() -> any", function)
        self._source = source
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self.begun.wait(30)

    def _run(self) -> None:
        try:
            self.value = self.vm.run_source(self._source)
        except BaseException as error:
            self.error = error

    def end(self) -> BaseException | None:
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self.error


@pytest.fixture(scope="module")
def silent_address() -> Any:
    """The URL of a server that never answers."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


@pytest.mark.parametrize("evaluator", ["compile", "walk"])
@pytest.mark.parametrize("place", PLACES)
def test_another_thread_cancels(place: str, evaluator: str, silent_address: str) -> None:
    run = Run(PLACES[place].replace("address", f'"{silent_address}"'), evaluator)
    run.vm.cancel()
    error = run.end()
    assert type(error) is Cancelled
    assert error.text == "Error [cancelled]: VM cancelled by host"
    assert run.vm.run_source("return range(3).sum()") == 3
    assert not run.vm.signal.pending


@pytest.mark.parametrize("evaluator", ["compile", "walk"])
@pytest.mark.parametrize("place", PLACES)
def test_the_asyncio_task_is_cancelled(place: str, evaluator: str, silent_address: str) -> None:
    source = PLACES[place].replace("address", f'"{silent_address}"')

    async def main() -> int:
        vm, begun = Vm(OwnWorld(stdout=lambda text: None), evaluator=evaluator), asyncio.Event()
        vm.register("begun() -> nil", begun.set)
        vm.register("forever() -> nil", lambda: asyncio.sleep(3600))
        vm.provide("slow", Slow())
        running = asyncio.create_task(vm.run_async(source))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        value: int = await vm.run_async("return 5")
        return value

    with ends():
        assert asyncio.run(main()) == 5


def test_cancel_also_ends_what_a_loop_runs() -> None:
    async def main() -> None:
        vm = Vm()
        running = asyncio.create_task(vm.run_async("sleep(1h)"))
        await asyncio.sleep(0)
        vm.cancel()
        with pytest.raises(Cancelled):
            await running

    asyncio.run(main())


def test_a_python_function_goes_on_to_its_end_and_nothing_comes_after() -> None:
    going, seen = Event(), []

    def block() -> str:
        run_is_on.wait(30)
        going.wait(30)
        seen.append("its end")
        return "value"

    run_is_on = Event()
    run = Run("begun()\nblock()\nafter()\nreturn 1", block=block, after=lambda: seen.append("after"))
    run.vm.cancel()
    run_is_on.set()
    going.set()
    assert type(run.end()) is Cancelled
    assert seen == ["its end"]


CLEANING = """
fn work() {
  defer { see("deferred first") }
  defer { see("deferred")\n sleep(1h)\n see("never") }
  try { begun()\n sleep(1h) } catch (e) { see("caught") } finally { see("finally") }
}
spawn { try { sleep(1h) } finally { see("of a task") } }
try { work() } catch (e) { see("caught outside") }
see("after")
"""


@pytest.mark.parametrize("evaluator", ["compile", "walk"])
def test_what_cleans_up_runs_and_does_not_wait(evaluator: str) -> None:
    seen: list[str] = []
    vm, begun = Vm(OwnWorld(), evaluator=evaluator), Event()
    vm.register("begun() -> nil", begun.set)
    vm.register("see(what: string) -> nil", seen.append)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            vm.run_source(CLEANING)
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=work)
    thread.start()
    assert begun.wait(30)
    vm.cancel()
    thread.join(30)
    assert seen == ["finally", "deferred", "deferred first", "of a task"]
    assert [type(error) for error in errors] == [Cancelled]


def test_the_turns_of_what_cleans_up_are_few() -> None:
    """Counted, and not timed: as many as no machine is long about."""
    counted: list[int] = []
    run = Run(
        "try { begun()\n sleep(1h) } finally { while true { count() } }", count=lambda: counted.append(1)
    )
    run.vm.cancel()
    assert type(run.end()) is Cancelled
    assert 100 < len(counted) <= 256


def test_one_that_was_cancelled_says_where_it_was() -> None:
    run = Run("fn wait() {\n  begun()\n  sleep(1h)\n}\nlet a = wait()")
    run.vm.cancel()
    error = run.end()
    assert isinstance(error, VmError)
    assert [(frame.name, frame.line) for frame in error.frames] == [("wait", 3), ("pipeline", 5)]


def test_a_cancellation_between_runs_is_forgotten() -> None:
    vm = Vm()
    vm.cancel()
    assert vm.run_source("return 1") == 1
    vm.cancel()
    assert vm.call(vm.run_source("return { n -> n + 1 }"), 1) == 2
    talk = vm.repl()
    vm.cancel()
    assert talk.run("1 + 1") == 2


def test_an_error_keeps_no_greenlet_of_its_thread() -> None:
    """A thread that ends gives up its greenlets; one that a traceback still held crashed the process."""
    from greenlet import getcurrent

    counts: list[int] = []
    errors: list[BaseException] = []
    vm, begun = Vm(OwnWorld()), Event()
    vm.register("begun() -> nil", begun.set)

    def work() -> None:
        counts.append(sys.getrefcount(getcurrent()))
        try:
            vm.run_source(PLACES["a channel"])
        except Cancelled as error:
            errors.append(error)
        counts.append(sys.getrefcount(getcurrent()))

    thread = Thread(target=work)
    thread.start()
    assert begun.wait(30)
    vm.cancel()
    thread.join(30)
    assert len(errors) == 1
    assert counts[1] <= counts[0]
