"""Canto's events, the messages and payloads that they hold, and functions that make each.

Spec: 10 §A1.1–A1.4, §B2.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar, cast

from msgspec import Struct, to_builtins
from msgspec.json import decode as from_json
from msgspec.json import encode as to_json

from harnpy.session import events as types
from harnpy.session import messages, payload_types
from harnpy.session.events import (
    COMPACTION_TRIGGERED,
    MESSAGE_ADDED,
    PROJECTION_SNAPSHOTTED,
    EventDraft,
    decoded,
)
from harnpy.session.events import Event as HarnEvent
from harnpy.session.projections import spelled_out

Json = dict[str, Any]
Message = dict[str, Any]

__all__ = [
    "ARTIFACT_KIND_WORKSPACE_FILE_REF", "ArtifactRecordedData", "BranchSummaryData", "ChildBlockedData",
    "ChildCanceledData", "ChildCompletedData", "ChildFailedData", "ChildMergedData", "ChildMode",
    "ChildProgressedData", "ChildRequestedData", "ChildStartedData", "ChildStatus", "CompactionSnapshot",
    "ContextEntry", "ContextKind", "ContextPlacement", "EscalationRetriedData", "Event", "EventType",
    "ForkOrigin", "ProjectionSnapshot", "ProjectionTrigger", "StepCompletedData", "StepStartedData",
    "ToolCompletedData", "ToolStartedData", "TurnCompletedData", "TurnStartedData", "WaitData",
    "assistant_message", "marshal_event_json", "new_artifact_recorded_event", "new_branch_summary_event",
    "new_child_blocked_event", "new_child_canceled_event", "new_child_completed_event",
    "new_child_failed_event", "new_child_merged_event", "new_child_progressed_event",
    "new_child_requested_event", "new_child_started_event", "new_compaction_event", "new_context",
    "new_escalation_retried_event", "new_event", "new_message", "new_projection_snapshot",
    "new_step_completed_event", "new_step_started_event", "new_tool_completed_event",
    "new_tool_started_event", "new_turn_completed_event", "new_turn_started_event", "new_user_message",
    "new_wait_resolved_event", "new_wait_started_event", "system_message", "tool_message",
    "unmarshal_event_json", "user_message",
]  # fmt: skip

# Types of events, kinds of context, modes and statuses of children, as enums of texts. Spec: 10 §A1.2.


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
    """The kind of context; it decides the placement unless one is given."""

    GENERIC = "generic"
    BOOTSTRAP = "bootstrap"
    HARNESS = "harness"
    SUMMARY = "summary"
    WORKING_SET = "working_set"


class ContextPlacement(StrEnum):
    """The place of context: before the messages, or among them."""

    HISTORY = "history"
    PREFIX = "prefix"


class ChildMode(StrEnum):
    """The material that a child begins with: a task, its parent's log, or nothing."""

    HANDOFF = "handoff"
    FORK = "fork"
    FRESH = "fresh"


class ChildStatus(StrEnum):
    """The state of a child."""

    REQUESTED = "requested"
    RUNNING = "running"
    BLOCKED = "blocked"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    MERGED = "merged"


class ProjectionTrigger(StrEnum):
    """The reason for a projection snapshot."""

    COUNT = "count"
    TIME = "time"
    MANUAL = "manual"


# Events, what they hold, and how they are made. Spec: 10 §A1.1, §A1.2.
#
# Payloads are the types of `harnpy.session.payload_types`, by Canto's names.


ArtifactRecordedData = payload_types.ArtifactRecorded
BranchSummaryData = payload_types.BranchSummary
ChildBlockedData = payload_types.ChildBlocked
ChildCanceledData = payload_types.ChildCanceled
ChildCompletedData = payload_types.ChildCompleted
ChildFailedData = payload_types.ChildFailed
ChildMergedData = payload_types.ChildMerged
ChildProgressedData = payload_types.ChildProgressed
ChildRequestedData = payload_types.ChildRequested
ChildStartedData = payload_types.ChildStarted
CompactionSnapshot = payload_types.CompactionTriggered
ContextEntry = payload_types.ContextAdded
EscalationRetriedData = payload_types.EscalationRetried
ProjectionSnapshot = payload_types.CompactionTriggered
StepCompletedData = payload_types.StepCompleted
StepStartedData = payload_types.StepStarted
ToolCompletedData = payload_types.ToolCompleted
ToolStartedData = payload_types.ToolStarted
TurnCompletedData = payload_types.TurnCompleted
TurnStartedData = payload_types.TurnStarted


