"""What a node gets to see of the artifacts made so far, and what it makes of them. Spec: 08 §7.3.

A stage's prompt shows the artifacts as `select_artifacts_adaptive` leaves them; every other kind works with
what `select` lets through, each artifact as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.reading.strict import read_fields
from harnpy.workflow.artifacts.artifact import KIND, normalised
from harnpy.workflow.artifacts.selection import read_context_policy, select, select_adaptive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.reading.dicts import Dict
    from harnpy.session.effects import Effects


_INPUT = {
    "input_kinds": "list of strings", "min_inputs": "int", "max_inputs": "int", "require_transcript": "bool"
}  # fmt: skip
_OUTPUT = {"output_kinds": "list of strings"}


def policy_of(node: Dict) -> Dict:
    """The node's context policy; what its input contract takes are the kinds, unless it names some."""
    policy = read_context_policy(node["context_policy"])
    if not policy["include_kinds"]:
        policy["include_kinds"] = input_contract(node)["input_kinds"]
    return policy


def selected(node: Dict, artifacts: Sequence[Dict]) -> list[Dict]:
    """The artifacts that a node works with, each as it is."""
    return select(artifacts, policy_of(node))


def adapted(node: Dict, artifacts: Sequence[Dict]) -> list[Dict]:
    """The artifacts that a prompt shows."""
    return select_adaptive(artifacts, policy_of(node))


def input_contract(node: Dict) -> Dict:
    """The node's input contract with every key. Raises `MisuseError`."""
    return read_fields(node["input_contract"] or {}, _INPUT, f"nodes.{node['id']}.input_contract")


def check_inputs(node: Dict, count: int, has_session: bool) -> None:
    """Raise `MisuseError` for a node that can't begin with what there is."""
    contract, stage = input_contract(node), f"workflow stage {node['id']}"
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


def output_kind(node: Dict) -> str:
    """The kind of the artifacts that a node makes: the first of its output contract. Raises `MisuseError`."""
    path = f"nodes.{node['id']}.output_contract"
    kinds: list[str] = read_fields(node["output_contract"] or {}, _OUTPUT, path)["output_kinds"] or [KIND]
    return kinds[0]


def produced(node: Dict, effects: Effects, **fields: Any) -> Dict:
    """An artifact that the node has made."""
    id = node["id"]
    made = {"kind": output_kind(node), "source": id, "stage": id, "freshness": "fresh"}
    return normalised({**made, **fields}, effects)


def ids(artifacts: Sequence[Dict]) -> list[str]:
    return [artifact["id"] for artifact in artifacts]
