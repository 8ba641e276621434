"""The briefing of a stage: its prompt and everything that went into it. Spec: 08 §7.3 steps 1–3, 6 and 7."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harnpy.agent.rules.approval import read_approval_policy
from harnpy.text.json.writer import to_json
from harnpy.workflow.artifacts.assembly import assemble, render_assembled
from harnpy.workflow.artifacts.selection import render
from harnpy.workflow.graph.normalise import given_policy
from harnpy.workflow.stages import inputs, stage_prompts
from harnpy.workflow.stages.verification_contracts import render as render_contracts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.agent.runtime import Runtime
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.artifacts.artifact_types import Artifact
    from harnpy.workflow.graph.graph_types import Node
    from harnpy.world import World


class Briefing(NamedTuple):
    prompt: str
    system: str | None
    context: str
    contracts: Sequence[Dict]
    rendered_contracts: str
    selected: Sequence[Artifact]

    def as_dict(self) -> Dict:
        """Return the briefing's part of the stage's result."""
        return {
            "prompt": self.prompt,
            "system_prompt": self.system,
            "rendered_context": self.context,
            "verification_contracts": list(self.contracts),
            "rendered_verification_context": self.rendered_contracts,
            "selected_artifact_ids": inputs.ids(self.selected),
            "selected_artifact_titles": [artifact["title"] for artifact in self.selected],
        }


def brief(
    runtime: Runtime,
    node: Node,
    session_id: str,
    task: str,
    artifacts: Sequence[Artifact],
    contracts: Sequence[Dict],
) -> Briefing:
    """Return the briefing of a node. Raise `MisuseError` for a node that lacks inputs."""
    selected = inputs.adapted(node, artifacts)
    context = _context(node, selected, runtime.sessions.world)
    inputs.check_inputs(node, len(selected), runtime.sessions.exists(session_id))
    rendered = render_contracts(contracts)
    prompt = stage_prompts.stage(task, node["task_label"], context, rendered)
    return Briefing(prompt, node["system"], context, contracts, rendered, selected)


def _context(node: Node, selected: list[Artifact], world: World) -> str:
    """Return the artifacts as the prompt shows them: whole, or assembled as the node asks."""
    assembler = node.get("context_assembler")
    if assembler is None or not selected:
        return render(selected, inputs.policy_of(node)["render"], to_json)
    return render_assembled(assemble({**assembler, "artifacts": selected}, world))


def result_artifact(runtime: Runtime, node: Node, result: Dict, briefing: Briefing) -> Artifact:
    """Return the artifact with a stage's result."""
    lineage = inputs.ids(briefing.selected)
    metadata: Dict = {"input_artifact_ids": lineage, "node_kind": node["kind"]}
    policy = read_approval_policy(given_policy(node["approval_policy"]))
    approval = runtime.context().rules.below(approval=policy).approval
    if approval is not None and approval.write_path_allowlist:
        metadata["changed_paths"] = list(approval.write_path_allowlist)
    return inputs.produced(
        node,
        runtime.sessions.world,
        title=f"stage {node['id']} output",
        text=result["text"],
        data=result,
        relevance=1.0,
        lineage=lineage,
        metadata=metadata,
    )