class WaitData(Struct, frozen=True, omit_defaults=True):
    """The input or event that is waited for."""

    reason: str | None = None
    external_id: str | None = None


class ForkOrigin(NamedTuple):
    """The origin of a fork's event."""

    session_id: str
    event_id: str


Data = TypeVar("Data")


def _reads(kind: type[Data]) -> Callable[[Event], Data | None]:
    """Return the method that reads events of that kind: None for others."""

    def read(event: Event) -> Data | None:
        return event.payload(kind)

    read.__doc__ = f"Return the payload of a ``{cast('Any', kind).TYPE}``; None for another event."
    return read


class Event:
    """An event: of a log, or one that is to be appended, which has no id and no time yet.

    Reading what it holds raises `EventDecodeError` for a payload that isn't what its type says.
    """

    def __init__(
        self,
        session_id: str,
        type: str,
        data: Any = None,
        metadata: Json | None = None,
        cost: float = 0.0,
    ) -> None:
        self.id = ""
        self.seq = 0
        self.turn_id = ""
        self.parent_id = ""
        self.timestamp = ""
        self.session_id = session_id
        self.type = str(type)
        self.data = to_builtins(data)
        self.metadata: Json = metadata or {}
        self.cost = cost
        self._logged: HarnEvent | None = None

    @classmethod
    def of(cls, logged: HarnEvent) -> Event:
        """Return an event of a log."""
        event = cls(logged.session_id, logged.type, logged.data, logged.metadata, logged.cost)
        event.took_place(logged)
        return event

    def took_place(self, logged: HarnEvent) -> None:
        """Become what the log has: with an id, a number, a time, and what was added to its metadata."""
        self._logged = logged
        self.session_id, self.data, self.metadata = logged.session_id, logged.data, logged.metadata
        self.id, self.seq, self.timestamp = logged.id, logged.seq, logged.timestamp
        self.turn_id, self.parent_id = logged.turn_id or "", logged.parent_id or ""

    def __repr__(self) -> str:
        return f"Event({self.type!r}, {self.data!r}, id={self.id!r}, session_id={self.session_id!r})"

    def draft(self) -> EventDraft:
        """Return what appends it. One that was read from JSON keeps its id, its time and its turn."""
        said = (self.type, self.data, self.metadata or None, self.cost)
        if self._logged is not None or not self.id:
            return EventDraft(*said)
        return EventDraft(*said, turn=self.turn_id or None, id=self.id, timestamp=self.timestamp)

    def payload(self, kind: type[Data]) -> Data | None:
        """Return the data as ``kind``, None if it is of another type."""
        return decoded(cast("HarnEvent", self) if self._logged is None else self._logged, kind)

    def unmarshal_data(self) -> Any:
        """Return the data as it is."""
        return self.data

    def fork_origin(self) -> ForkOrigin | None:
        """Return where it comes from, if a fork took it over."""
        found = None if self._logged is None else self._logged.fork_origin
        return None if found is None else ForkOrigin(found["session_id"], found["event_id"])

    def wait_data(self) -> WaitData | None:
        """Return the payload of a ``wait_started`` or ``wait_resolved``; None for another event."""
        found = self.payload(payload_types.WaitStarted) or self.payload(payload_types.WaitResolved)
        return None if found is None else WaitData(found.reason, found.external_id)

    artifact_recorded_data = _reads(payload_types.ArtifactRecorded)
    branch_summary_data = _reads(payload_types.BranchSummary)
    child_blocked_data = _reads(payload_types.ChildBlocked)
    child_canceled_data = _reads(payload_types.ChildCanceled)
    child_completed_data = _reads(payload_types.ChildCompleted)
    child_failed_data = _reads(payload_types.ChildFailed)
    child_merged_data = _reads(payload_types.ChildMerged)
    child_progressed_data = _reads(payload_types.ChildProgressed)
    child_requested_data = _reads(payload_types.ChildRequested)
    child_started_data = _reads(payload_types.ChildStarted)
    compaction_snapshot = _reads(payload_types.CompactionTriggered)
    escalation_retried_data = _reads(payload_types.EscalationRetried)
    projection_snapshot = _reads(payload_types.ProjectionSnapshotted)
    step_completed_data = _reads(payload_types.StepCompleted)
    step_started_data = _reads(payload_types.StepStarted)
    tool_completed_data = _reads(payload_types.ToolCompleted)
    tool_started_data = _reads(payload_types.ToolStarted)
    turn_completed_data = _reads(payload_types.TurnCompleted)
    turn_started_data = _reads(payload_types.TurnStarted)


