"""The artifacts that a node takes, and those that it produces. Spec: 08 §7.3.

A stage's prompt shows the artifacts that `select_artifacts_adaptive` returns; every other kind of node works
with those that `select` returns, unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.workflow.artifacts.artifact import KIND, normalised
from harnpy.workflow.artifacts.selection import select, select_adaptive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.reading.dicts import Dict
    from harnpy.workflow.artifacts.artifact_types import Artifact
    from harnpy.workflow.graph.graph_types import ContextPolicy, Node
    from harnpy.world import World


def policy_of(node: Node) -> ContextPolicy:
    """Return the node's context policy, by default for the kinds that its input contract takes."""
    policy = node["context_policy"]
    return {**policy, "include_kinds": policy["include_kinds"] or node["input_contract"]["input_kinds"]}


def selected(node: Node, artifacts: Sequence[Artifact]) -> list[Artifact]:
    """Return the artifacts that a node works with, unchanged."""
    return select(artifacts, policy_of(node))


def adapted(node: Node, artifacts: Sequence[Artifact]) -> list[Artifact]:
    """Return the artifacts that a prompt shows."""
    return select_adaptive(artifacts, policy_of(node))


def check_inputs(node: Node, count: int, has_session: bool) -> None:
    """Raise `MisuseError` for a node that lacks inputs."""
    contract, stage = node["input_contract"], f"workflow stage {node['id']}"
    least, most = contract["min_inputs"], contract["max_inputs"]
    if contract["require_transcript"] and not has_session:
        raise MisuseError(
            f"{stage} requires an existing session (call agent_session_open and feed session_id through "
            "model_policy before entering this stage)"
        )
    if least is not None and count < least:
        raise MisuseError(f"{stage} requires at least {least} input artifacts")
    if most is not None and count > most:
        raise MisuseError(f"{stage} accepts at most {most} input artifacts")


def output_kind(node: Node) -> str:
    """Return the kind of artifacts that a node produces: the first of its output contract."""
    return (node["output_contract"]["output_kinds"] or [KIND])[0]


def produced(node: Node, world: World, **fields: Any) -> Artifact:
    """Return an artifact that the node produced."""
    id = node["id"]
    made = {"kind": output_kind(node), "source": id, "stage": id, "freshness": "fresh"}
    return normalised({**made, **fields}, world)


def marked(artifact: Artifact, marks: Dict) -> Artifact:
    """Return the artifact with more metadata."""
    return {**artifact, "metadata": {**artifact["metadata"], **marks}}


def ids(artifacts: Sequence[Artifact]) -> list[str]:
    return [artifact["id"] for artifact in artifacts]
