"""Workflow graphs: building and inspecting them. Spec: 08 §6."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import RuntimeFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm
    from harnpy.workflow.graph.graph_types import Graph

#: What all declarations here have in common.
builtin = partial(declare, family="workflows")


@builtin("workflow_graph(graph?: dict) -> dict")
def workflow_graph(vm: Vm, graph: Value) -> Graph:
    """The normal form of a graph: every key of it, its nodes and edges, with the defaults.

    `act`, `verify` and `repair` stand for nodes where there are no `nodes`. Spec: 08 §6.2.

    Example:
        workflow_graph({entry: "draft", nodes: {draft: {}}}).nodes.draft.kind  // "stage"
    """
    return _normal(vm, graph)


@builtin("workflow_validate(graph: dict, ceiling?: dict) -> dict")
def workflow_validate(vm: Vm, graph: Value, ceiling: Value) -> Dict:
    """What is wrong with a graph: `{valid, errors, warnings, reachable_nodes}`.

    `ceiling` is the capability policy that the graph must stay below. Spec: 08 §6.3.

    Example:
        workflow_validate(workflow_graph({entry: "gone", nodes: {a: {}}})).valid  // false
    """
    from harnpy.workflow.graph.policies import read_ceiling
    from harnpy.workflow.graph.validate import validate

    return validate(_normal(vm, graph), read_ceiling(ceiling))


@builtin("workflow_inspect(graph: dict, ceiling?: dict) -> dict")
def workflow_inspect(vm: Vm, graph: Value, ceiling: Value) -> Dict:
    """A graph with its validation and counts: `{graph, validation, node_count, edge_count}`.

    Example:
        workflow_inspect(workflow_graph({entry: "a", nodes: {a: {}}})).node_count  // 1
    """
    from harnpy.workflow.graph.inspection import inspect

    return inspect(_normal(vm, graph), ceiling)


@builtin("workflow_policy_report(graph: dict, ceiling?: dict) -> dict")
def workflow_policy_report(vm: Vm, graph: Value, ceiling: Value) -> Dict:
    """What a graph and its nodes may do: `{workflow_policy, ceiling, validation, nodes}`.

    Of each node: `{node_id, policy, tools}`.

    Example:
        workflow_policy_report(workflow_graph({entry: "a", nodes: {a: {}}})).nodes[0].node_id  // "a"
    """
    from harnpy.workflow.graph.inspection import policy_report

    return policy_report(_normal(vm, graph), ceiling)


@builtin("workflow_diff(left: dict, right: dict) -> dict")
def workflow_diff(vm: Vm, left: Value, right: Value) -> Dict:
    """Whether two graphs differ as data, with their normal forms: `{changed, left, right}`.

    Example:
        let flow = workflow_graph({id: "review", entry: "a", nodes: {a: {}}})
        workflow_diff(flow, workflow_clone(flow)).changed  // true
    """
    from harnpy.workflow.graph.inspection import diff

    for side, graph in (("left", left), ("right", right)):
        if graph is None:
            raise RuntimeFault(f"workflow_diff: missing {side} workflow")
    return diff(_normal(vm, left), _normal(vm, right))


def _normal(vm: Vm, graph: Value) -> Graph:
    from harnpy.workflow.graph.normalise import normalise_graph

    return normalise_graph(graph, sessions_of(vm).world)
