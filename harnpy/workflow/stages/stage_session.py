"""Which session a stage uses, and who chose it: the program, a worker or the run. Spec: 08 §7.7."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from harnpy.session.registry import SessionRegistry
    from harnpy.workflow.graph.graph_types import Graph, Node


#: Where a node's metadata holds the session that a worker gives it.
WORKER_SESSION = "worker_session_id"

_MAP_BRANCH = re.compile(r"_map_\d+\Z")


class StageSession(NamedTuple):
    """``given``: the program or a worker chose the session, so the run doesn't close it, and a single call
    reads and writes it as a loop does. ``shared``: the node itself names it, so all branches of a map use it;
    otherwise each branch has its own."""

    id: str
    given: bool
    shared: bool = False

    def of_branch(self, number: int) -> StageSession:
        """Return the session of one branch of a map node; ``number`` starts at 1."""
        return self if self.shared else self._replace(id=f"{self.id}_map_{number}")


def run_session(node: Node, run_id: str) -> StageSession:
    """Return the session of a node in a run: the one it names or was given, else one that the run creates."""
    by_worker = _id(node["metadata"].get(WORKER_SESSION))
    own = StageSession(by_worker or _prefix(run_id) + node["id"], given=by_worker is not None)
    return _named(node) or own


def worker_session(node: Node, worker_id: str) -> StageSession:
    """Return the session of a node that is a worker's job: the one it names, else the worker's own."""
    return _named(node) or StageSession(worker_session_id(node, worker_id), given=True)


def worker_session_id(node: Node, worker_id: str) -> str:
    """Return the id of the session that a worker gives to a node that names none."""
    return f"worker_session_{worker_id}_{node['id']}"


def close_minted(sessions: SessionRegistry, graph: Graph, run_id: str) -> None:
    """Remove the sessions that the run created, without notifying anybody."""
    prefix, nodes = _prefix(run_id), graph["nodes"]
    used = [run_session(node, run_id) for node in nodes.values()]
    given = {session.id for session in used if session.given}
    for id in sessions.ids():
        node = id.removeprefix(prefix)
        is_minted = node != id and (node in nodes or _MAP_BRANCH.sub("", node) in nodes)
        if is_minted and id not in given:
            sessions.discard(id)


def _named(node: Node) -> StageSession | None:
    """Return the session that the node's model policy names, if it names one."""
    named = _id(node["model_policy"].get("session_id"))
    return None if named is None else StageSession(named, given=True, shared=True)


def _id(value: Any) -> str | None:
    """Return a session id, or None for anything but text that isn't blank."""
    return value if isinstance(value, str) and value.strip() else None


def _prefix(run_id: str) -> str:
    return f"workflow_stage_{run_id}_"
