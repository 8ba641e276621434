"""What is said of tools that say little of themselves (07 §4.7): only what decides about their calls."""

from __future__ import annotations

import pytest

from harnpy import Vm
from harnpy.world import World
from harnpy.world.streams import RealStreams

_SOURCE = """
fn look(args) { return "seen" }
llm_mock({text: "<user_response>ok</user_response>\\n<done>##DONE##</done>"})
let tools = tool_define(tool_registry(), "look", "Look", {parameters: {}, handler: look})
"""
_LOOP = 'agent_loop("go", nil, {provider: "mock", tools: tools, POLICIES})'
_STAGE = (
    'workflow_execute("go", workflow_graph({nodes: {a: {mode: "agent", tools: tools, '
    'model_policy: {provider: "mock"}, POLICIES}}}), [], {persist_path: argv[0]})'
)


def warnings(program: str, path: object) -> str:
    written: list[str] = []
    Vm(World(streams=RealStreams(stdout=lambda text: None, stderr=written.append))).run_source(
        _SOURCE + program, args=[str(path)]
    )
    return "".join(written)


@pytest.mark.parametrize(
    "policy", ['{side_effect_level: "network"}', "{recursion_limit: 3}", '{tools: ["look"]}']
)
def test_nothing_where_nothing_hangs_on_it(policy: str, tmp_path: object) -> None:
    assert warnings(_LOOP.replace(", POLICIES", ""), "") == ""
    assert warnings(_LOOP.replace("POLICIES", f"policy: {policy}"), "") == ""
    assert warnings(_STAGE.replace(", POLICIES", ""), f"{tmp_path}/r.json") == ""
    assert warnings(_STAGE.replace("POLICIES", f"capability_policy: {policy}"), f"{tmp_path}/r.json") == ""


@pytest.mark.parametrize(
    "given",
    [
        'POLICY: {side_effect_level: "process_exec"}',
        'POLICY: {capabilities: {workspace: ["read"]}}',
        'POLICY: {tool_arg_constraints: [{tool: "look", arg_patterns: ["*"]}]}',
        'approval_policy: {auto_approve: ["*"]}',
    ],
)
def test_a_warning_where_something_does(given: str, tmp_path: object) -> None:
    expected = (
        "warning: agent.tool_surface: TOOL_SURFACE_MISSING_ANNOTATIONS: tool 'look' has no annotations\n"
    )
    loop, stage = given.replace("POLICY", "policy"), given.replace("POLICY", "capability_policy")
    assert expected in warnings(_LOOP.replace("POLICIES", loop), "")
    assert expected in warnings(_STAGE.replace("POLICIES", stage), f"{tmp_path}/r.json")
