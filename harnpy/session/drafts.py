"""A draft of an event of each known type, by the fields of its payload (`payload_types`).

``drafts.turn_started("helper")`` is ``EventDraft("turn_started", {"agent_id": "helper"})``. Metadata, cost
and turn are set on the draft. Spec: 10 §A1.2, §C3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec

from harnpy.session import messages
from harnpy.session import payload_types as types
from harnpy.session.events import MESSAGE_ADDED, EventDraft

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")


def message(said: dict[str, Any]) -> EventDraft:
    """A message as it is."""
    return EventDraft(MESSAGE_ADDED, said)


def user(text: str) -> EventDraft:
    """Return a user's message."""
    return message(messages.user(text))


def context(content: str, kind: str = "generic", placement: str = "") -> EventDraft:
    """Return context for the model that nobody has said; ``placement``: ``prefix`` or ``history``."""
    return types.ContextAdded(content, kind, placement).draft()


def _of(kind: Callable[P, types.PayloadType]) -> Callable[P, EventDraft]:
    def draft(*args: P.args, **fields: P.kwargs) -> EventDraft:
        return kind(*args, **fields).draft()

    return draft


handoff = _of(types.Handoff)
external_input = _of(types.ExternalInput)
turn_started = _of(types.TurnStarted)
turn_completed = _of(types.TurnCompleted)
step_started = _of(types.StepStarted)
step_completed = _of(types.StepCompleted)
tool_started = _of(types.ToolStarted)
tool_completed = _of(types.ToolCompleted)
tool_output_delta = _of(types.ToolOutputDelta)
approval_requested = _of(types.ApprovalRequested)
approval_resolved = _of(types.ApprovalResolved)
approval_canceled = _of(types.ApprovalCanceled)
wait_started = _of(types.WaitStarted)
wait_resolved = _of(types.WaitResolved)
escalation_retried = _of(types.EscalationRetried)
compaction_started = _of(types.CompactionStarted)
compaction_triggered = _of(types.CompactionTriggered)
projection_snapshotted = _of(types.ProjectionSnapshotted)
child_requested = _of(types.ChildRequested)
child_started = _of(types.ChildStarted)
child_progressed = _of(types.ChildProgressed)
child_blocked = _of(types.ChildBlocked)
child_completed = _of(types.ChildCompleted)
child_failed = _of(types.ChildFailed)
child_canceled = _of(types.ChildCanceled)
child_merged = _of(types.ChildMerged)
artifact_recorded = _of(types.ArtifactRecorded)
leaf_moved = _of(types.LeafMoved)
branch_summary = _of(types.BranchSummary)
model_changed = _of(types.ModelChanged)
thinking_changed = _of(types.ThinkingChanged)
tools_changed = _of(types.ToolsChanged)
