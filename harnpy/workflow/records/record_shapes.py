"""The shapes of a run record and its parts: types, keys and defaults, and their values as plain JSON.

Texts that every record has default to the empty text, everything else to nil or an empty value. Functions are
left out of the JSON: they don't outlast a program. Spec: 08 §8.1, §6.1.
"""

from __future__ import annotations

from collections.abc import Collection
from math import isfinite
from typing import Annotated, Any, Literal, TypedDict

from harnpy.agent.people import Question
from harnpy.faults import MisuseError, look, paced
from harnpy.formats.dicts import Dict
from harnpy.formats.json import as_data
from harnpy.formats.shapes import Field
from harnpy.workflow.artifacts import Artifact

#: Lists whose items are normalised after the rest of a record.
Artifacts = Annotated[list[Artifact], Field("list", [])]
Handoffs = Annotated[list[Dict], Field("list", [])]


class UsageRecord(TypedDict):
    """The total use of model calls."""

    input_tokens: int
    output_tokens: int
    total_duration_ms: int
    call_count: int
    total_cost: float
    models: list[str]


class ExecutionRecord(TypedDict):
    """The place where a run worked."""

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
    attempt: Annotated[int, 1]
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
    artifacts: Artifacts
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
    """The state of a run at one time."""

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
    """The expectations of a node's last stage."""

    node_id: str
    expected_status: str
    expected_outcome: str
    expected_branch: str | None
    visible_text_contains: str | None
    required_artifact_kinds: list[str]


class ReplayFixture(TypedDict):
    """The expected outcome of a run."""

    _type: Annotated[str, "replay_fixture"]
    id: str
    source_run_id: str
    workflow_id: str
    created_at: str
    expected_status: str
    workflow_name: str | None
    eval_kind: Annotated[str, "replay"]
    clarifying_question: ExpectedQuestion | None
    stage_assertions: list[StageAssertion]


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
    tool_use_id: Annotated[str | None, ""]
    args_hash: str
    timestamp: str
    result: Any
    is_rejected: bool
    duration_ms: int
    iteration: int


class RunRecord(TypedDict):
    _type: Annotated[str, "run_record"]
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
    artifacts: Artifacts
    handoffs: Handoffs
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


#: The error for a value whose text could not be read again.
TOO_DEEP = "recursion limit exceeded"

_LEFT_OUT = object()
#: Levels that are surely not too many, wherever in a record a value stands.
_SHALLOW = 64
#: Parts between two looks.
_LOOK = 8
_STRINGS = frozenset((str,))
_SCALARS = frozenset((str, int, bool, type(None)))


def plain_json(value: Any) -> Any:
    """Return ``value`` as it would be read back from its JSON text; itself if nothing changes.

    Identity matters: results computed from a value are remembered by its identity.
    """
    if is_plain(value):
        return value
    made = _plain(value)
    return None if made is _LEFT_OUT else made


def is_plain(value: Any, known: Collection[int] = ()) -> bool:
    """Return whether a value is one that JSON gives back as it is, nested not too deeply. Each part is looked
    at once, those with the ids of ``known`` ones not at all."""
    return data_parts(value, known) is not None and _is_text(value)


def data_parts(value: Any, known: Collection[int] = ()) -> Collection[int] | None:
    """Return the ids of the parts of a value that is made of dicts, lists and what JSON has a word for, and
    is not nested too deeply; None for another one. Whether its texts can be written isn't asked."""
    parts, seen = [value], set[int]()
    depth, of_depth = 1, 1
    for place, part in enumerate(parts):
        if place == of_depth:
            depth, of_depth = depth + 1, len(parts)
            if depth > _SHALLOW:
                return None
        kind = type(part)
        if kind is dict:
            items = part.values()
            if not _STRINGS.issuperset(map(type, part)):
                return None
        else:
            items = part if kind is list else (part,)
        if not place % _LOOK:
            look(len(items))
        if _SCALARS.issuperset(map(type, items)):
            continue
        for item in items:
            kind = type(item)
            if kind in _SCALARS:
                continue
            if kind is dict or kind is list:
                if item and (address := id(item)) not in seen and address not in known:
                    seen.add(address)
                    parts.append(item)
            elif kind is not float or not isfinite(item):
                return None
    return seen


def _is_text(value: Any) -> bool:
    """Return whether all texts in a value can be written."""
    from msgspec import json

    try:
        json.encode(value)
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _text(value)
    if kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return value if isfinite(value) else None
    if isinstance(value, dict):
        made = {key: _plain(item) for key, item in paced([*value.items()])}
        same = kind is dict and all(made[key] is item for key, item in paced([*value.items()]))
        if same and all(key.isascii() or _text(key) is key for key in value):
            return value
        return {_text(key): item for key, item in made.items() if item is not _LEFT_OUT}
    if kind is list:
        items = [_plain(item) for item in paced(value)]
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

    return json.format(encoded(value, "sorted"), indent=2).decode()


def encoded(value: Any, order: Literal["sorted"] | None = None) -> bytes:
    """Return a plain value as JSON in one line. Raise `MisuseError` likewise."""
    from msgspec import json

    try:
        return json.encode(value, order=order)
    except RecursionError as error:
        raise MisuseError(f"failed to persist run record: {TOO_DEEP}") from error
