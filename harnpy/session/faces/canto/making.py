"""Making messages and events, each by a function of its own. Spec: 10 §A1.2, §A1.3, §B2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from harnpy.session.drafting import messages
from harnpy.session.drafting import payload_types as types
from harnpy.session.events import COMPACTION_TRIGGERED, MESSAGE_ADDED, PROJECTION_SNAPSHOTTED
from harnpy.session.faces.canto.events import Event, WaitData

if TYPE_CHECKING:
    from collections.abc import Callable

    Message = dict[str, Any]

Data = TypeVar("Data")


def user_message(content: str) -> Message:
    return messages.user(content)


def assistant_message(content: str) -> Message:
    return messages.assistant(content)


def system_message(content: str) -> Message:
    """Return a message that no log takes: context is for `new_context`."""
    return messages.system(content)


def tool_message(name: str, tool_id: str, content: str) -> Message:
    """Return the result of the call ``tool_id``."""
    return {"role": "tool", "content": content, "name": name, "tool_id": tool_id}


def new_event(session_id: str, event_type: str, data: Any) -> Event:
    return Event(session_id, event_type, data)


def new_message(session_id: str, message: Message) -> Event:
    return Event(session_id, MESSAGE_ADDED, message)


def new_user_message(session_id: str, content: str) -> Event:
    return new_message(session_id, user_message(content))


def _new(kind: type[Data], type: str | None = None) -> Callable[[str, Data], Event]:
    """Return the function that makes events of that payload."""

    def new(session_id: str, data: Data) -> Event:
        return Event(session_id, type or kind.TYPE, data)  # type: ignore[attr-defined]

    return new


new_artifact_recorded_event = _new(types.ArtifactRecorded)
new_branch_summary_event = _new(types.BranchSummary)
new_child_blocked_event = _new(types.ChildBlocked)
new_child_canceled_event = _new(types.ChildCanceled)
new_child_completed_event = _new(types.ChildCompleted)
new_child_failed_event = _new(types.ChildFailed)
new_child_merged_event = _new(types.ChildMerged)
new_child_progressed_event = _new(types.ChildProgressed)
new_child_requested_event = _new(types.ChildRequested)
new_child_started_event = _new(types.ChildStarted)
new_compaction_event = _new(types.CompactionTriggered, COMPACTION_TRIGGERED)
new_context = _new(types.ContextAdded)
new_escalation_retried_event = _new(types.EscalationRetried)
new_projection_snapshot = _new(types.CompactionTriggered, PROJECTION_SNAPSHOTTED)
new_step_completed_event = _new(types.StepCompleted)
new_step_started_event = _new(types.StepStarted)
new_tool_completed_event = _new(types.ToolCompleted)
new_tool_started_event = _new(types.ToolStarted)
new_turn_completed_event = _new(types.TurnCompleted)
new_turn_started_event = _new(types.TurnStarted)
new_wait_resolved_event = _new(WaitData, types.WaitResolved.TYPE)
new_wait_started_event = _new(WaitData, types.WaitStarted.TYPE)
