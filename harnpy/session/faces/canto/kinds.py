"""Types of events, kinds of context, modes and statuses of children, as enums of texts. Spec: 10 §A1.2."""

from __future__ import annotations

from enum import StrEnum

from harnpy.session import events as types

ARTIFACT_KIND_WORKSPACE_FILE_REF = "workspace_file_ref"


class EventType(StrEnum):
    """Types of events. Others are legal: they are kept, and no model sees them."""

    MESSAGE_ADDED = types.MESSAGE_ADDED
    CONTEXT_ADDED = types.CONTEXT_ADDED
    HANDOFF = types.HANDOFF
    EXTERNAL_INPUT = types.EXTERNAL_INPUT
    TURN_STARTED = types.TURN_STARTED
    TURN_COMPLETED = types.TURN_COMPLETED
    STEP_STARTED = types.STEP_STARTED
    STEP_COMPLETED = types.STEP_COMPLETED
    TOOL_STARTED = types.TOOL_STARTED
    TOOL_COMPLETED = types.TOOL_COMPLETED
    TOOL_OUTPUT_DELTA = types.TOOL_OUTPUT_DELTA
    APPROVAL_REQUESTED = types.APPROVAL_REQUESTED
    APPROVAL_RESOLVED = types.APPROVAL_RESOLVED
    APPROVAL_CANCELED = types.APPROVAL_CANCELED
    WAIT_STARTED = types.WAIT_STARTED
    WAIT_RESOLVED = types.WAIT_RESOLVED
    ESCALATION_RETRIED = types.ESCALATION_RETRIED
    COMPACTION_STARTED = types.COMPACTION_STARTED
    COMPACTION_TRIGGERED = types.COMPACTION_TRIGGERED
    PROJECTION_SNAPSHOTTED = types.PROJECTION_SNAPSHOTTED
    CHILD_REQUESTED = types.CHILD_REQUESTED
    CHILD_STARTED = types.CHILD_STARTED
    CHILD_PROGRESSED = types.CHILD_PROGRESSED
    CHILD_BLOCKED = types.CHILD_BLOCKED
    CHILD_COMPLETED = types.CHILD_COMPLETED
    CHILD_FAILED = types.CHILD_FAILED
    CHILD_CANCELED = types.CHILD_CANCELED
    CHILD_MERGED = types.CHILD_MERGED
    ARTIFACT_RECORDED = types.ARTIFACT_RECORDED
    LEAF_MOVED = types.LEAF_MOVED
    BRANCH_SUMMARY = types.BRANCH_SUMMARY


class ContextKind(StrEnum):
    """What context is; it decides where it stands unless its placement says so."""

    GENERIC = "generic"
    BOOTSTRAP = "bootstrap"
    HARNESS = "harness"
    SUMMARY = "summary"
    WORKING_SET = "working_set"


class ContextPlacement(StrEnum):
    """Where context stands: before the messages, or among them."""

    HISTORY = "history"
    PREFIX = "prefix"


class ChildMode(StrEnum):
    """What a child begins with: a task, its parent's log, or nothing."""

    HANDOFF = "handoff"
    FORK = "fork"
    FRESH = "fresh"


class ChildStatus(StrEnum):
    """What has become of a child."""

    REQUESTED = "requested"
    RUNNING = "running"
    BLOCKED = "blocked"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    MERGED = "merged"


class ProjectionTrigger(StrEnum):
    """Why a projection snapshot was taken."""

    COUNT = "count"
    TIME = "time"
    MANUAL = "manual"
