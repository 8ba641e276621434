"""Calls of `process.exec` under a policy: what is run, what is shown, who may perform it. Spec: 02 §28."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harnpy import Vm
from harnpy.agent.context import AgentContext
from harnpy.agent.rules.command_call import CommandCall
from harnpy.agent.rules.command_policy import CommandPolicy
from harnpy.faults import MisuseError
from harnpy.world import World
from harnpy.world.host import Host

Dict = dict[str, Any]

_PARAMS = {
    "mode": "argv", "argv": ["echo", "a"], "env": {"TOKEN": "s3cret", "N": "s3cret2"}, "stdin": "s3cret3",
}  # fmt: skip


def call(
    policy: CommandPolicy, params: Dict | None = None, context: AgentContext | None = None
) -> CommandCall:
    def notify(session_id: str, kind: str, content: str) -> None:
        raise AssertionError("no session was driven")

    context = context or AgentContext()
    context.rules = context.rules.commanded(context.rules.commands.push(policy))
    return CommandCall(policy, params or _PARAMS, context, "/w", World(), notify)


@pytest.mark.parametrize(
    "policy",
    [
        CommandPolicy(deny_patterns=("echo",)),
        CommandPolicy(pre=(lambda context: {"deny": json.dumps(context)},)),
        CommandPolicy(pre=(lambda context: {"dry_run": True},)),
        CommandPolicy(post=(lambda context: {"annotations": [context]},)),
    ],
)
def test_values_of_the_environment_and_of_the_input_are_shown_nowhere(policy: CommandPolicy) -> None:
    result = call(policy).run(lambda params: {"status": "completed", "stdout": "out"})
    assert "s3cret" not in json.dumps(result)
    assert result["command_policy"]["context"]["request"]["env_diff"].keys() == {"TOKEN", "N"}


def test_what_is_stopped_is_not_performed_and_nothing_is_after_it() -> None:
    performed: list[Dict] = []

    def unasked(context: Dict) -> None:
        raise AssertionError("it was not run")

    policy = CommandPolicy(deny_patterns=("echo",), pre=(unasked,), post=(unasked,))
    assert call(policy).run(performed.append)["status"] == "blocked"
    assert performed == []


def test_hooks_of_two_policies_are_called_in_order_each_about_what_the_one_before_made() -> None:
    seen: list[Any] = []

    def rewriting(word: str) -> CommandPolicy:
        def pre(context: Dict) -> Dict:
            seen.append(context["request"]["argv"])
            return {"rewrite": {"argv": [*context["request"]["argv"], word]}}

        def post(context: Dict) -> Dict:
            seen.append(context["result"]["stdout"])
            return {"result": {"stdout": context["result"]["stdout"] + word}, "annotations": [word], word: 1}

        return CommandPolicy(pre=(pre,), post=(post,))

    both = rewriting("b").met(rewriting("c"))
    result = call(both).run(lambda params: {"stdout": " ".join(params["argv"])})
    assert seen == [["echo", "a"], ["echo", "a", "b"], "echo a b c", "echo a b cb"]
    assert result["stdout"] == "echo a b cbc"
    assert result["command_policy"]["annotation"] == {"annotations": ["c"], "b": 1, "c": 1}


def test_roots_that_two_policies_do_not_share_are_none() -> None:
    apart = CommandPolicy(("/a",)).met(CommandPolicy(("/b",), require_approval=("outside_workspace",)))
    for directory in ("/a", "/b", "/w"):
        stopped = call(apart, {"mode": "argv", "argv": ["ls"], "cwd": directory}).run(dict)
        assert stopped["reason"] == "command requires approval for risk class outside_workspace"
    within = CommandPolicy(("/a",)).met(CommandPolicy(("/a/b",)))
    assert within.workspace_roots == ("/a/b",)


def test_a_hook_that_raises_leaves_the_policy_as_it_was() -> None:
    def broken(context: Dict) -> Any:
        raise MisuseError("broken")

    context, policy = AgentContext(), CommandPolicy(pre=(broken,))
    broken_call = call(policy, context=context)
    before = context.rules
    with pytest.raises(MisuseError, match="broken"):
        broken_call.run(dict)
    assert context.rules is before
    assert not context.rules.commands.in_hook


def test_a_host_that_performs_commands_is_governed_too() -> None:
    asked: list[Dict] = []

    async def perform(params: Dict) -> Any:
        asked.append(params)
        return {"status": "completed", "stdout": "hi"} if params["argv"] == ["a"] else "text"

    program = """
        command_policy_push({deny_patterns: ["b"], pre: { ctx -> {rewrite: {env: {}}} }})
        let run = { argv -> host_call("process.exec", {mode: "argv", argv: argv}) }
        return [run(["a"]).command_policy.decisions[-1].source, run(["b"]).status, run(["c"])]
    """
    vm = Vm(World(host=Host(operations={"process.exec": perform})))
    assert vm.run_source(program) == ["deterministic", "blocked", "text"]
    assert asked == [{"mode": "argv", "argv": [name], "env": {}} for name in ("a", "c")]


def test_a_mock_answers_before_the_policy() -> None:
    program = """
        command_policy_push({deny_patterns: ["*"]})
        host_mock("process", "exec", {status: "mocked"})
        return host_call("process.exec", {command: "ls"})
    """
    assert Vm().run_source(program) == {"status": "mocked"}


def test_the_ceiling_in_force_is_shown_to_hooks() -> None:
    program = """
        let tools = tool_define(tool_registry(), "run", "Run", {parameters: {}, handler: { args ->
          host_call("process.exec", {mode: "argv", argv: ["ls"]}).reason
        }})
        llm_mock({tool_calls: [{name: "run", arguments: {}}]})
        let policy = {
          side_effect_level: "process_exec", tool_annotations: {run: {kind: "exec"}},
          command_policy: {pre: { ctx ->
            {deny: "${ctx.policy.ceiling.side_effect_level} ${ctx.tool_annotations}"}
          }},
        }
        let r = agent_loop("go", nil, {provider: "mock", tools: tools, policy: policy, max_iterations: 1})
        return r.transcript.events.filter({ e -> e.kind == "tool_execution" })[0].text
    """
    assert Vm().run_source(program) == "process_exec {run: {kind: exec}}"
