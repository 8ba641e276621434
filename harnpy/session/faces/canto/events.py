"""Events, what they hold, and how they are made. Spec: 10 §A1.1, §A1.2.

Payloads are the types of `harnpy.session.payload_types`, by Canto's names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from msgspec import Struct, to_builtins
from msgspec.json import decode as from_json
from msgspec.json import encode as to_json

from harnpy.session.drafting import payload_types as types
from harnpy.session.drafting.decoding import decoded
from harnpy.session.events import EventDraft

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.session.events import Event as HarnEvent

    Json = dict[str, Any]

ArtifactRecordedData = types.ArtifactRecorded
BranchSummaryData = types.BranchSummary
ChildBlockedData = types.ChildBlocked
ChildCanceledData = types.ChildCanceled
ChildCompletedData = types.ChildCompleted
ChildFailedData = types.ChildFailed
ChildMergedData = types.ChildMerged
ChildProgressedData = types.ChildProgressed
ChildRequestedData = types.ChildRequested
ChildStartedData = types.ChildStarted
CompactionSnapshot = types.CompactionTriggered
ContextEntry = types.ContextAdded
EscalationRetriedData = types.EscalationRetried
ProjectionSnapshot = types.CompactionTriggered
StepCompletedData = types.StepCompleted
StepStartedData = types.StepStarted
ToolCompletedData = types.ToolCompleted
ToolStartedData = types.ToolStarted
TurnCompletedData = types.TurnCompleted
TurnStartedData = types.TurnStarted


class WaitData(Struct, frozen=True, omit_defaults=True):
    """What is waited for."""

    reason: str | None = None
    external_id: str | None = None


class ForkOrigin(NamedTuple):
    """Where an event of a fork comes from."""

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
        """Return what appends it. One that was read from JSON keeps its id and its time."""
        if self._logged is not None or not self.id:
            return EventDraft(self.type, self.data, self.metadata or None, self.cost)
        return EventDraft(
            self.type, self.data, self.metadata or None, self.cost, id=self.id, timestamp=self.timestamp
        )

    def payload(self, kind: type[Data]) -> Data | None:
        """Return the data as ``kind``, None if it is of another type."""
        return decoded(cast("HarnEvent", self), kind)

    def unmarshal_data(self) -> Any:
        """Return the data as it is."""
        return self.data

    def fork_origin(self) -> ForkOrigin | None:
        """Return where it comes from, if a fork took it over."""
        found = None if self._logged is None else self._logged.fork_origin
        return None if found is None else ForkOrigin(found["session_id"], found["event_id"])

    def wait_data(self) -> WaitData | None:
        """Return the payload of a ``wait_started`` or ``wait_resolved``; None for another event."""
        found = self.payload(types.WaitStarted) or self.payload(types.WaitResolved)
        return None if found is None else WaitData(found.reason, found.external_id)

    artifact_recorded_data = _reads(types.ArtifactRecorded)
    branch_summary_data = _reads(types.BranchSummary)
    child_blocked_data = _reads(types.ChildBlocked)
    child_canceled_data = _reads(types.ChildCanceled)
    child_completed_data = _reads(types.ChildCompleted)
    child_failed_data = _reads(types.ChildFailed)
    child_merged_data = _reads(types.ChildMerged)
    child_progressed_data = _reads(types.ChildProgressed)
    child_requested_data = _reads(types.ChildRequested)
    child_started_data = _reads(types.ChildStarted)
    compaction_snapshot = _reads(types.CompactionTriggered)
    escalation_retried_data = _reads(types.EscalationRetried)
    projection_snapshot = _reads(types.ProjectionSnapshotted)
    step_completed_data = _reads(types.StepCompleted)
    step_started_data = _reads(types.StepStarted)
    tool_completed_data = _reads(types.ToolCompleted)
    tool_started_data = _reads(types.ToolStarted)
    turn_completed_data = _reads(types.TurnCompleted)
    turn_started_data = _reads(types.TurnStarted)


def marshal_event_json(event: Event) -> bytes:
    """Return an event as a line of a log has it, without the line break. Spec: 10 §A1.1."""
    shown = {key: getattr(event, key) for key in _KEYS}
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
