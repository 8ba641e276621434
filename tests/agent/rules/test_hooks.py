"""Hooks: patterns, what they may answer, their order (07 §8.4)."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy import Vm
from harnpy.agent.rules.hooks import BeforeTool, Hooks, hook, payload_test
from harnpy.faults import MisuseError

PAYLOAD = {"tool": {"name": "db_write", "args": {"path": "src/a.py", "force": True, "n": 0, "none": None}}}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("", True),
        (" * ", True),
        ("db_*", True),
        ("*_write", True),
        ("db_write", True),
        ("db", False),
        ('tool.name == "db_write"', True),
        ("tool.name == 'db_write'", True),
        ("tool.name==db_write", True),
        ("tool.name != db_write", False),
        ('tool.args.path =~ "\\.py$"', True),
        ("tool.args.path =~ rc", True),
        ("tool.args.path =~ ^rc", False),
        ('tool.args.path =~ "("', False),
        ("tool.args.n == 0", True),
        ("tool.args.force == true", True),
        ("tool.args.none == null", True),
        ('tool.args.absent == ""', True),
        ("tool.args.absent != x", True),
        ("tool.args.path.deeper == ''", True),
        ('tool.args == \'{"force":true,"n":0,"none":null,"path":"src/a.py"}\'', True),
        ("tool.args.force", True),
        ("tool.args.path", True),
        ("tool.args.n", False),
        ("tool.args.none", False),
        ("tool.args.absent", False),
    ],
)
def test_patterns(pattern: str, expected: bool) -> None:
    assert payload_test(pattern)(PAYLOAD) is expected


def test_a_tool_pattern_matches_no_payload_without_tool() -> None:
    assert not payload_test("w*")({"worker": {"name": "w"}})
    assert payload_test("worker.name == w")({"worker": {"name": "w"}})


def test_unknown_events_are_refused() -> None:
    with pytest.raises(MisuseError, match="unknown hook event 'OnTool'"):
        hook("OnTool", print)


# Before a tool.


def test_hooks_change_arguments_one_after_the_other() -> None:
    hooks = Hooks()
    hooks.add("PreToolUse", lambda payload: None)
    hooks.add("PreToolUse", lambda payload: {"args": {**payload["tool"]["args"], "a": 1}}, "t*")
    hooks.add("PreToolUse", lambda payload: {"args": {**payload["tool"]["args"], "b": 2}})
    hooks.add("PreToolUse", lambda payload: {"args": {}}, "other")
    hooks.add("PreToolUse", lambda payload: {})
    assert hooks.before("tool", {"x": 0}) == BeforeTool({"x": 0, "a": 1, "b": 2})


def test_the_first_denial_wins() -> None:
    hooks = Hooks()
    hooks.add("PreToolUse", lambda payload: {"deny": "first"})
    hooks.add("PreToolUse", lambda payload: pytest.fail("called after a denial"))
    assert hooks.before("t", {}).denial == "first"


@pytest.mark.parametrize(("answer", "type"), [("no", "string"), ([], "list"), ({"args": 1}, "int")])
def test_wrong_answers_before_a_tool(answer: Any, type: str) -> None:
    hooks = Hooks()
    hooks.add("PreToolUse", lambda payload: answer)
    with pytest.raises(MisuseError) as error:
        hooks.before("t", {})
    assert str(error.value) == f"PreToolUse hook must return nil or {{deny, args}}, got {type}"


# After a tool.


def test_hooks_replace_the_result_one_after_the_other() -> None:
    hooks = Hooks()
    hooks.add("PostToolUse", lambda payload: payload["result"]["text"] + "b")
    hooks.add("PostToolUse", lambda payload: {"result": payload["result"]["text"] + "c"})
    hooks.add("PostToolUse", lambda payload: None)
    hooks.add("PostToolUse", lambda payload: {})
    assert hooks.after("t", {}, "a") == "abc"


def test_wrong_answers_after_a_tool() -> None:
    hooks = Hooks()
    hooks.add("PostToolUse", lambda payload: 1)
    with pytest.raises(MisuseError, match=r"PostToolUse hook must return nil, string, or {result}, got int"):
        hooks.after("t", {}, "a")


# Tool rules, clearing, other events.


def test_a_tool_rule_denies_and_shortens() -> None:
    hooks = Hooks()
    hooks.add_tool_rule("rm_*", deny="not here")
    hooks.add_tool_rule("*", max_output=300)
    assert hooks.before("rm_all", {}).denial == "not here"
    assert hooks.before("add", {}).denial is None
    text = hooks.after("add", {}, "x" * 1000)
    assert len(text) < 400
    assert "characters snipped" in text


def test_clearing_leaves_the_hooks_that_are_not_about_tools() -> None:
    turns: list[Any] = []
    hooks = Hooks()
    hooks.add_tool_rule("*", deny="no", max_output=200)
    hooks.add("PreAgentTurn", turns.append)
    hooks.clear_tool_hooks()
    assert hooks.before("t", {}).denial is None
    assert hooks.after("t", {}, "x" * 1000) == "x" * 1000
    hooks.run("PreAgentTurn", session={"id": "s"}, turn={"iteration": 0, "total_iterations": 3})
    assert turns == [
        {"event": "PreAgentTurn", "session": {"id": "s"}, "turn": {"iteration": 0, "total_iterations": 3}}
    ]


def test_an_embedder_s_hooks_hold_in_every_program() -> None:
    from harnpy.builtins.agents.tool_runtime import hooks_of

    vm = Vm()
    vm.hook("PreToolUse", lambda payload: {"deny": "no"}, "t*")
    vm.run_source("clear_tool_hooks()")
    assert hooks_of(vm).before("t", {}).denial == "no"
    vm.run_source('register_tool_hook({pattern: "x", deny: "never"})')
    assert [hooks_of(vm).before(name, {}).denial for name in ("t", "x", "y")] == ["no", "never", None]


def test_an_embedder_s_hooks_see_what_agents_do() -> None:
    seen: list[Any] = []
    vm = Vm()
    vm.hook("PreToolUse", lambda payload: {"args": {**payload["tool"]["args"], "added": True}})
    vm.hook("PostToolUse", lambda payload: payload["result"]["text"].upper(), 'tool.name =~ "^e"')
    vm.hook("PreAgentTurn", lambda payload: seen.append((payload["event"], payload["turn"])))
    vm.hook("PostAgentTurn", lambda payload: seen.append((payload["event"], payload["turn"]["iteration"])))
    told = vm.run_source(
        """
        pipeline main(task) {
          let echo = { args -> "args ${args}" }
          var tools = tool_define(tool_registry(), "echo", "", {parameters: {}, handler: echo})
          llm_mock({tool_calls: [{name: "echo", arguments: {n: 1}}]})
          llm_mock({text: "done"})
          let r = agent_loop("go", nil, {provider: "mock", tools: tools, max_iterations: 5})
          let executions = r.transcript.events.filter({ e -> e.kind == "tool_execution" })
          return executions.map({ e -> e.text })
        }
        """
    )
    assert told == ["ARGS {ADDED: TRUE, N: 1}"]
    assert seen == [
        ("PreAgentTurn", {"iteration": 0, "total_iterations": 5}),
        ("PostAgentTurn", 0),
        ("PreAgentTurn", {"iteration": 1, "total_iterations": 5}),
        ("PostAgentTurn", 1),
    ]
