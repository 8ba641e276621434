"""Graphs as values: laws of the normal form, of edits and of the policies of a stage (08 §6)."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.agent.rules.permissions import ApprovalPolicy
from harnpy.agent.rules.policy import Policy, PolicyError
from harnpy.faults import MisuseError
from harnpy.formats.shapes import fields_of
from harnpy.workflow import graph_editing, graph_shapes
from harnpy.workflow.graph import normalise_graph
from harnpy.workflow.graph_validation import (
    BUILT_IN_CEILING,
    stage_approval,
    stage_policy,
    validate_graph,
    with_granted_tools,
)
from harnpy.world import World
from tests.workflow.graphs import GRAPHS, WITH_NODES

Dict = dict[str, Any]
WORLD = World()


@given(GRAPHS)
def test_the_normal_form_is_its_own(graph: Dict) -> None:
    normal = normalise_graph(graph, WORLD)
    assert normalise_graph(normal, WORLD) == normal


@given(GRAPHS)
def test_every_key_is_there(graph: Dict) -> None:
    normal = normalise_graph(graph, WORLD)
    assert set(normal) == set(fields_of(graph_shapes.Graph).always)
    for node in normal["nodes"].values():
        assert set(node) >= set(fields_of(graph_shapes.Node).always)
        for field, shape in graph_shapes.POLICIES.items():
            assert set(node[field]) >= set(fields_of(shape).always)


@given(GRAPHS)
def test_reading_changes_nothing(graph: Dict) -> None:
    before = deepcopy(graph)
    validate_graph(normalise_graph(graph, WORLD))
    assert graph == before


def test_graphs_share_no_defaults() -> None:
    """What a Python caller does to one graph must not show in the next."""
    normalise_graph({"nodes": {"a": {}}}, WORLD)["nodes"]["a"]["capability_policy"]["tools"].append("x")
    assert normalise_graph({"nodes": {"a": {}}}, WORLD)["nodes"]["a"]["capability_policy"]["tools"] == []


@given(GRAPHS)
def test_validation_finds_nodes_that_are_reachable(graph: Dict) -> None:
    normal = normalise_graph(graph, WORLD)
    found = validate_graph(normal)
    assert found["valid"] == (not found["errors"])
    assert normal["entry"] in found["reachable_nodes"]
    for edge in normal["edges"]:
        if edge["from"] in found["reachable_nodes"]:
            assert edge["to"] in found["reachable_nodes"]


EDITS: list[Callable[[Dict], Dict]] = [
    lambda graph: graph_editing.clone(graph, WORLD),
    lambda graph: graph_editing.insert_node(graph, {"kind": "fork"}, {"from": "a", "to": "b"}, WORLD),
    lambda graph: graph_editing.replace_node(graph, "a", {"system": "new"}, WORLD),
    lambda graph: graph_editing.rewire(graph, "a", "b", "failed", WORLD),
    lambda graph: graph_editing.set_policy(
        graph, next(iter(graph["nodes"])), "model_policy", {"model": "m"}, WORLD
    ),
    lambda graph: graph_editing.set_output_visibility(graph, next(iter(graph["nodes"])), "public", WORLD),
]


@given(WITH_NODES, st.sampled_from(EDITS))
def test_an_edit_changes_nothing_but_its_result(given_graph: Dict, edit: Callable[[Dict], Dict]) -> None:
    graph = normalise_graph({**given_graph, "nodes": {"a": {}, **given_graph["nodes"]}}, WORLD)
    before = deepcopy(graph)
    edited = edit(graph)
    assert graph == before
    assert edited["audit_log"][:-1] == graph["audit_log"]
    assert normalise_graph(edited, WORLD) == edited


# What a stage may do.


def tool(name: str, **policy: Any) -> Dict:
    entry = {"name": name, "parameters": {}, "handler": lambda arguments: "x"}
    return {**entry, "policy": policy} if policy else entry


def graph(policy: Any = None, **node: Any) -> tuple[Dict, Dict]:
    normal = normalise_graph({"capability_policy": policy, "nodes": {"n": node}}, WORLD)
    return normal, normal["nodes"]["n"]


def test_a_stage_without_policies_has_the_ceiling() -> None:
    assert stage_policy(BUILT_IN_CEILING, *graph()) == BUILT_IN_CEILING


def test_a_stage_has_what_all_grant() -> None:
    given_policy = {"tools": ["a", "b"], "recursion_limit": 4, "side_effect_level": "process_exec"}
    policy = stage_policy(
        BUILT_IN_CEILING,
        *graph(given_policy, capability_policy={"tools": ["b"], "side_effect_level": "network"}),
    )
    assert policy == Policy(tools=("b",), recursion_limit=4, side_effect_level="process_exec")


def test_a_stage_takes_over_what_its_tools_say() -> None:
    tools = [
        tool("read", kind="read", side_effect_level="read_only", capabilities={"workspace": ["read_text"]}),
        tool("run", kind="execute", side_effect_level="process_exec", path_params=["cwd"],
             capabilities={"workspace": ["list", "read_text"], "process": ["exec"]}),
        tool("plain"),
    ]  # fmt: skip
    policy = stage_policy(BUILT_IN_CEILING, *graph(tools=tools))
    assert policy.tools == ("read", "run", "plain")
    assert policy.capabilities == {"workspace": ("read_text", "list"), "process": ("exec",)}
    assert policy.side_effect_level == "process_exec"
    assert policy.tool_annotations["run"] == {
        "kind": "execute", "side_effect_level": "process_exec", "path_params": ["cwd"], "arg_aliases": {},
        "required": [], "emits_artifacts": False, "result_readers": [], "inline_result": False,
    }  # fmt: skip
    assert set(policy.tool_annotations) == {"read", "run"}


@pytest.mark.parametrize("whole_first", [True, False])
def test_a_capability_that_one_tool_needs_whole_is_needed_whole(whole_first: bool) -> None:
    tools = [tool("a", capabilities={"net": []}), tool("b", capabilities={"net": ["get"]})]
    policy = stage_policy(BUILT_IN_CEILING, *graph(tools=tools if whole_first else tools[::-1]))
    assert policy.capabilities == {"net": ()}


def test_a_stage_that_asks_for_more_than_its_graph_grants() -> None:
    with pytest.raises(PolicyError, match=r"^requested tools exceed host ceiling: b$"):
        stage_policy(BUILT_IN_CEILING, *graph({"tools": ["a"]}, capability_policy={"tools": ["b"]}))


def test_tools_that_say_more_than_the_graph_grants() -> None:
    tools = [tool("a", kind="read"), tool("b", kind="read")]
    with pytest.raises(PolicyError, match=r"^requested tools exceed host ceiling: b$"):
        stage_policy(BUILT_IN_CEILING, *graph({"tools": ["a"]}, tools=tools))


@pytest.mark.parametrize("registry", [True, False])
def test_a_node_keeps_the_tools_that_it_grants(registry: bool) -> None:
    entries = [tool("look"), tool("list"), tool("rm")]
    tools = {"_type": "tool_registry", "tools": entries} if registry else entries
    _, node = graph(tools=tools, capability_policy={"tools": ["l*"]})
    kept = with_granted_tools(node)["tools"]
    assert [entry["name"] for entry in (kept["tools"] if registry else kept)] == ["look", "list"]
    assert len(entries) == 3


def test_a_node_without_grants_keeps_its_tools() -> None:
    _, node = graph(tools=[tool("look")])
    assert with_granted_tools(node) == node


def approval(
    outer: ApprovalPolicy | None, of_graph: Any = None, of_node: Any = None
) -> ApprovalPolicy | None:
    normal = normalise_graph(
        {"approval_policy": of_graph, "nodes": {"n": {"approval_policy": of_node}}}, WORLD
    )
    return stage_approval(outer, normal, normal["nodes"]["n"])


def test_approval_policies_meet() -> None:
    assert approval(None) is None
    assert approval(ApprovalPolicy(auto_deny=("x",))) == ApprovalPolicy(auto_deny=("x",))
    assert approval(
        ApprovalPolicy(auto_approve=("a", "b"), auto_deny=("x",)),
        {"auto_approve": ["b", "c"], "auto_deny": ["y"]},
        {"auto_deny": ["z"], "require_approval": ["q"], "write_path_allowlist": ["src/*"]},
    ) == ApprovalPolicy(("b",), ("x", "y", "z"), ("q",), ("src/*",))


@pytest.mark.parametrize("bad", [3, "x", [1], {"tools": 1}])
def test_a_policy_that_cannot_be_read_is_no_policy_at_all_but_an_error(bad: Any) -> None:
    with pytest.raises(MisuseError, match=r"orchestration parse error at nodes\.n.capability_policy"):
        graph(capability_policy=bad)
