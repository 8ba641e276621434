"""A Vm in a process of its own: the same results and errors, hard limits, nothing of ours but the given."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import harnpy
from harnpy import HostError, LimitExceeded, Limits, UnsupportedValue, Vm, VmError
from harnpy.isolation.process import is_lack_of_memory
from harnpy.syntax.diagnostic import CompileFault, SourceFault, SyntaxFault
from harnpy.vm.errors import ExitRequest
from harnpy.vm.run.backtrace import render
from harnpy.vm.values import display
from tests.support import PATIENCE, wait_until
from tests.vm.test_limits import BEYOND


@pytest.fixture(scope="module")
def apart() -> Iterator[Any]:
    with harnpy.isolated(memory="1G") as vm:
        yield vm


# --- values and errors ----------------------------------------------------------------------------------

VALUES = """
enum Shape { Circle(r), Empty }
struct Point { x: int }
return [nil, true, 1, -9223372036854775808, 2.5, "ü\\u{1F600}", [[]], {a: {b: 1}},
  Ok([1]), Shape.Circle(2), Shape.Empty, 5s, set([1, "a"]), 1 to 3, pair("a", 1), Point({x: 3})]
"""


def test_values_cross(apart: Any) -> None:
    here, there = Vm().run_source(VALUES), apart.run_source(VALUES)
    assert list(map(display, there[:-1])) == list(map(display, here[:-1]))
    assert there[-1] == {"x": 3}
    apart.set_global("given", there[:-1])
    assert display(apart.run_source("return given")) == display(here[:-1])


@pytest.mark.parametrize(
    ("source", "what"),
    [("return channel()", "channel"), ("return [rng_seed(1)]", "rng"), ("return spawn { 1 }", "task")],
)
def test_what_cannot_cross_is_named(apart: Any, source: str, what: str) -> None:
    with pytest.raises(
        VmError, match=rf"the result can't be returned: an? .*{what}.* can't leave its process"
    ):
        apart.run_source(source)


def test_functions_stay_there_and_are_called(apart: Any) -> None:
    double = apart.run_source("fn double(n) { return n * 2 }\nreturn {f: double}")["f"]
    assert apart.call(double, 21) == 42
    assert apart.call(apart.run_source("return { f -> f(1) }"), double) == 2
    assert asyncio.run(apart.call_async(double, 3)) == 6
    with harnpy.isolated() as other:
        other.run_source("return 1")
        with pytest.raises(TypeError, match="belongs to another process"):
            other.call(double, 1)


FAILING = [
    "fn f(n) {\n  throw {code: n}\n}\nf(3)",
    "fn f(n) { return 1 / n }\nfn g(n) { let x = f(n)\nreturn x }\ng(0)",
    "await(spawn { undefined_name })",
    "import { nothing } from 'nowhere'",
]


@pytest.mark.parametrize("source", FAILING)
def test_errors_are_the_same(apart: Any, source: str) -> None:
    errors: list[Any] = []
    for vm in (Vm(), apart):
        try:
            vm.run_source(source, file="job.harn")
        except (VmError, SourceFault) as error:
            errors.append(error)
    here, there = errors
    assert type(there) is type(here)
    assert str(there) == str(here)
    if isinstance(here, VmError):
        assert render(there) == render(here)
        assert repr(there.frames) == repr(here.frames)
    else:
        assert there.render() == here.render()


@pytest.mark.parametrize(
    ("source", "kind"),
    [("let x =", SyntaxFault), ("f(\n", SyntaxFault), ("break", CompileFault), ("nope()", SourceFault)],
)
def test_refusals_are_the_same(apart: Any, source: str, kind: type[SourceFault]) -> None:
    with pytest.raises(kind) as here:
        Vm().run_source(source, file="job.harn")
    with pytest.raises(kind) as there:
        apart.run_source(source, file="job.harn")
    assert there.value.render() == here.value.render()


def test_exit_is_the_programs_wish(apart: Any) -> None:
    with pytest.raises(ExitRequest) as caught:
        apart.run_source("exit(7)")
    assert caught.value.code == 7


def test_files_are_read_here(apart: Any, tmp_path: Path) -> None:
    (tmp_path / "other.harn").write_text("pub fn one() { return 1 }")
    program = tmp_path / "main.harn"
    program.write_text('import { one } from "./other"\nreturn [one(), argv]')
    assert apart.run_file(str(program), args=["a"]) == [1, ["a"]]
    with pytest.raises(FileNotFoundError):
        apart.run_file(str(tmp_path / "none.harn"))


# --- what only the embedder has ---------------------------------------------------------------------------


def test_questions_are_answered_here() -> None:
    async def later(n: int) -> int:
        await asyncio.sleep(0)
        return n + os.getpid()

    def refuse() -> None:
        raise VmError.Thrown({"why": "no"})

    def ask(request: dict[str, Any]) -> dict[str, Any]:
        return {"answer": request["payload"]["prompt"].upper()}

    operations = {"editor.open": lambda params: {"opened": params["path"]}}
    with harnpy.isolated(operations=operations, ask=ask) as vm:
        vm.register("later(n: int) -> int", later)
        vm.register("refuse() -> nil", refuse)
        vm.register("take(value: any) -> nil", lambda value: None)
        vm.register("broken() -> nil", lambda: 1 / 0)
        pids = [os.getpid() + n for n in (1, 2, 3)]
        assert vm.run_source("return parallel each [1, 2, 3] { n -> later(n) }") == pids
        assert vm.run_source("return try { refuse() } catch (e) { e.why }") == "no"
        assert vm.run_source('return host_call("editor.open", {path: "a"})') == {"opened": "a"}
        assert vm.run_source('return ask_user("name?")') == "NAME?"
        with pytest.raises(HostError, match=r"^broken: ZeroDivisionError: ") as caught:
            vm.run_source("broken()")
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert vm.run_source("return try { broken() } catch (e) { e.type }") == "ZeroDivisionError"
        vm.register("price() -> any", lambda: {"orders": [{"price": Decimal("1.5")}]})
        with pytest.raises(HostError, match=r"orders\[0\]\.price is of the type Decimal"):
            vm.run_source("price()")
        with pytest.raises(UnsupportedValue, match=r"^the global `rate` is of the type Decimal"):
            vm.set_global("rate", Decimal(1))
        with pytest.raises(VmError, match="can't leave"):
            vm.run_source("take(channel())")


def test_output_and_events_arrive_as_they_come() -> None:
    out: list[str] = []
    err: list[str] = []
    events: list[dict[str, Any]] = []
    with harnpy.isolated(write_out=out.append, write_err=err.append, events=events.append) as vm:
        vm.run_source('println("a")\neprint("b")')
        vm.run_source('agent_loop("go", nil, {provider: "mock", max_iterations: 1})')
        assert ("".join(out), "".join(err)) == ("a\n", "b")
        assert "turn_start" in {event["type"] for event in events}
        vm.run_source('for i in 1 to 3000 { println("x" * 1000) }')
        assert len("".join(out)) == 2 + 3000 * 1001


def test_sessions_live_on_between_runs() -> None:
    with harnpy.isolated() as vm:
        vm.run_source('agent_session_open("s")')
        assert vm.run_source('return agent_session_exists("s")') is True


# --- limits -----------------------------------------------------------------------------------------------

SMALL = 192 << 20
HUNGRY = {
    "a string": 'var s = "ab"\nwhile true { s = s + s }',
    "a list": "var xs = [1]\nwhile true { xs = xs + xs }",
    "a dict": 'var d = {}\nvar i = 0\nwhile true { d["k${i}"] = "v" * 1000 + "${i}"\ni = i + 1 }',
    "nested lists": "var xs = []\nwhile true { xs = [xs, [1, 2, 3]] }",
    "tasks": "while true { spawn { sleep(1h) }\nsleep(1ms) }",
    "output in tasks": 'await(spawn { while true { print("x" * 5000000) } })',
}


@pytest.mark.parametrize("program", HUNGRY)
def test_memory_is_never_exceeded(program: str) -> None:
    with harnpy.isolated(memory=SMALL, cpu=60) as vm:
        with pytest.raises(LimitExceeded) as caught:
            vm.run_source(HUNGRY[program])
        assert caught.value.limit == "memory"
        assert str(caught.value).endswith("the program exceeded its limit of 192M of memory")
        assert vm.run_source("return 1") == 1


def test_too_little_memory_is_refused() -> None:
    with harnpy.isolated(memory="8M") as vm, pytest.raises(VmError, match="8M of memory is too low"):
        vm.run_source("return 1")


@pytest.mark.parametrize("size", ["", "M", "12X", "-5M", 0, -1, True, "1.5G", None])
def test_a_size_is_a_number_of_bytes(size: Any) -> None:
    if size is None:
        harnpy.isolated(memory=None).close()
        return
    with pytest.raises(ValueError, match="is no size of memory"):
        harnpy.isolated(memory=size)


def test_processor_time() -> None:
    with harnpy.isolated(cpu=1) as vm:
        with pytest.raises(LimitExceeded, match="of 1 seconds of processor time") as caught:
            vm.run_source("while true { }")
        assert caught.value.limit == "cpu"
        assert vm.run_source("return 1") == 1


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a process that is asked to end take as long as a busy machine needs."""
    monkeypatch.setattr("harnpy.isolation.vm._GRACE", 30.0)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("program", ["while true { }", "sleep(1h)", "receive(channel())"])
