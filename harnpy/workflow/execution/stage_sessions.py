"""In which sessions the stages of a run talk. Spec: 08 §7.7."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from harnpy.session.registry import SessionRegistry
    from harnpy.workflow.graph.graph_types import Graph, Node


_MAP_BRANCH = re.compile(r"_map_\d+\Z")


class StageSession(NamedTuple):
    """``explicit``: the graph names it, so it is no affair of the run's how long it lives."""

    id: str
    explicit: bool


def session_of(node: Node, run_id: str) -> StageSession:
    """The session of a normalised node: the one that it names, else one that the run mints for it."""
    for given in (node["model_policy"].get("session_id"), node["metadata"].get("worker_session_id")):
        if isinstance(given, str) and given.strip():
            return StageSession(given, True)
    return StageSession(_prefix(run_id) + node["id"], False)


def close_minted(sessions: SessionRegistry, graph: Graph, run_id: str) -> None:
    """Remove the sessions that the run minted, telling nobody."""
    prefix, nodes = _prefix(run_id), graph["nodes"]
    talked_in = [session_of(node, run_id) for node in nodes.values()]
    explicit = {session.id for session in talked_in if session.explicit}
    for id in sessions.ids():
        node = id.removeprefix(prefix)
        is_minted = node != id and (node in nodes or _MAP_BRANCH.sub("", node) in nodes)
        if is_minted and id not in explicit:
            sessions.discard(id)


def _prefix(run_id: str) -> str:
    return f"workflow_stage_{run_id}_"
