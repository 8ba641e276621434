"""What an embedder's host offers: operations, tools, a person who answers. Spec: 04 §24, 07 §14.6."""

from __future__ import annotations

import asyncio
import gc
import os
import warnings
from threading import Event, Thread
from typing import Any

import pytest

from harnpy import Vm, VmError
from harnpy.agent.people import HumanCancelled
from harnpy.builtins.bridge.contexts import context_of
from harnpy.vm.errors import Cancelled
from harnpy.world import World
from harnpy.world.host import Host, People
from tests.support import PATIENCE

pytestmark = pytest.mark.usefixtures("clock")

Dict = dict[str, Any]


def answering(**answers: Any) -> tuple[World, list[Dict]]:
    """A host whose person gives the response under the request's kind; and what it was asked."""
    asked: list[Dict] = []

    def human(request: Dict) -> Any:
        asked.append(request)
        return answers[request["kind"]]

    return World(people=People(human)), asked


def test_a_person_gets_the_request_and_answers() -> None:
    host, asked = answering(question={"answer": "7"})
    assert Vm(host).run_source('return ask_user("How many?", {default: 1})') == 7
    assert asked[0]["request_id"].startswith("hitl_question_")
    assert (asked[0]["kind"], asked[0]["agent"], asked[0]["approved_by"]) == ("question", "", [])
    assert asked[0]["payload"] == {"prompt": "How many?", "default": 1}


def test_a_mock_comes_before_the_person() -> None:
    host, asked = answering(question={"answer": "real"})
    program = 'host_mock("hitl", "question", {answer: "mock"})\nreturn ask_user("?")'
    assert Vm(host).run_source(program) == "mock"
    assert asked == []


def test_a_person_is_asked_again_until_the_quorum_is_there() -> None:
    names = iter(["zoe", "ann"])
    seen: list[list[str]] = []

    async def human(request: Dict) -> Dict:
        seen.append(request["approved_by"])
        await asyncio.sleep(0)
        return {"approved": True, "reviewer": next(names)}

    record = Vm(World(people=People(human))).run_source('return request_approval("x", {quorum: 2})')
    assert record["reviewers"] == ["ann", "zoe"]
    assert seen == [[], ["zoe"]]


@pytest.mark.parametrize("response", [None, {"approved": True, "reviewer": "eve"}, {"approved": True}, []])
def test_a_person_who_does_not_bring_it_forward_is_not_asked_again(response: Any) -> None:
    host, asked = answering(approval=response)
    vm = Vm(host)
    program = (
        'return try { request_approval("x", {reviewers: ["ann"], deadline: 20ms}) } catch (e) { e.name }'
    )
    assert vm.run_source(program) == "HumanTimeoutError"
    assert len(asked) == 1


def test_a_response_that_is_none_fails_the_run() -> None:
    host, _ = answering(question="yes")
    with pytest.raises(VmError, match=r"the host's HITL question response must be a dict or list<dict>"):
        Vm(host).run_source('ask_user("?")')


def test_other_tasks_run_while_a_person_thinks() -> None:
    async def human(request: Dict) -> Dict:
        await asyncio.sleep(0.05)
        return {"answer": request["payload"]["prompt"] + "!"}

    program = """
    let answers = spawn { parallel each ["a", "b"] { text -> ask_user(text) } }
    sleep(10ms)
    let open = hitl_pending().count
    return [open, await(answers), hitl_pending().count]
    """
    assert Vm(World(people=People(human))).run_source(program) == [2, ["a!", "b!"], 0]
    assert asyncio.run(Vm(World(people=People(human))).run_async(program)) == [2, ["a!", "b!"], 0]


def test_a_person_who_is_too_slow_is_given_up_on() -> None:
    ended: list[str] = []

    async def human(request: Dict) -> Dict:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(request["kind"])
        return {}

    program = """
    let late = ask_user("?", {timeout: 20ms, default: "late"})
    let t = spawn { try { ask_user("?") } catch (e) { e.name } }
    sleep(5ms)
    let stopped = cancel_graceful(t).fields[0]
    let u = spawn { ask_user("?") }
    sleep(5ms)
    cancel(u)
    return [late, stopped, hitl_pending()]
    """
    assert Vm(World(people=People(human))).run_source(program) == ["late", "HumanCancelledError", []]
    assert ended == ["question"] * 3


def test_a_person_may_cancel_with_a_reason() -> None:
    def human(request: Dict) -> Dict:
        raise HumanCancelled("gone home")

    program = 'return try { ask_user("?", {default: 1}) } catch (e) { [e.name, e.message, e.reason] }'
    assert Vm(World(people=People(human))).run_source(program) == [
        "HumanCancelledError",
        "gone home",
        "gone home",
    ]


