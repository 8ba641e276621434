"""What an agent did in a stage, read from the stage's artifact. Spec: 08 §8.4, 07 §6.11, §9.4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.reading.lenient import as_dict

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.records.record_types import StageRecord


#: The counts of a round, and their names in the trace of an agent's result.
_COUNTS = {
    "iteration_count": "iterations",
    "llm_call_count": "llm_calls",
    "tool_execution_count": "tool_executions",
    "tool_rejection_count": "tool_rejections",
    "intervention_count": "interventions",
    "compaction_count": "compactions",
    "native_text_tool_fallback_count": "native_text_tool_fallbacks",
    "native_text_tool_fallback_rejection_count": "native_text_tool_fallback_rejections",
    "empty_completion_retry_count": "empty_completion_retries",
}


def planner_round(stage: StageRecord) -> list[Dict]:
    """Return the round of a stage whose agent did anything."""
    for result in _results(stage):
        trace, ledger = result["trace"], result.get("task_ledger")
        counts = {key: _count(trace.get(name)) for key, name in _COUNTS.items()}
        rejections = _count(result.get("ledger_done_rejections"))
        tools = as_dict(result.get("tools"))
        if any(counts.values()) or rejections:
            return [
                {
                    "stage_id": stage["id"],
                    "node_id": stage["node_id"],
                    "stage_kind": stage["kind"],
                    "status": stage["status"],
                    "outcome": stage["outcome"],
                    **counts,
                    "tools_used": _texts(tools.get("calls")),
                    "successful_tools": _texts(tools.get("successful")),
                    "ledger_done_rejections": rejections,
                    "task_ledger": ledger if isinstance(ledger, dict) else None,
                    "research_facts": _texts(as_dict(ledger).get("observations")),
                }
            ]
    return []


def daemon_event(stage: StageRecord) -> list[Dict]:
    """Return how a stage's daemon ended, if its agent was one: its result names its state file."""
    return [
        {
            "stage_id": stage["id"],
            "node_id": stage["node_id"],
            "daemon_state": result.get("daemon_state"),
            "snapshot_path": result["daemon_snapshot_path"],
        }
        for result in _results(stage)
        if isinstance(result.get("daemon_snapshot_path"), str)
    ]


def _results(stage: StageRecord) -> list[Dict]:
    """Return the agents' results in the stage's artifacts."""
    found = [as_dict(artifact["data"]) for artifact in stage["artifacts"]]
    return [data for data in found if isinstance(data.get("trace"), dict)]


def _count(value: Any) -> int:
    return value if type(value) is int else 0


def _texts(value: Any) -> list[str]:
    """Return the distinct texts of a list, in order."""
    items = value if isinstance(value, list) else []
    return list(dict.fromkeys(item for item in items if isinstance(item, str)))