def test_the_time_of_a_run(program: str) -> None:
    with harnpy.isolated(seconds=1) as vm:
        with pytest.raises(LimitExceeded, match=r"of 1 seconds") as caught:
            vm.run_source(program)
        assert caught.value.limit == "seconds"
        assert caught.value.frames
        assert vm.run_source("return 1") == 1


def test_a_process_that_does_not_stop_in_time_is_killed() -> None:
    with harnpy.isolated(seconds=1) as vm:
        child = vm.run_source("return 1") and process_of(vm)
        os.kill(child, signal.SIGSTOP)
        with pytest.raises(LimitExceeded, match=r"of 1 seconds"):
            vm.run_source("return 2")
        assert vm.run_source("return 3") == 3
        assert process_of(vm) != child


@pytest.mark.parametrize("limit", BEYOND)
def test_every_limit_ends_the_run_there(limit: str) -> None:
    limits = Limits(**{limit: 1 if limit == "seconds" else 9})
    with harnpy.isolated(limits=limits, write_out=lambda text: None) as vm:
        with pytest.raises(LimitExceeded) as caught:
            vm.run_source(BEYOND[limit])
        assert (caught.value.limit, caught.value.code) == (limit, f"limit_{limit}")
        assert [frame.line for frame in caught.value.frames] == [1]
        assert vm.run_source("return 6 * 7") == 42


