"""What each kind of node does. Spec: 08 §7.3.

| kind                | module       | outcome                               | branch               |
|---------------------|--------------|---------------------------------------|----------------------|
| fork, join          | here         | `forked`, `joined`                    | `fork`, `join`       |
| condition           | here         | `condition_true`, `condition_false`   | `true`, `false`      |
| reduce              | here         | `reduced`                             | `reduced`            |
| escalation          | here         | `escalated`                           | `escalated`          |
| map                 | map.py       | `mapped`                              | `mapped`, `failed`   |
| subagent            | subagent.py  | `subagent_completed`                  | `success`            |
| verify              | verify.py    | `verified`, `verification_failed`     | `passed`, `failed`   |
| stage, any other    | stage.py     | `success`, else the result's status   | `success`, `failed`  |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.agent.commands.policy import given_command_policy
from harnpy.workflow.shapes import only
from harnpy.workflow.stages import inputs
from harnpy.workflow.stages.map import run_map
from harnpy.workflow.stages.stage import run_stage
from harnpy.workflow.stages.subagent import run_subagent
from harnpy.workflow.stages.verify import run_verify
from harnpy.workflow.stages.work import Ended

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.workflow.artifacts.artifact_types import Artifact
    from harnpy.workflow.stages.work import Work


#: Loops name themselves in what they say of their options, and so do nodes, whose loop it would be.
_CALLER = "agent_loop"
_REASON = "manual review required"


def run(work: Work) -> Ended:
    """Run a node by its kind, under its command policy. Raise whatever makes the stage fail."""
    context = work.runtime.context()
    commands = context.rules.commands.inside(given_command_policy(work.node["model_policy"], _CALLER))
    with context.govern(context.rules.commanded(commands)):
        return KINDS.get(work.node["kind"], run_stage)(work)


def _fork(work: Work) -> Ended:
    return _passed_on(work, "forked", "forked", "fork")


def _join(work: Work) -> Ended:
    return _passed_on(work, "joined", "joined", "join")


def _condition(work: Work) -> Ended:
    text = "true" if _holds(work) else "false"
    return _passed_on(work, text, f"condition_{text}", text)


def _holds(work: Work) -> bool:
    artifacts, metadata = inputs.selected(work.node, work.artifacts), work.node["metadata"]
    wanted = metadata.get("contains_text")
    if wanted is not None:
        return any(str(wanted) in (artifact["text"] or "") for artifact in artifacts)
    kind = metadata.get("artifact_kind")
    return any(kind in (None, artifact["kind"]) for artifact in artifacts)


def _reduce(work: Work) -> Ended:
    node, world = work.node, work.runtime.sessions.world
    artifacts = inputs.selected(node, work.artifacts)
    texts = [artifact["text"] for artifact in artifacts if artifact["text"] is not None]
    text = node["reduce_policy"]["separator"].join(texts)
    title, lineage = f"reduce {node['id']} output", inputs.ids(artifacts)
    artifact = inputs.produced(node, world, title=title, text=text, lineage=lineage)
    return _passed_on(work, text, "reduced", "reduced", artifact)


def _escalation(work: Work) -> Ended:
    node, world = work.node, work.runtime.sessions.world
    policy = node["escalation_policy"]
    reason = policy["reason"] or _REASON
    data = {**only(policy, ("queue", "level")), "reason": reason}
    artifact = inputs.produced(node, world, title=f"escalation {node['id']}", text=reason, data=data)
    return _passed_on(work, reason, "escalated", "escalated", artifact)


def _passed_on(work: Work, text: str, outcome: str, branch: str, *artifacts: Artifact) -> Ended:
    """Return the end of a node that used no model: the transcript continues unchanged."""
    result = {"status": "completed", "text": text, "visible_text": text}
    return Ended(result, outcome, branch, list(artifacts), work.transcript)


#: What runs each kind of node but `stage`.
KINDS: dict[str, Callable[[Work], Ended]] = {
    "fork": _fork,
    "join": _join,
    "condition": _condition,
    "reduce": _reduce,
    "escalation": _escalation,
    "map": run_map,
    "subagent": run_subagent,
    "verify": run_verify,
}
