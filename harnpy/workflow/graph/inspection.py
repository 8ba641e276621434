"""Graphs at a glance: inspection, policies, differences. Spec: 08 §6.5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.rules.policy import policy_dict
from harnpy.llm.native_tools import tool_entries
from harnpy.text.json.writer import to_json
from harnpy.workflow.graph.policies import read_ceiling
from harnpy.workflow.graph.validate import validate

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.graph.graph_types import Graph


def inspect(graph: Graph, ceiling: Any) -> Dict:
    """Return a normalised graph with its validation and counts. Raise `MisuseError` for the ceiling."""
    return {
        "graph": graph,
        "validation": validate(graph, read_ceiling(ceiling)),
        "node_count": len(graph["nodes"]),
        "edge_count": len(graph["edges"]),
    }


def policy_report(graph: Graph, ceiling: Any) -> Dict:
    """Return the policies of a normalised graph and its nodes, and the ceiling. Raise `MisuseError`."""
    limit = read_ceiling(ceiling)
    return {
        "workflow_policy": graph["capability_policy"],
        "ceiling": policy_dict(limit),
        "validation": validate(graph, limit),
        "nodes": [
            {"node_id": id, "policy": node["capability_policy"], "tools": _tool_names(node["tools"])}
            for id, node in graph["nodes"].items()
        ],
    }


def diff(left: Graph, right: Graph) -> Dict:
    """Compare two normalised graphs as data; functions don't count."""
    changed = to_json(left) != to_json(right)
    return {"changed": changed, "left": left, "right": right}


def _tool_names(tools: Any) -> list[str]:
    return [entry["name"] for entry in tool_entries(tools)]
