"""Which node comes next: the queue of a run, its joins and branches. Spec: 08 §7.2.

Pure: it knows nodes by their ids, and stages by the branches they ended on.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.workflow.graph.graph_types import Edge, Graph, Node


JOIN = "join"


class Ready:
    """The queued nodes, the next one first. ``steps`` counts turns, including those in which a join kept
    waiting."""

    def __init__(
        self, graph: Graph, max_steps: int, pending: Iterable[str], completed: Iterable[str] = ()
    ) -> None:
        self.steps = 0
        self.max_steps = max_steps
        self.completed = set(completed)
        self._nodes = graph["nodes"]
        self._outgoing: dict[str, list[Edge]] = {}
        self._incoming: dict[str, list[str]] = {}
        for edge in graph["edges"]:
            self._outgoing.setdefault(edge["from"], []).append(edge)
            self._incoming.setdefault(edge["to"], []).append(edge["from"])
        self._queue = deque(pending)
        self._queued = Counter(self._queue)

    @property
    def pending(self) -> list[str]:
        return list(self._queue)

    def __bool__(self) -> bool:
        """Return whether anything is left to do."""
        return bool(self._queue)

    def add(self, id: str) -> None:
        """Queue a node, unless it is queued already."""
        if not self._queued[id]:
            self._queue.append(id)
            self._queued[id] += 1

    def take(self) -> str | None:
        """Take the node to run now; None when the queue is empty or no step is left.

        This may be a node that the graph doesn't have.
        """
        while self._queue and self.steps < self.max_steps:
            self.steps += 1
            id = self._queue.popleft()
            self._queued[id] -= 1
            if not self._waits(id):
                return id
            self.add(id)
        return None

    def complete(self, id: str, branch: str | None) -> list[Edge]:
        """Queue what follows a stage that ended on ``branch``. Return the edges followed."""
        self.completed.add(id)
        followed = self._following(id, branch)
        for edge in followed:
            self.add(edge["to"])
        return followed

    def _following(self, id: str, branch: str | None) -> list[Edge]:
        edges = self._outgoing.get(id, [])
        taken = [edge for edge in edges if branch is not None and edge["branch"] == branch]
        return taken or [edge for edge in edges if edge["branch"] is None]

    def _waits(self, id: str) -> bool:
        """Return whether a node is a join that needs more of its predecessors."""
        node = self._nodes.get(id)
        if node is None or node["kind"] != JOIN:
            return False
        sources = self._incoming.get(id, [])
        return sum(source in self.completed for source in sources) < _required(node, len(sources))


def _required(join: Node, incoming: int) -> int:
    policy = join["join_policy"]
    if policy["min_completed"] is not None:
        return int(policy["min_completed"])
    wants_all = policy["require_all_inputs"] or policy["strategy"] == "all"
    return incoming if wants_all else 1
