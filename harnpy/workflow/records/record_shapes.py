"""The shapes of a run record and its parts: types, keys and defaults, and their values as plain JSON.

Texts that every record has default to the empty text, everything else to nil or an empty value. Functions are
left out of the JSON: they don't outlast a program. Spec: 08 §8.1, §6.1.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, TypedDict

from harnpy.faults import MisuseError
from harnpy.formats.json import as_data
from harnpy.workflow.shapes import Field, Shape, all_of, list_of

if TYPE_CHECKING:
    from harnpy.agent.people import Question
    from harnpy.formats.dicts import Dict
    from harnpy.workflow.artifacts import Artifact


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


#: The error for a value whose text could not be read again.
TOO_DEEP = "recursion limit exceeded"

_LEFT_OUT = object()
_INDENT = 2


def plain_json(value: Any) -> Any:
    """Return ``value`` as it would be read back from its JSON text; itself if nothing changes.

    Identity matters: results computed from a value are remembered by its identity.
    """
    made = _plain(value)
    return None if made is _LEFT_OUT else made


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _text(value)
    if kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return value if isfinite(value) else None
    if isinstance(value, dict):
        made = {key: _plain(item) for key, item in value.items()}
        same = kind is dict and all(made[key] is item for key, item in value.items())
        if same and all(key.isascii() or _text(key) is key for key in value):
            return value
        return {_text(key): item for key, item in made.items() if item is not _LEFT_OUT}
    if kind is list:
        items = [_plain(item) for item in value]
        same = all(new is item for new, item in zip(items, value, strict=True))
        return value if same else [item for item in items if item is not _LEFT_OUT]
    if callable(value):
        return _LEFT_OUT
    return _plain(as_data(value))


def _text(text: str) -> str:
    """Return the text with lone surrogates, which no file can hold, joined or replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def pretty_record(value: Any) -> str:
    """Return the JSON text of a plain value: sorted keys, two spaces per level.

    Raise `MisuseError` for a value that is nested too deeply for CPython 3.12 or newer.
    """
    from msgspec import json

    try:
        return json.format(json.encode(value, order="sorted"), indent=_INDENT).decode()
    except RecursionError as error:
        raise MisuseError(f"failed to persist run record: {TOO_DEEP}") from error


def indented_part(text: str, levels: int) -> str:
    """Indent a text of `pretty` by some levels. Line ends occur only between values."""
    return text.replace("\n", "\n" + " " * (_INDENT * levels))