def test_limits_count_there() -> None:
    with harnpy.isolated(limits=Limits(steps=100)) as vm:
        with pytest.raises(LimitExceeded) as caught:
            vm.run_source("for i in 0 to 1000 { }", file="a.harn")
        assert repr(caught.value.frames) == "(pipeline at a.harn:1:1,)"


# --- the end ------------------------------------------------------------------------------------------------


def process_of(vm: Any) -> int:
    pid: int = vm._child.process.pid
    return pid


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"


def test_cancel_ends_the_run_and_keeps_the_process() -> None:
    with harnpy.isolated() as vm:
        vm.register("started() -> nil", lambda: Thread(target=vm.cancel).start())
        with pytest.raises(VmError, match=r"Error \[cancelled\]: VM cancelled by host"):
            vm.run_source("started()\nwhile true { }")
        child = process_of(vm)
        assert vm.run_source("return 1") == 1
        assert process_of(vm) == child
        vm.cancel()
        assert vm.run_source("return 2") == 2


def test_cancelling_the_coroutine() -> None:
    async def main() -> int:
        with harnpy.isolated() as vm:
            for program in ("while true { }", "sleep(1h)"):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(vm.run_async(program), 0.3)
            value: int = await vm.run_async("return 5")
            return value

    assert asyncio.run(main()) == 5


@pytest.mark.usefixtures("patient")
def test_cancelling_a_run_before_it_begins_keeps_the_process() -> None:
    async def main() -> int:
        with harnpy.isolated() as vm:
            run = asyncio.create_task(vm.run_async("return 4"))
            await asyncio.sleep(0)
            process = vm._child
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)
            assert run.cancelled()
            assert vm._child is process
            value: int = await vm.run_async("return 5")
            return value

    assert asyncio.run(main()) == 5


@pytest.mark.parametrize(
    "error", [MemoryError(), SystemError("error return"), RuntimeError("can't start new thread")]
)
def test_ways_in_which_python_reports_a_lack_of_memory(error: Exception) -> None:
    assert is_lack_of_memory(error)
    assert not is_lack_of_memory(RuntimeError("another"))