def test_a_person_who_was_not_asked_yet_when_the_run_ends_leaves_nothing() -> None:
    """Python would warn of a coroutine that nobody has begun."""

    async def answer() -> Dict:
        return {"answer": "late"}

    def human(request: Dict) -> Any:
        vm.cancel()
        return answer()

    vm = Vm(World(people=People(human)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(Cancelled):
            vm.run_source('ask_user("Well?")')
        gc.collect()
    assert [str(each.message) for each in caught] == []


def test_operations_of_the_host_are_called_and_described() -> None:
    def opened(params: Dict) -> Dict:
        """Open a file.

        In the editor.
        """
        return {"opened": params["path"]}

    async def slow(params: Dict) -> str:
        await asyncio.sleep(0)
        return "slow"

    vm = Vm(
        World(
            host=Host(
                operations={"editor.open": opened, "editor.slow": slow, "runtime.task": lambda _: "mine"}
            )
        )
    )
    program = """
    return [host_call("editor.open", {path: "a"}), host_call("editor.slow"), host_call("runtime.task"),
      host_capabilities().editor.operations.open.description,
      host_has("editor", "slow"), host_has("editor", "x")]
    """
    assert vm.run_source(program) == [{"opened": "a"}, "slow", "mine", "Open a file.", True, False]


def test_a_bridge_lists_and_runs_tools() -> None:
    class Bridge:
        def list(self) -> list[Dict]:
            return [{"name": "open"}]

        async def call(self, name: str, arguments: Dict) -> Any:
            await asyncio.sleep(0)
            return [name, arguments]

    vm = Vm(World(host=Host(bridge=Bridge())))
    program = 'return [host_tool_list(), host_tool_call("open", {x: 1}), host_tool_call("open")]'
    assert vm.run_source(program) == [[{"name": "open"}], ["open", {"x": 1}], ["open", {}]]


def test_an_active_policy_limits_host_calls_but_not_mocks() -> None:
    from harnpy.agent.context import Rules
    from harnpy.agent.rules.policy import read_policy

    vm = Vm()
    rules = Rules(policy=read_policy({"capabilities": {"workspace": ["list"]}}))
    program = """
    host_mock("process", "list_shells", "mocked")
    return [host_call("process.list_shells"), try { host_call("workspace.cwd") } catch (e) { e }]
    """
    governed = context_of(vm).govern(rules)
    with governed:
        assert vm.run_source(program) == [
            "mocked",
            "Error [tool_rejected]: host_call workspace.cwd exceeds capability ceiling",
        ]


def test_a_killed_wait_kills_the_command_and_what_it_started(tmp_path: Any) -> None:
    """What the command has started holds a pipe open as long as it lives."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    began, ended = Event(), Event()

    def watch() -> None:
        with open(pipe) as opened:
            began.set()
            opened.read()
        ended.set()

    Thread(target=watch, daemon=True).start()
    vm = Vm()
    vm.register("has_begun() -> bool", began.is_set)
    vm.run_source(f"""
    let command = "(sleep 1000 > {pipe}) & wait"
    let t = spawn {{ host_call("process.exec", {{shell_id: "sh", command: command}}) }}
    while !has_begun() {{ sleep(5ms) }}
    cancel(t)
    """)
    assert ended.wait(PATIENCE)


TOOL_LOOP = """
llm_mock({tool_calls: [{name: "open", arguments: {path: "a"}}]})
llm_mock({text: "ok"})
let tools = tool_define(tool_registry(), "open", "Open a file", CONFIG)
let result = agent_loop("go", nil, {provider: "mock", tools: tools, tool_format: "native", OPTIONS})
let answers = llm_mock_calls()[1].messages.filter({ m -> m.role == "tool" })
return [result.tools.successful, result.tools.rejected, answers[0].content]
"""


def loop_of_one_call(host: World | None, config: str, options: str = "max_iterations: 5") -> Any:
    return Vm(host).run_source(TOOL_LOOP.replace("CONFIG", config).replace("OPTIONS", options))


class Editor:
    def list(self) -> list[Dict]:
        return []

    async def call(self, name: str, arguments: Dict) -> str:
        await asyncio.sleep(0)
        return f"{name} {arguments['path']}"


def test_loops_let_the_bridge_run_tools() -> None:
    config = '{parameters: {path: {type: "string"}}, executor: "host_bridge", host_capability: "editor.open"}'
    assert loop_of_one_call(World(host=Host(bridge=Editor())), config) == [["open"], [], "open a"]
    assert loop_of_one_call(None, config)[:2] == [[], ["open"]]


def test_a_person_approves_the_tool_calls_of_a_loop() -> None:
    config = '{parameters: {path: {type: "string"}}, handler: { args -> "opened " + args.path }}'
    options = 'approval_policy: {require_approval: ["*"]}'
    yes, asked = answering(approval={"approved": True, "reviewer": "ann"})
    assert loop_of_one_call(yes, config, options) == [["open"], [], "opened a"]
    assert (asked[0]["payload"]["action"], asked[0]["payload"]["args"]) == ("call tool open", {"path": "a"})
    no, _ = answering(approval={"approved": False, "reviewer": "ann", "reason": "not today"})
    successful, rejected, content = loop_of_one_call(no, config, options)
    assert (successful, rejected) == ([], ["open"])
    assert "not today" in content
    assert "approval required but no host bridge is available" in loop_of_one_call(None, config, options)[2]


def test_a_synthesized_tool_is_run_by_the_bridge() -> None:
    program = """
    let mine = tool_synthesize({description: "d", executor: "host_bridge", name: "mine", host_tool: "open"})
    return mine({path: "b"})
    """
    assert Vm(World(host=Host(bridge=Editor()))).run_source(program) == "open b"
