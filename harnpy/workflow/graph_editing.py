"""Editing graphs: each edit returns a new graph with one more entry in its audit log. Spec: 08 §6.5.

The given graph is normalised first and never changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.workflow.graph import node_policy, normalise_edge, normalise_graph, normalise_node
from harnpy.workflow.graph_validation import validate_graph
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from harnpy.workflow.graph_shapes import AuditEntry, Edge, Graph, Node
    from harnpy.world import World


def clone(given: Any, world: World) -> Graph:
    """Return the same graph with another id and the next version."""
    graph = normalise_graph(given, world)
    copy: Graph = {**graph, "id": f"{graph['id']}_clone", "version": graph["version"] + 1}
    return _logged(copy, "clone", None, world)


def insert_node(given: Any, node: Any, edge: Any, world: World) -> Graph:
    """Return the graph with one more node, and one more edge if given. A node of the same id is replaced."""
    graph = normalise_graph(given, world)
    named = node.get("id") if isinstance(node, dict) else None
    id = named if isinstance(named, str) and named else f"node_{len(graph['nodes']) + 1}"
    graph = _with_node(graph, normalise_node(node, id))
    if edge is not None:
        added = normalise_edge(edge, f"edges[{len(graph['edges'])}]")
        graph = {**graph, "edges": [*graph["edges"], added]}
    return _logged(graph, "insert_node", id, world)


def replace_node(given: Any, id: str, node: Any, world: World) -> Graph:
    """Return the graph with another node under that id; an unknown id is added."""
    graph = _with_node(normalise_graph(given, world), normalise_node(node, id))
    return _logged(graph, "replace_node", id, world)


def rewire(given: Any, origin: str, target: str, branch: str | None, world: World) -> Graph:
    """Return the graph with this edge in place of all others that leave ``origin`` on the same branch."""
    graph = normalise_graph(given, world)
    branch = branch or None
    kept = [edge for edge in graph["edges"] if (edge["from"], edge["branch"]) != (origin, branch)]
    edge: Edge = {"from": origin, "to": target, "branch": branch, "label": None}
    return _logged({**graph, "edges": [*kept, edge]}, "rewire", origin, world)


def set_policy(given: Any, id: str, field: str, policy: Any, world: World) -> Graph:
    """Return the graph with another `model_policy`, `context_policy` or `auto_compact` of a node."""
    graph = normalise_graph(given, world)
    node = _node(graph, id)
    try:
        read = node_policy(field, policy, f"nodes.{id}.{field}")
    except MisuseError as error:
        raise MisuseError(f"workflow_set_{field}: {error.message}") from error
    changed: Any = {**node, field: read}
    return _logged(_with_node(graph, changed), "set_policy", id, world)


def set_output_visibility(given: Any, id: str, visibility: str | None, world: World) -> Graph:
    """Return the graph with a node whose transcript shows only messages of that visibility; nil is all."""
    graph = normalise_graph(given, world)
    node: Node = {**_node(graph, id), "output_visibility": visibility}
    return _logged(_with_node(graph, node), "set_output_visibility", id, world)


def commit(given: Any, reason: str | None, world: World) -> Graph:
    """Return the graph, if it is valid under the built-in ceiling. Raise `MisuseError`."""
    graph = normalise_graph(given, world)
    errors = validate_graph(graph)["errors"]
    if errors:
        raise MisuseError(f"workflow_commit: invalid workflow: {'; '.join(errors)}")
    return _logged(graph, "commit", None, world, reason)


def _node(graph: Graph, id: str) -> Node:
    node = graph["nodes"].get(id)
    if node is None:
        raise MisuseError(f"unknown workflow node: {id}")
    return node


def _with_node(graph: Graph, node: Node) -> Graph:
    nodes = {**graph["nodes"], node["id"]: node}
    return {**graph, "nodes": {id: nodes[id] for id in sorted(nodes)}}


def _logged(graph: Graph, op: str, node_id: str | None, world: World, reason: str | None = None) -> Graph:
    entry: AuditEntry = {
        "id": f"audit_{world.ids.new()}",
        "op": op,
        "node_id": node_id,
        "timestamp": rfc3339(world.clock.now()),
        "reason": reason,
        "metadata": {},
    }
    return {**graph, "audit_log": [*graph["audit_log"], entry]}
