"""The shapes of a run record and its parts: keys, types and defaults. Spec: 08 §8.1.

Texts that every record has default to the empty text, everything else to nil or an empty value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.workflow.shapes import Field, Shape, all_of, list_of

if TYPE_CHECKING:
    from harnpy.agent.people.requests import Question
    from harnpy.workflow.records.record_types import (
        Attempt,
        Checkpoint,
        ChildRun,
        ExecutionRecord,
        ExpectedQuestion,
        ReplayFixture,
        RunRecord,
        StageAssertion,
        StageRecord,
        ToolRecording,
        TraceSpan,
        Transition,
        UsageRecord,
    )

_TEXT, _MAYBE_TEXT, _TEXTS = Field("string", ""), Field("string"), Field("list of strings", [])
_INT, _MAYBE_INT, _NUMBER, _FLAG = Field("int", 0), Field("int"), Field("number", 0.0), Field("bool", False)
_DICT, _MAYBE_DICT, _LIST, _ANY = Field("dict", {}), Field("dict"), Field("list", []), Field("any")


USAGE: Shape[UsageRecord] = Shape(
    {
        **all_of(_INT, "input_tokens output_tokens total_duration_ms call_count"),
        "total_cost": _NUMBER,
        "models": _TEXTS,
    }
)
EXECUTION: Shape[ExecutionRecord] = Shape(
    {
        **all_of(_MAYBE_TEXT, "cwd source_dir adapter repo_path worktree_path branch base_ref cleanup"),
        "env": _DICT,
    }
)
ATTEMPT: Shape[Attempt] = Shape(
    {
        "attempt": Field("int", 1),
        **all_of(_TEXT, "status outcome started_at"),
        **all_of(_MAYBE_TEXT, "branch error finished_at"),
        "verification": _ANY,
    }
)
STAGE: Shape[StageRecord] = Shape(
    {
        **all_of(_TEXT, "id node_id kind status outcome started_at"),
        **all_of(_MAYBE_TEXT, "branch finished_at visible_text private_reasoning"),
        **all_of(_ANY, "transcript verification"),
        "usage": Field("dict", None, USAGE),
        "artifacts": _LIST,
        **all_of(_TEXTS, "consumed_artifact_ids produced_artifact_ids"),
        "attempts": list_of(ATTEMPT),
        "metadata": _DICT,
    }
)
TRANSITION: Shape[Transition] = Shape(
    {
        **all_of(_TEXT, "id to_node_id timestamp"),
        **all_of(_MAYBE_TEXT, "from_stage_id from_node_id branch"),
        **all_of(_TEXTS, "consumed_artifact_ids produced_artifact_ids"),
    }
)
CHECKPOINT: Shape[Checkpoint] = Shape(
    {
        **all_of(_TEXT, "id persisted_at reason"),
        **all_of(_TEXTS, "ready_nodes completed_nodes"),
        "last_stage_id": _MAYBE_TEXT,
    }
)
CHILD_RUN: Shape[ChildRun] = Shape(
    {
        **all_of(_TEXT, "worker_id worker_name task status started_at"),
        **all_of(
            _MAYBE_TEXT,
            "parent_stage_id session_id parent_session_id mutation_scope finished_at run_id run_path "
            "snapshot_path",
        ),
        **all_of(_ANY, "approval_policy request provenance"),
        "execution": Field("dict", None, EXECUTION),
    }
)
QUESTION: Shape[Question] = Shape(
    {**all_of(_TEXT, "request_id prompt agent asked_at"), "trace_id": _MAYBE_TEXT}
)

CLARIFICATION: Shape[ExpectedQuestion] = Shape(
    {
        "expected_question": _MAYBE_TEXT,
        **all_of(_TEXTS, "accepted_questions required_terms forbidden_terms"),
        **all_of(_MAYBE_INT, "min_questions max_questions"),
    }
)
ASSERTION: Shape[StageAssertion] = Shape(
    {
        **all_of(_TEXT, "node_id expected_status expected_outcome"),
        **all_of(_MAYBE_TEXT, "expected_branch visible_text_contains"),
        "required_artifact_kinds": _TEXTS,
    }
)
FIXTURE: Shape[ReplayFixture] = Shape(
    {
        "_type": Field("string", "replay_fixture"),
        **all_of(_TEXT, "id source_run_id workflow_id created_at expected_status"),
        "workflow_name": _MAYBE_TEXT,
        "eval_kind": Field("string", "replay"),
        "clarifying_question": Field("dict", None, CLARIFICATION),
        "stage_assertions": list_of(ASSERTION),
    }
)

_SPAN: Shape[TraceSpan] = Shape(
    {
        **all_of(_ANY, "span_id parent_id"),
        **all_of(_TEXT, "kind name"),
        **all_of(_INT, "start_ms duration_ms"),
        "metadata": _DICT,
    }
)
RECORDING: Shape[ToolRecording] = Shape(
    {
        **all_of(_TEXT, "tool_name tool_use_id args_hash timestamp"),
        "result": _ANY,
        "is_rejected": _FLAG,
        **all_of(_INT, "duration_ms iteration"),
    }
)

RUN: Shape[RunRecord] = Shape(
    {
        "_type": Field("string", "run_record"),
        **all_of(_TEXT, "id workflow_id task status started_at"),
        **all_of(_MAYBE_TEXT, "workflow_name finished_at parent_run_id root_run_id persisted_path"),
        "stages": list_of(STAGE),
        "transitions": list_of(TRANSITION),
        "checkpoints": list_of(CHECKPOINT),
        **all_of(_TEXTS, "pending_nodes completed_nodes"),
        "child_runs": list_of(CHILD_RUN),
        **all_of(_LIST, "artifacts handoffs"),
        "policy": _DICT,
        "execution": Field("dict", None, EXECUTION),
        "transcript": _ANY,
        "usage": Field("dict", None, USAGE),
        "replay_fixture": Field("dict", None, FIXTURE),
        "observability": _MAYBE_DICT,
        "trace_spans": list_of(_SPAN),
        "tool_recordings": list_of(RECORDING),
        "hitl_questions": list_of(QUESTION),
        "metadata": _DICT,
    }
)
