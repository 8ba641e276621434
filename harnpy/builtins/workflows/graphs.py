"""Workflow graphs: building, inspecting and editing them; a given graph doesn't change. Spec: 08 §6."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values import display
from harnpy.workflow import graph_editing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.formats.dicts import Dict
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm
    from harnpy.workflow.graph import NormalGraph
    from harnpy.workflow.graph_shapes import Graph

builtin = partial(declare, family="workflows")

_MOST_MADE = 8


@builtin("workflow_graph(graph?: dict) -> dict")
def workflow_graph(vm: Vm, graph: Value) -> Graph:
    """Return a graph in normalised form: every key, its nodes and edges, with defaults.

    Without `nodes`, `act`, `verify` and `repair` stand for nodes. Spec: 08 §6.2.

    Example: workflow_graph({entry: "draft", nodes: {draft: {}}}).nodes.draft.kind  // "stage"
    """
    normal = _normal(vm, graph)
    vm.state(MadeGraphs).add(normal)
    return normal


class MadeGraphs:
    """The last graphs that `workflow_graph` returned: a run of one needn't bring it into normal form again.

    A program can't change a value; what it derives from one of these is another dict.
    """

    def __init__(self) -> None:
        self._made: dict[int, tuple[Graph, NormalGraph]] = {}

    def add(self, graph: Graph) -> None:
        from harnpy.workflow.graph import NormalGraph
        from harnpy.workflow.records.record_shapes import data_parts

        parts = data_parts(graph)
        prompts = (node["auto_compact"].get("summarize_prompt") for node in graph["nodes"].values())
        if parts is not None and not any(prompts):
            while len(self._made) >= _MOST_MADE:
                del self._made[next(iter(self._made))]
            self._made[id(graph)] = (graph, NormalGraph(graph, parts))

    def find(self, graph: Value) -> NormalGraph | None:
        """Return a graph that is one of them; None for another one, or one with functions in it."""
        found = self._made.get(id(graph))
        return None if found is None else found[1]


@builtin("workflow_validate(graph: dict, ceiling?: dict) -> dict")
def workflow_validate(vm: Vm, graph: Value, ceiling: Value) -> Dict:
    """Validate a graph: `{valid, errors, warnings, reachable_nodes}`.

    `ceiling` is the capability policy that the graph must stay below. Spec: 08 §6.3.

    Example: workflow_validate(workflow_graph({entry: "gone", nodes: {a: {}}})).valid  // false
    """
    from harnpy.workflow.graph_validation import read_ceiling, validate_graph

    return validate_graph(_normal(vm, graph), read_ceiling(ceiling))


@builtin("workflow_inspect(graph: dict, ceiling?: dict) -> dict")
def workflow_inspect(vm: Vm, graph: Value, ceiling: Value) -> Dict:
    """Return a graph with its validation and counts: `{graph, validation, node_count, edge_count}`.

    Example: workflow_inspect(workflow_graph({entry: "a", nodes: {a: {}}})).node_count  // 1
    """
    from harnpy.workflow.graph_validation import inspect_graph

    return inspect_graph(_normal(vm, graph), ceiling)


@builtin("workflow_policy_report(graph: dict, ceiling?: dict) -> dict")
def workflow_policy_report(vm: Vm, graph: Value, ceiling: Value) -> Dict:
    """Return what a graph and its nodes may do: `{workflow_policy, ceiling, validation, nodes}`.

    Of each node: `{node_id, policy, tools}`.

    Example: workflow_policy_report(workflow_graph({entry: "a", nodes: {a: {}}})).nodes[0].node_id  // "a"
    """
    from harnpy.workflow.graph_validation import policy_report

    return policy_report(_normal(vm, graph), ceiling)


@builtin("workflow_diff(left: dict, right: dict) -> dict")
def workflow_diff(vm: Vm, left: Value, right: Value) -> Dict:
    """Compare two graphs as data; return their normalised forms too: `{changed, left, right}`.

    Example:
        let flow = workflow_graph({id: "review", entry: "a", nodes: {a: {}}})
        workflow_diff(flow, workflow_clone(flow)).changed  // true
    """
    from harnpy.workflow.graph_validation import graph_diff

    for side, graph in (("left", left), ("right", right)):
        if graph is None:
            raise RuntimeFault(f"workflow_diff: missing {side} workflow")
    return graph_diff(_normal(vm, left), _normal(vm, right))


def _normal(vm: Vm, graph: Value) -> Graph:
    from harnpy.workflow.graph import normalise_graph

    return normalise_graph(graph, sessions_of(vm).world)


# Editing workflow graphs; the given graphs don't change. Spec: 08 §6.5.


_POLICY_UPDATE = "workflow policy update"

#: What most declarations here have in common.
editing_builtin = partial(declare, family="workflows", counted=True)


@editing_builtin("workflow_clone(graph: dict) -> dict", counted=False)
def workflow_clone(vm: Vm, graph: Value) -> Graph:
    """Return the graph with `_clone` added to its id, and the next version.

    Example:
        let flow = workflow_graph({id: "review", entry: "a", nodes: {a: {}}})
        workflow_clone(flow).id  // "review_clone"
    """
    return graph_editing.clone(graph, sessions_of(vm).world)


@editing_builtin("workflow_insert_node(graph: dict, node: dict, edge?: dict) -> dict")
def workflow_insert_node(vm: Vm, graph: Value = None, node: Value = None, edge: Value = None) -> Graph:
    """Return the graph with a node added, and an edge if given; a node with the same id is replaced.

    Example:
        let flow = workflow_graph({entry: "a", nodes: {a: {}}})
        let longer = workflow_insert_node(flow, {id: "b"}, {from: "a", to: "b"})
        longer.nodes.keys()  // ["a", "b"]
    """
    _require("workflow_insert_node", workflow=graph, node=node)
    return graph_editing.insert_node(graph, node, edge, sessions_of(vm).world)


@editing_builtin("workflow_replace_node(graph: dict, id: string, node: dict) -> dict")
def workflow_replace_node(vm: Vm, graph: Value = None, id: Value = None, node: Value = None) -> Graph:
    """Return the graph with another node under an id; an unknown id is added.

    Example:
        let flow = workflow_graph({entry: "a", nodes: {a: {}}})
        workflow_replace_node(flow, "a", {system: "Be brief."}).nodes.a.system  // "Be brief."
    """
    _require("workflow_replace_node", workflow=graph, node_id=id, node=node)
    return graph_editing.replace_node(graph, display(id), node, sessions_of(vm).world)


@editing_builtin("workflow_rewire(graph: dict, from_id: string, to_id: string, branch?: string) -> dict")
def workflow_rewire(
    vm: Vm, graph: Value = None, from_id: Value = None, to_id: Value = None, branch: Value = None
) -> Graph:
    """Return the graph with one edge instead of all that leave `from_id` on that branch (nil: without one).

    Example:
        let flow = workflow_graph({entry: "a", nodes: {a: {}, b: {}}})
        workflow_rewire(flow, "a", "b").edges[0].to  // "b"
    """
    _require("workflow_rewire", workflow=graph, **{"from": from_id, "to": to_id})
    return graph_editing.rewire(graph, display(from_id), display(to_id), _text(branch), sessions_of(vm).world)


@editing_builtin("workflow_set_model_policy(graph: dict, id: string, policy: dict) -> dict")
def workflow_set_model_policy(vm: Vm, graph: Value = None, id: Value = None, policy: Value = None) -> Graph:
    """Return the graph with a node's `model_policy` replaced.

    Example:
        let flow = workflow_graph({entry: "a", nodes: {a: {}}})
        workflow_set_model_policy(flow, "a", {provider: "mock"}).nodes.a.model_policy.provider  // "mock"
    """
    return _set_policy(vm, "model_policy", graph, id, policy)


@editing_builtin("workflow_set_context_policy(graph: dict, id: string, policy: dict) -> dict")
def workflow_set_context_policy(vm: Vm, graph: Value = None, id: Value = None, policy: Value = None) -> Graph:
    """Return the graph with a node's `context_policy` replaced.

    Example:
        let flow = workflow_graph({entry: "a", nodes: {a: {}}})
        workflow_set_context_policy(flow, "a", {max_artifacts: 3}).nodes.a.context_policy.max_artifacts  // 3
    """
    return _set_policy(vm, "context_policy", graph, id, policy)


@editing_builtin("workflow_set_auto_compact(graph: dict, id: string, policy: dict) -> dict")
def workflow_set_auto_compact(vm: Vm, graph: Value = None, id: Value = None, policy: Value = None) -> Graph:
    """Return the graph with a node's `auto_compact` replaced.

    Example:
        let flow = workflow_graph({entry: "a", nodes: {a: {}}})
        workflow_set_auto_compact(flow, "a", {enabled: true}).nodes.a.auto_compact.enabled  // true
    """
    return _set_policy(vm, "auto_compact", graph, id, policy)


@editing_builtin("workflow_set_output_visibility(graph: dict, id: string, value: string) -> dict")
def workflow_set_output_visibility(
    vm: Vm, graph: Value = None, id: Value = None, value: Value = None
) -> Graph:
    """Return the graph with a node's transcript limited to messages of a visibility; nil shows all.

    Example:
        let flow = workflow_graph({entry: "a", nodes: {a: {}}})
        workflow_set_output_visibility(flow, "a", "public").nodes.a.output_visibility  // "public"
    """
    _require(_POLICY_UPDATE, workflow=graph, node_id=id)
    if value is not None and type(value) is not str:
        raise RuntimeFault("workflow_set_output_visibility: value must be a string or nil")
    return graph_editing.set_output_visibility(graph, display(id), value, sessions_of(vm).world)


@editing_builtin("workflow_commit(graph: dict, reason?: string) -> dict", counted=False)
def workflow_commit(vm: Vm, graph: Value, reason: str | None) -> Graph:
    """Return the graph, if it is valid, with a note that it was committed.

    Example:
        let flow = workflow_graph({id: "review", entry: "a", nodes: {a: {}}})
        workflow_commit(flow, "first version").id  // "review"
    """
    return graph_editing.commit(graph, reason, sessions_of(vm).world)


def _set_policy(vm: Vm, field: str, graph: Value, id: Value, policy: Value) -> Graph:
    _require(_POLICY_UPDATE, workflow=graph, node_id=id, policy=policy)
    return graph_editing.set_policy(graph, display(id), field, policy, sessions_of(vm).world)


def _require(caller: str, **arguments: Value) -> None:
    """Raise `RuntimeFault` if one of the arguments is nil or missing."""
    for name, value in arguments.items():
        if value is None:
            raise RuntimeFault(f"{caller}: missing {name.replace('_', ' ')}")


def _text(value: Value) -> str | None:
    return None if value is None else display(value)
