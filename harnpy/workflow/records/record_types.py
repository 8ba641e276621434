"""The types of run records and their parts. `record_shapes` reads them. Spec: 08 §8.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from harnpy.agent.people.requests import Question
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.artifacts.artifact_types import Artifact


class UsageRecord(TypedDict):
    """The total use of model calls."""

    input_tokens: int
    output_tokens: int
    total_duration_ms: int
    call_count: int
    total_cost: float
    models: list[str]


class ExecutionRecord(TypedDict):
    """Where a run worked."""

    cwd: str | None
    source_dir: str | None
    adapter: str | None
    repo_path: str | None
    worktree_path: str | None
    branch: str | None
    base_ref: str | None
    cleanup: str | None
    env: Dict


class Audit(TypedDict):
    """The mutation session that a caller requests, as far as it is set. Spec: 08 §8.1."""

    session_id: str | None
    parent_session_id: str | None
    run_id: str | None
    worker_id: str | None
    execution_kind: str | None
    mutation_scope: str | None
    approval_policy: Dict | None


class Attempt(TypedDict):
    attempt: int
    status: str
    outcome: str
    started_at: str
    branch: str | None
    error: str | None
    finished_at: str | None
    verification: Any


class StageRecord(TypedDict):
    """One turn of one node."""

    id: str
    node_id: str
    kind: str
    status: str
    outcome: str
    started_at: str
    branch: str | None
    finished_at: str | None
    visible_text: str | None
    private_reasoning: str | None
    transcript: Any
    verification: Any
    usage: UsageRecord | None
    artifacts: list[Artifact]
    consumed_artifact_ids: list[str]
    produced_artifact_ids: list[str]
    attempts: list[Attempt]
    metadata: Dict


class Transition(TypedDict):
    """A step from one stage to the next node."""

    id: str
    to_node_id: str
    timestamp: str
    from_stage_id: str | None
    from_node_id: str | None
    branch: str | None
    consumed_artifact_ids: list[str]
    produced_artifact_ids: list[str]


class Checkpoint(TypedDict):
    """Where a run stood at one time."""

    id: str
    persisted_at: str
    reason: str
    ready_nodes: list[str]
    completed_nodes: list[str]
    last_stage_id: str | None


class ChildRun(TypedDict):
    """The run of a worker."""

    worker_id: str
    worker_name: str
    task: str
    status: str
    started_at: str
    parent_stage_id: str | None
    session_id: str | None
    parent_session_id: str | None
    mutation_scope: str | None
    finished_at: str | None
    run_id: str | None
    run_path: str | None
    snapshot_path: str | None
    approval_policy: Any
    request: Any
    provenance: Any
    execution: ExecutionRecord | None


class ExpectedQuestion(TypedDict):
    """The clarifying question that a fixture expects."""

    expected_question: str | None
    accepted_questions: list[str]
    required_terms: list[str]
    forbidden_terms: list[str]
    min_questions: int | None
    max_questions: int | None


class StageAssertion(TypedDict):
    """What a fixture expects of a node's last stage."""

    node_id: str
    expected_status: str
    expected_outcome: str
    expected_branch: str | None
    visible_text_contains: str | None
    required_artifact_kinds: list[str]


class ReplayFixture(TypedDict):
    """The expected outcome of a run."""

    _type: str
    id: str
    source_run_id: str
    workflow_id: str
    created_at: str
    expected_status: str
    workflow_name: str | None
    eval_kind: str
    clarifying_question: ExpectedQuestion | None
    stage_assertions: list[StageAssertion]


class SuiteCase(TypedDict):
    """A run of a suite, and the files to judge it by."""

    label: str | None
    fixture_path: str | None
    compare_to: str | None
    run_path: str


class SuiteManifest(TypedDict):
    _type: str
    id: str
    name: str | None
    base_dir: str | None
    cases: list[SuiteCase]


class TraceSpan(TypedDict):
    span_id: Any
    parent_id: Any
    kind: str
    name: str
    start_ms: int
    duration_ms: int
    metadata: Dict


class ToolRecording(TypedDict):
    """A tool call and its result."""

    tool_name: str
    tool_use_id: str | None
    args_hash: str
    timestamp: str
    result: Any
    is_rejected: bool
    duration_ms: int
    iteration: int


class RunRecord(TypedDict):
    _type: str
    id: str
    workflow_id: str
    task: str
    status: str
    started_at: str
    workflow_name: str | None
    finished_at: str | None
    parent_run_id: str | None
    root_run_id: str | None
    persisted_path: str | None
    stages: list[StageRecord]
    transitions: list[Transition]
    checkpoints: list[Checkpoint]
    pending_nodes: list[str]
    completed_nodes: list[str]
    child_runs: list[ChildRun]
    artifacts: list[Artifact]
    handoffs: list[Dict]
    policy: Dict
    execution: ExecutionRecord | None
    transcript: Any
    usage: UsageRecord | None
    replay_fixture: ReplayFixture | None
    observability: Dict | None
    trace_spans: list[TraceSpan]
    tool_recordings: list[ToolRecording]
    hitl_questions: list[Question]
    metadata: Dict
