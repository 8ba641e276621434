"""How a loop's tool calls are reported: to the log, to subscribers, the trace and the workflow's record.

A call's end is in the log, with its result, before anyone hears of it. Spec: 07 §6.7, 08 §1.7, 10 §C16.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.loop.mcp_calls import server_of
from harnpy.agent.loop.tool_calls import OK, REJECTED, REJECTED_LOOP, Result
from harnpy.agent.workflow_scope import ToolCall
from harnpy.session.events import TOOL_COMPLETED

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.agent.loop.loop_state import LoopState
    from harnpy.agent.loop.tool_calls import CheckedCall, Outcome, Rejection
    from harnpy.agent.runtime import Runtime
    from harnpy.agent.tools.toolbox import Toolbox
    from harnpy.reading.dicts import Dict
    from harnpy.session.turns.conversation import Conversation

_EXECUTORS = {"harn": "harn_builtin"}


class CallReports:
    """``emit(type, **fields)`` notifies subscribers. ``iteration`` is the running turn's number, and
    ``answer`` adds a result to the conversation.
    """

    def __init__(
        self,
        runtime: Runtime,
        state: LoopState,
        conversation: Conversation,
        emit: Callable[..., None],
        toolbox: Toolbox,
    ) -> None:
        self.iteration = 0
        self.answer: Callable[[Result], None] = lambda result: None
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

    def started(self, checked: CheckedCall, number: int, parallel: bool = False) -> None:
        """Record that a call is made."""
        id = checked.call.get("id")
        self._conversation.call_started(checked.name, checked.arguments, id, number, parallel)

    def begun(self, checked: CheckedCall, id: str) -> None:
        """Step 9."""
        self._state.calls.append(checked.name)
        self._update(id, checked.name, "in_progress", raw_output=None, error=None)

    def progressed(self, checked: CheckedCall, id: str, progress: Dict) -> None:
        """Notify subscribers of what a tool reports while it runs."""
        self._update(id, checked.name, "in_progress", raw_output=None, error=None, progress=progress)

    def refused(self, checked: CheckedCall, rejection: Rejection, id: str) -> Result:
        """Record and report a call that isn't made."""
        category = rejection.category
        if rejection.reason is not None:
            self.denied(checked.name, rejection.reason)
        if category == REJECTED_LOOP:
            self.intervened(checked.name, "skip", rejection.metadata["repeat_count"])
        result = Result(checked.call, rejection.text, None)
        self._record_end(checked, result, category, 0, rejection.metadata)
        self._update(
            id, checked.name, "failed", raw_output=None, error=rejection.text, error_category=category
        )
        return result

    def ended(
        self, checked: CheckedCall, id: str, text: str, status: str, category: str | None, outcome: Outcome
    ) -> None:
        """Notify subscribers of a call's end."""
        name, ms = checked.name, outcome.ms
        executor = self._toolbox.executor(name)
        by = {"kind": _EXECUTORS.get(executor, executor)}
        if executor == "mcp_server":
            by["server_name"] = server_of(self._toolbox.entries[name])
        failed = {"error": text, "error_category": category} if status != OK else {"error": None}
        self._update(
            id,
            name,
            "completed" if status == OK else "failed",
            raw_output={"text": text, "tool_use_id": checked.call.get("id")},
            **failed,
            duration_ms=ms,
            execution_duration_ms=ms,
            executor=by,
        )
        if outcome.plan is not None:
            self._emit("plan", plan=outcome.plan["metadata"]["plan"])

    def recorded(
        self, checked: CheckedCall, outcome: Outcome, text: str, status: str, category: str | None
    ) -> Result:
        """Record a call that was made; ``text`` is what the model reads."""
        if status == OK:
            self._state.successful[checked.name] = None
        result = Result(checked.call, text, status)
        self._record_end(checked, result, category, outcome.ms, plan=outcome.plan)
        self._trace.record(
            "tool_execution",
            tool_name=checked.name,
            tool_use_id=checked.call.get("id"),
            duration_ms=outcome.ms,
            status=status,
            classification=category or status,
            iteration=self.iteration,
        )
        return result

    def denied(self, name: str, reason: str) -> None:
        self._state.rejected[name] = None
        self._trace.record("tool_rejected", tool_name=name, reason=reason, iteration=self.iteration)

    def intervened(self, name: str, kind: str, count: int) -> None:
        self._trace.record(
            "loop_intervention", tool_name=name, kind=kind, count=count, iteration=self.iteration
        )

    def _update(self, id: str, name: str, status: str, **fields: Any) -> None:
        self._emit("tool_call_update", tool_call_id=id, tool_name=name, status=status, **fields)

    def _record_end(
        self,
        checked: CheckedCall,
        result: Result,
        category: str | None,
        ms: int,
        details: Dict | None = None,
        plan: Dict | None = None,
    ) -> None:
        """Store a call's end and its result together."""
        name, id, text = checked.name, checked.call.get("id"), result.text
        rejected = result.status is None or result.status == REJECTED
        completed: Dict = {"tool": name, "id": id, "output" if category is None else "error": text}
        if category is not None:
            completed["error_category"] = category
        if rejected:
            completed["rejected"] = True
        if result.status is not None:
            completed["duration_ms"] = ms
        if details:
            completed["details"] = details
        conversation = self._conversation
        conversation.fact(TOOL_COMPLETED, completed)
        if plan is not None:
            conversation.note(plan)
        self.answer(result)
        conversation.store()
        workflow = self._runtime.context().workflow
        if workflow is not None:
            workflow.tool_called(ToolCall(name, id, checked.arguments, text, rejected, ms, self.iteration))
