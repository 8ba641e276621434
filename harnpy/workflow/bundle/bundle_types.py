"""The types of the sections of session bundles. Spec: 08 §17."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.records.record_types import ChildRun, ReplayFixture, TraceSpan, UsageRecord


class RunIdentity(TypedDict):
    """Which run a bundle is of."""

    id: str
    workflow_id: str
    workflow_name: str | None
    task: str
    status: str
    started_at: str
    finished_at: str | None
    parent_run_id: str | None
    root_run_id: str | None


class TranscriptSection(TypedDict):
    """A transcript and where it comes from: `run`, `stage:<id>` or `sidecar`."""

    section: str
    session_id: Any
    transcript: Any


class StageOutcome(TypedDict):
    """How a stage ended."""

    stage_id: str
    node_id: str
    status: str
    outcome: str
    branch: str | None
    artifact_kinds: list[str]
    verification_ok: bool | None


class Replay(TypedDict):
    fixture: ReplayFixture | None
    stages: list[StageOutcome]


class Sections(TypedDict):
    """What a bundle takes from a run record."""

    run: RunIdentity
    transcripts: list[TranscriptSection]
    tool_calls: list[Dict]
    permissions: list[Dict]
    hitl: list[Dict]
    replay: Replay
    trace_spans: list[TraceSpan]
    usage: UsageRecord | None
    child_runs: list[ChildRun]
