"""What a function of the embedder's raises: a program can catch it, and it is the cause of what is left."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from harnpy import Host, HostError, People, Vm, VmError, World
from harnpy.llm.errors import CallError


def find(number: int) -> None:
    raise LookupError(f"no parcel {number}")


async def later(number: int) -> None:
    await asyncio.sleep(0)
    find(number)


class Bridge:
    def list(self) -> list[dict[str, Any]]:
        return []

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        find(4)


def made(evaluator: str = "compile") -> Vm:
    host = Host({"parcel.find": lambda params: find(4)}, Bridge())
    vm = Vm(World(host=host, people=People(lambda request: find(4))), evaluator=evaluator)
    vm.register("find(number: int) -> any", find)
    vm.register("later(number: int) -> any", later)
    vm.hook("PreToolUse", lambda call: find(4), "hooked")
    return vm


AGENT = """
let tools = tool_define(tool_registry(), "NAME", "", {parameters: {}, handler: { args -> find(4) }})
llm_mock({tool_calls: [{name: "NAME", arguments: {}}]})
llm_mock({text: "done"})
let out = agent_loop("go", nil, {provider: "mock", tools: tools})
"""

CALLS = {
    "a call": "find(4)",
    "a coroutine": "later(4)",
    "nested calls": "fn f(n) { let x = find(n)\nreturn x }\nfn g(n) { let x = f(n)\nreturn x }\ng(4)",
    "a tail call": "fn f(n) { return find(n) }\nf(4)",
    "a callback": "[4].map({ n -> find(n) })",
    "a task": "await(spawn { find(4) })",
    "parallel": "parallel each [4] { n -> later(n) }",
    "a generator": "gen fn g() { emit find(4) }\nfor x in g() { }",
    "a retry": "retry 3 { find(4) }",
    "a deadline": "deadline 1h { find(4) }",
    "a finally": "try { find(4) } finally { 1 }",
    "thrown again": "try { find(4) } catch (e) { throw e }",
    "a host call": 'host_call("parcel.find", {})',
    "a host's tool": 'host_tool_call("x", {})',
    "a person": 'ask_user("which?")',
    "a hook": AGENT.replace("NAME", "hooked"),
}


@pytest.mark.parametrize("inside", [False, True], ids=["blocking", "in a loop"])
@pytest.mark.parametrize("evaluator", ["compile", "walk"])
@pytest.mark.parametrize("call", CALLS)
def test_the_exception_is_the_cause_with_its_traceback(call: str, evaluator: str, inside: bool) -> None:
    vm = made(evaluator)
    with pytest.raises(VmError) as failed:
        asyncio.run(vm.run_async(CALLS[call])) if inside else vm.run_source(CALLS[call])
    cause = failed.value.__cause__
    assert isinstance(cause, LookupError)
    assert str(cause) == "no parcel 4"
    assert "find" in [frame.name for frame in traceback.extract_tb(cause.__traceback__)]
    assert failed.value.frames


@pytest.mark.parametrize("evaluator", ["compile", "walk"])
@pytest.mark.parametrize("call", [call for call in CALLS if call != "a hook"])
def test_a_program_catches_it(call: str, evaluator: str) -> None:
    source = f"return try {{\n{CALLS[call]}\n}} catch (e) {{ [e.type, e.message, e.category] }}"
    assert made(evaluator).run_source(source) == ["LookupError", "no parcel 4", "host_error"]


def test_what_is_caught_is_data() -> None:
    source = "let e = try { find(4) } catch (e) { e }\nreturn [e, error_category(e)]"
    value = {"category": "host_error", "type": "LookupError", "message": "no parcel 4", "function": "find"}
    assert made().run_source(source) == [value, "host_error"]


def test_uncaught_its_text_names_function_and_type() -> None:
    with pytest.raises(HostError) as failed:
        made().run_source("fn f() {\n  find(4)\n}\nlet x = f()")
    assert str(failed.value) == "find: LookupError: no parcel 4"
    assert [(frame.name, frame.line) for frame in failed.value.frames] == [("f", 2), ("pipeline", 4)]


def test_a_model_reads_it_as_the_result_of_its_tool() -> None:
    vm = made()
    source = AGENT.replace("NAME", "finder") + "return llm_mock_calls()[1].messages"
    assert "\nError: find: LookupError: no parcel 4\n" in vm.run_source(source)[-1]["content"]


def passing(error: BaseException) -> Callable[[], None]:
    def raises() -> None:
        raise error

    return raises


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), asyncio.CancelledError()])
def test_what_is_no_exception_of_the_embedders_passes(error: BaseException) -> None:
    vm = Vm()
    vm.register("f() -> nil", passing(error))
    with pytest.raises(type(error)):
        vm.run_source("try { f() } catch (e) { 1 }")


def test_errors_of_harn_and_faults_stay_what_they_are() -> None:
    vm = Vm()
    vm.register("f() -> nil", passing(VmError.Thrown({"why": "no"})))
    vm.register("g() -> nil", passing(CallError("overloaded", "too much to do")))
    assert vm.run_source("return try { f() } catch (e) { e.why }") == "no"
    assert "too much to do" in str(vm.run_source("return try { g() } catch (e) { e }"))