def test_one_run_at_a_time_and_no_blocking_in_a_loop() -> None:
    async def main() -> None:
        with harnpy.isolated() as vm:
            first = asyncio.create_task(vm.run_async("sleep(1h)"))
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="running a program already"):
                await vm.run_async("return 1")
            with pytest.raises(RuntimeError, match="use `run_async` or `call_async`"):
                vm.run_source("return 1")
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)

    asyncio.run(main())


def test_two_run_at_once() -> None:
    async def main() -> list[Any]:
        with harnpy.isolated() as one, harnpy.isolated() as other:
            spinning = asyncio.create_task(one.run_async("while true { }"))
            value = await other.run_async("return 1")
            spinning.cancel()
            return [value, *await asyncio.gather(spinning, return_exceptions=True)]

    value, ended = asyncio.run(main())
    assert value == 1
    assert isinstance(ended, asyncio.CancelledError)


def test_a_process_that_dies_is_reported_and_replaced() -> None:
    with harnpy.isolated() as vm:
        vm.register("die() -> nil", lambda: os.kill(process_of(vm), signal.SIGKILL))
        with pytest.raises(VmError, match="has ended by signal 9"):
            vm.run_source("die()\nsleep(1h)")
        assert vm.run_source("return 1") == 1


def test_closing_ends_all_that_it_started(tmp_path: Path) -> None:
    vm = harnpy.isolated(directory=str(tmp_path), env={"PATH": os.environ["PATH"]})
    assert vm.run_source('return exec("sh", "-c", "sleep 1000 >&- 2>&- & echo $!").stdout.trim()').isdecimal()
    left = int(vm.run_source('return exec("sh", "-c", "sleep 1000 >&- 2>&- & echo $!").stdout.trim()'))
    child = process_of(vm)
    assert is_running(left)
    vm.close()
    vm.close()
    wait_until(lambda: not is_running(left))
    assert not is_running(child)


_EMBEDDER = """
import os, harnpy
vm = harnpy.isolated()
vm.run_source("return 1")
vm.register("tell() -> nil", lambda: print(vm._child.process.pid, flush=True))
vm.run_source("tell()\\nwhile true { }")
"""


def test_it_ends_with_its_embedder() -> None:
    embedder = subprocess.Popen([sys.executable, "-c", _EMBEDDER], stdout=subprocess.PIPE)
    with embedder:
        assert embedder.stdout
        child = int(embedder.stdout.readline())
        embedder.kill()
        embedder.wait(PATIENCE)
    wait_until(lambda: not is_running(child))


def test_it_may_reach_what_we_may(monkeypatch: pytest.MonkeyPatch) -> None:
    caught = 'type_of(e) == "dict" ? e.reason : "allowed"'
    ask = f'return try {{ http_get("http://127.0.0.1:1/") }} catch (e) {{ {caught} }}'
    ours = ["HARN_EGRESS_DENY"]
    for env in ({}, {"HARN_EGRESS_ALLOW": "127.0.0.1"}):
        monkeypatch.setenv(ours[0], "127.0.0.0/8")
        with harnpy.isolated(env=env) as vm:
            monkeypatch.delenv(ours[0])
            assert vm.run_source(ask) == ("allowed" if env else "matched deny rule `127.0.0.0/8`")


# --- what it has --------------------------------------------------------------------------------------------


def test_it_has_nothing_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "1")
    read, write = os.pipe()
    os.set_inheritable(write, True)
    env = {"PATH": os.environ["PATH"], "GIVEN": "yes"}
    try:
        with harnpy.isolated(env=env, directory=str(tmp_path)) as vm:
            seen = vm.run_source('return exec("env").stdout').split("\n")
            assert {line.partition("=")[0] for line in seen if line} <= {"PATH", "GIVEN", "PWD", "SHLVL", "_"}
            assert vm.run_source('return exec("pwd").stdout.trim()') == str(tmp_path)
            assert vm.run_source("return read_line()") is None
            links = [os.readlink(entry) for entry in Path(f"/proc/{process_of(vm)}/fd").iterdir()]
            assert os.readlink(f"/proc/self/fd/{write}") not in links
            kinds = {link.partition(":")[0] for link in links}
            assert kinds <= {"/dev/null", "socket", "anon_inode"}
            assert os.getsid(process_of(vm)) == process_of(vm)
    finally:
        os.close(read)
        os.close(write)
