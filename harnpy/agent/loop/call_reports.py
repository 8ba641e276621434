"""How a loop's tool calls are reported: to subscribers, the transcript, the trace and the workflow's record.

Spec: 07 §6.7, 08 §1.7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.loop.tool_calls import OK, REJECTED, REJECTED_LOOP
from harnpy.agent.workflow_scope import ToolCall
from harnpy.session.transcript import lifecycle_event

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.agent.loop.loop_state import LoopState
    from harnpy.agent.loop.tool_calls import CheckedCall, Outcome, Rejection
    from harnpy.agent.runtime import Runtime
    from harnpy.agent.tools.toolbox import Toolbox
    from harnpy.session.loop_conversation import Conversation

_EXECUTORS = {"harn": "harn_builtin"}


class CallReports:
    """``emit(type, **fields)`` notifies subscribers. ``iteration`` is the running turn's number."""

    def __init__(
        self,
        runtime: Runtime,
        state: LoopState,
        conversation: Conversation,
        emit: Callable[..., None],
        toolbox: Toolbox,
    ) -> None:
        self.iteration = 0
        self._runtime = runtime
        self._trace = runtime.models.trace
        self._state = state
        self._conversation = conversation
        self._emit = emit
        self._toolbox = toolbox

    def pending(self, id: str, name: str, raw_input: Any) -> None:
        kind = self._toolbox.kind(name)
        self._emit(
            "tool_call", tool_call_id=id, tool_name=name, kind=kind, status="pending", raw_input=raw_input
        )

    def begun(self, checked: CheckedCall, id: str) -> None:
        """Step 9."""
        name = checked.name
        self._state.calls.append(name)
        metadata = {"arguments": checked.arguments, "tool_use_id": checked.call.get("id")}
        self._conversation.note(lifecycle_event("tool_intent", name, role="assistant", metadata=metadata))
        self._update(id, name, "in_progress", raw_output=None, error=None)

    def refused(self, checked: CheckedCall, rejection: Rejection, id: str) -> None:
        """Report a call that isn't made."""
        category = rejection.category
        if rejection.reason is not None:
            self.denied(checked.name, rejection.reason)
        if category == REJECTED_LOOP:
            self.intervened(checked.name, "skip", rejection.metadata["repeat_count"])
        self._note_execution(checked, rejection.text, True, error_category=category, **rejection.metadata)
        self._update(
            id, checked.name, "failed", raw_output=None, error=rejection.text, error_category=category
        )

    def ended(
        self, checked: CheckedCall, id: str, text: str, status: str, category: str | None, ms: int
    ) -> None:
        """Notify subscribers of a call's end."""
        name = checked.name
        executor = (self._toolbox.entries.get(name) or {}).get("executor") or "harn"
        failed = {"error": text, "error_category": category} if status != OK else {"error": None}
        self._update(
            id,
            name,
            "completed" if status == OK else "failed",
            raw_output={"text": text, "tool_use_id": checked.call.get("id")},
            **failed,
            duration_ms=ms,
            execution_duration_ms=ms,
            executor={"kind": _EXECUTORS.get(executor, executor)},
        )

    def recorded(
        self, checked: CheckedCall, outcome: Outcome, text: str, status: str, category: str | None
    ) -> None:
        """Record a call that was made; ``text`` is what the model reads."""
        if status == OK:
            self._state.successful[checked.name] = None
        details = {"error_category": category} if category else {}
        self._note_execution(checked, text, status == REJECTED, outcome.ms, **details)
        self._trace.record(
            "tool_execution",
            tool_name=checked.name,
            tool_use_id=checked.call.get("id"),
            duration_ms=outcome.ms,
            status=status,
            classification=category or status,
            iteration=self.iteration,
        )
        if outcome.plan is not None:
            self._conversation.note(outcome.plan)
            self._emit("plan", plan=outcome.plan["metadata"]["plan"])

    def denied(self, name: str, reason: str) -> None:
        self._state.rejected[name] = None
        self._trace.record("tool_rejected", tool_name=name, reason=reason, iteration=self.iteration)

    def intervened(self, name: str, kind: str, count: int) -> None:
        self._trace.record(
            "loop_intervention", tool_name=name, kind=kind, count=count, iteration=self.iteration
        )

    def _update(self, id: str, name: str, status: str, **fields: Any) -> None:
        self._emit("tool_call_update", tool_call_id=id, tool_name=name, status=status, **fields)

    def _note_execution(
        self, checked: CheckedCall, text: str, rejected: bool, ms: int = 0, **details: Any
    ) -> None:
        name, id = checked.name, checked.call.get("id")
        metadata = {"tool_name": name, "tool_use_id": id, "rejected": rejected, **details}
        self._conversation.note(lifecycle_event("tool_execution", text, role="tool", metadata=metadata))
        workflow = self._runtime.context().workflow
        if workflow is not None:
            workflow.tool_called(ToolCall(name, id, checked.arguments, text, rejected, ms, self.iteration))
