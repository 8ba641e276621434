"""The record of a stage within a run's record. Spec: 08 §7.3, §7.4, §8.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.rules.policy import policy_dict
from harnpy.agent.workers.snapshots import without_functions
from harnpy.workflow.records.record import new_attempt, new_stage
from harnpy.workflow.shapes import only
from harnpy.workflow.stages.work import Ended

if TYPE_CHECKING:
    from harnpy.agent.rules.policy import Policy
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.graph.graph_types import Node
    from harnpy.workflow.records.record_types import StageRecord


COMPLETED, FAILED, ERROR = "completed", "failed", "error"
_NOT_VERIFIED = "verification failed"
_OF_NODE = (
    "model_policy", "auto_compact", "context_policy", "retry_policy", "input_contract", "output_contract"
)  # fmt: skip
_OF_RESULT = (
    "prompt", "system_prompt", "rendered_context", "verification_contracts", "rendered_verification_context",
    "selected_artifact_ids", "selected_artifact_titles",
)  # fmt: skip


def failed(error: str) -> Ended:
    """Return the end of a stage that failed with an error."""
    return Ended({"status": FAILED, "error": error}, ERROR, ERROR, [], None)


def stage_record(node: Node, ended: Ended, **fields: Any) -> StageRecord:
    """Return the record of a stage with its one attempt; ``fields`` come from the run."""
    result, branch = ended.result, ended.branch
    came_of = {
        "status": FAILED if branch in (FAILED, ERROR) else COMPLETED,
        "outcome": ended.outcome,
        "branch": branch,
        "verification": ended.verification,
    }
    error = result["error"] if branch == ERROR else None
    times = {key: fields[key] for key in ("started_at", "finished_at")}
    return new_stage(
        node_id=node["id"],
        kind=node["kind"],
        visible_text=result.get("visible_text"),
        private_reasoning=result.get("private_reasoning"),
        transcript=ended.transcript,
        artifacts=ended.artifacts,
        produced_artifact_ids=[artifact["id"] for artifact in ended.artifacts],
        attempts=[new_attempt(attempt=1, error=error, **came_of, **times)],
        **came_of,
        **fields,
    )


def stage_metadata(node: Node, policy: Policy, ended: Ended) -> Dict:
    """Return the metadata about how a stage ran."""
    result, worker = ended.result, ended.worker
    errors = {FAILED: _NOT_VERIFIED, ERROR: result.get("error")}
    optional = {
        "output_visibility": node["output_visibility"],
        "worker": worker,
        "worker_id": worker and worker["id"],
        "error": errors.get(ended.branch),
        **{key: result.get(key) for key in _OF_RESULT},
        "tool_calling_mode": (result.get("tools") or {}).get("mode"),
    }
    return {
        **{key: without_functions(value) for key, value in only(node, _OF_NODE).items()},
        "effective_capability_policy": policy_dict(policy),
        **{key: value for key, value in optional.items() if value is not None},
    }