def marshal_event_json(event: Event) -> bytes:
    """Return an event as a line of a log has it, without the line break. Spec: 10 §A1.1."""
    shown = {key: getattr(event, key) for key in _KEYS}
    if event.type == PROJECTION_SNAPSHOTTED and event._logged is not None:
        shown["data"] = spelled_out(event._logged)
    return to_json({key: value for key, value in shown.items() if value or key in _ALWAYS})


def unmarshal_event_json(line: bytes | str) -> Event:
    """Read what `marshal_event_json` gives. Raises ValueError for what is no event."""
    shown = from_json(line)
    missing = [key for key in _ALWAYS if not isinstance(shown, dict) or key not in shown]
    if missing:
        raise ValueError(f"an event has the keys {', '.join(_ALWAYS)}: {missing[0]!r} is missing")
    event = Event(
        shown["session_id"], shown["type"], shown["data"], shown.get("metadata"), shown.get("cost", 0.0)
    )
    for key in ("id", "timestamp", "turn_id", "parent_id", "seq"):
        setattr(event, key, shown.get(key, getattr(event, key)))
    return event


_KEYS = (
    "id", "session_id", "turn_id", "seq", "parent_id", "type", "timestamp", "data", "metadata", "cost",
)  # fmt: skip
_ALWAYS = ("id", "session_id", "type", "timestamp", "data")


# Making messages and events, each by a function of its own. Spec: 10 §A1.2, §A1.3, §B2.


user_message, assistant_message = messages.user, messages.assistant
#: Makes a message that no log takes: context is for `new_context`.
system_message = messages.system


def tool_message(name: str, tool_id: str, content: str) -> Message:
    """Return the result of the call ``tool_id``."""
    return {"role": "tool", "content": content, "name": name, "tool_id": tool_id}


new_event = Event


def new_message(session_id: str, message: Message) -> Event:
    return Event(session_id, MESSAGE_ADDED, message)


def new_user_message(session_id: str, content: str) -> Event:
    return new_message(session_id, user_message(content))


def _new(kind: type[Data], type: str | None = None) -> Callable[[str, Data], Event]:
    """Return the function that makes events of that payload."""

    def new(session_id: str, data: Data) -> Event:
        return Event(session_id, type or kind.TYPE, data)  # type: ignore[attr-defined]

    return new


new_artifact_recorded_event = _new(payload_types.ArtifactRecorded)
new_branch_summary_event = _new(payload_types.BranchSummary)
new_child_blocked_event = _new(payload_types.ChildBlocked)
new_child_canceled_event = _new(payload_types.ChildCanceled)
new_child_completed_event = _new(payload_types.ChildCompleted)
new_child_failed_event = _new(payload_types.ChildFailed)
new_child_merged_event = _new(payload_types.ChildMerged)
new_child_progressed_event = _new(payload_types.ChildProgressed)
new_child_requested_event = _new(payload_types.ChildRequested)
new_child_started_event = _new(payload_types.ChildStarted)
new_compaction_event = _new(payload_types.CompactionTriggered, COMPACTION_TRIGGERED)
new_context = _new(payload_types.ContextAdded)
new_escalation_retried_event = _new(payload_types.EscalationRetried)
new_projection_snapshot = _new(payload_types.CompactionTriggered, PROJECTION_SNAPSHOTTED)
new_step_completed_event = _new(payload_types.StepCompleted)
new_step_started_event = _new(payload_types.StepStarted)
new_tool_completed_event = _new(payload_types.ToolCompleted)
new_tool_started_event = _new(payload_types.ToolStarted)
new_turn_completed_event = _new(payload_types.TurnCompleted)
new_turn_started_event = _new(payload_types.TurnStarted)
new_wait_resolved_event = _new(WaitData, payload_types.WaitResolved.TYPE)
new_wait_started_event = _new(WaitData, payload_types.WaitStarted.TYPE)
