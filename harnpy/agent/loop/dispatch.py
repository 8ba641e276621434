"""Carrying out the tool calls of a turn: checked, run, told of, one after the other. Spec: 07 §6.7.

Each call goes through three steps: *check* (may it be made, is it complete, is it not the same again),
*execute*, and *settle*, which tells subscribers and the transcript. A run of calls that only read is
checked and executed at the same time, and settled in order: nobody who listens sees a difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent.errors import ToolFailure
from harnpy.agent.loop.arguments import PARSE_ERROR, missing, normalised
from harnpy.agent.loop.repeats import Repeats
from harnpy.agent.plans import plan_result
from harnpy.agent.tools.served import FILE_TOOLS, PLAN_TOOLS, file_tool
from harnpy.agent.workflow_scope import ToolCall
from harnpy.llm.messages import compact_json
from harnpy.session.resize.microcompact import microcompact
from harnpy.session.transcript import lifecycle_event

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.agent.loop.options import LoopOptions
    from harnpy.agent.rules.gate import Gate
    from harnpy.agent.runtime import Runtime
    from harnpy.agent.tools.toolbox import Internal, Toolbox
    from harnpy.reading.dicts import Dict
    from harnpy.session.loop_conversation import Conversation

    Call = dict[str, Any]

OK, ERROR, REJECTED = "ok", "error", "rejected"
PERMISSION_DENIED = "permission_denied"
REJECTED_LOOP = "rejected_loop"

_RETRY_STEPS = 5
_UNAVAILABLE = (
    "Tool '{}' is not available in the current environment. "
    "Use only the tools listed in the tool-calling contract."
)
_EXECUTORS = {"harn": "harn_builtin"}
#: Error categories of a tool's failure, as events call them (9.2).
_EVENT_CATEGORIES = {
    "timeout": "timeout",
    "rate_limit": "network",
    "overloaded": "network",
    "server_error": "network",
    "transient_network": "network",
    "schema_validation": "schema_validation",
    "tool_error": "tool_error",
    "cancelled": "cancelled",
    "tool_rejected": PERMISSION_DENIED,
}


class Refusal(NamedTuple):
    """A call that isn't made. ``reason`` is that of a denial; ``metadata`` adds to its transcript event."""

    text: str
    category: str
    reason: str | None = None
    metadata: Dict = {}  # noqa: RUF012


class Outcome(NamedTuple):
    """What a call that was made came to; a tool that couldn't be called at all has a ``denial``."""

    text: str
    ms: int = 0
    category: str | None = None
    denial: str | None = None
    plan: Dict | None = None


class Result(NamedTuple):
    """What the model is told of a call. ``status`` is None when the call wasn't made."""

    call: Call
    text: str
    status: str | None


@dataclass(slots=True)
class Checked:
    """A call with the arguments that it is made with, and why it isn't, if so."""

    call: Call
    arguments: Dict
    refusal: Refusal | None = None
    notes: Sequence[Dict] = ()
    outcome: Outcome | None = None


class Dispatcher:
    """The calls of one loop. ``emit(type, **fields)`` tells subscribers."""

    def __init__(
        self,
        runtime: Runtime,
        options: LoopOptions,
        conversation: Conversation,
        emit: Callable[..., None],
        toolbox: Toolbox,
        gate: Gate,
    ) -> None:
        self.calls: list[str] = []
        self.successful: dict[str, None] = {}
        self.rejected: dict[str, None] = {}
        self._runtime = runtime
        self._options = options
        self._conversation = conversation
        self._emit = emit
        self._toolbox = toolbox
        self._gate = gate
        self._repeats = Repeats(options)
        self._iteration = 0

    def dispatch(self, calls: list[Call], iteration: int) -> list[Result]:
        """Make the calls of a turn, in order."""
        self._iteration = iteration
        together = self._check_and_execute(self._reading_run(calls))
        results = []
        for number, call in enumerate(calls):
            internal = self._toolbox.internal.get(call["name"])
            if internal is not None:
                results.append(self._answer(call, internal))
            else:
                results.append(self._make(call, number, together.get(number)))
        return results

    # A run of calls that only read.

    def _reading_run(self, calls: list[Call]) -> list[Call]:
        """The calls at the start that only read, each of them once; [] when there is nothing to gain."""
        run: list[Call] = []
        seen: set[str] = set()
        for call in calls:
            key = compact_json([call["name"], call["arguments"]])
            if key in seen or not self._toolbox.annotations(call["name"]).read_only:
                break
            seen.add(key)
            run.append(call)
        return run if len(run) > 1 else []

    def _check_and_execute(self, run: list[Call]) -> dict[int, Checked]:
        checked = [self._check(call) for call in run]
        allowed = [item for item in checked if item.refusal is None]
        outcomes = self._runtime.together([partial(self._execute, item) for item in allowed])
        for item, outcome in zip(allowed, outcomes, strict=True):
            item.outcome = outcome
        return dict(enumerate(checked))

    # One call.

    def _answer(self, call: Call, internal: Internal) -> Result:
        """A call that the loop itself answers: no policy, no hook, no tool events."""
        name = call["name"]
        self.calls.append(name)
        text, good = internal(call)
        if good:
            self.successful[name] = None
        return Result(call, text, OK if good else ERROR)

    def _make(self, call: Call, number: int, checked: Checked | None) -> Result:
        name, raw = call["name"], call["arguments"]
        id = f"tool-{call['id']}" if call.get("id") else f"tool-iter-{self._iteration}-{number}"
        kind = self._toolbox.kind(name)
        self._emit("tool_call", tool_call_id=id, tool_name=name, kind=kind, status="pending", raw_input=raw)
        checked = checked or self._check(call)
        for note in checked.notes:
            self._conversation.note(note)
        if checked.refusal is not None:
            if checked.refusal.category == REJECTED_LOOP:
                self._begin(checked, id)  # it is noticed a step later
            return self._refused(checked, checked.refusal, id)
        self._begin(checked, id)
        outcome = checked.outcome or self._execute(checked)
        return self._settle(checked, outcome, id)

    def _check(self, call: Call) -> Checked:
        """Steps 3–8 and 10."""
        name = call["name"]
        given = call["arguments"]
        if isinstance(given, dict) and PARSE_ERROR in given:
            text = f"ERROR: {self._show(given[PARSE_ERROR])}"
            return Checked(call, given, Refusal(text, "schema_validation"))
        arguments = normalised(given, self._toolbox.annotations(name).arg_aliases)
        decision = self._gate.decide(name, arguments, call.get("id"))
        checked = Checked(call, decision.arguments, notes=decision.notes)
        if decision.reason is not None:
            checked.refusal = self._denial(name, decision.reason, decision.metadata)
            return checked
        checked.refusal = self._incomplete(name, checked.arguments) or self._repeated(name, checked.arguments)
        return checked

    def _incomplete(self, name: str, arguments: Dict) -> Refusal | None:
        entry = self._toolbox.entries.get(name)
        absent = [] if entry is None else missing(entry, arguments)
        if not absent:
            return None
        text = (
            f"ERROR: Tool '{name}' is missing required parameter(s): {', '.join(absent)}. "
            "Provide all required parameters and try again."
        )
        return Refusal(text, "schema_validation", metadata={"arguments": arguments})

    def _repeated(self, name: str, arguments: Dict) -> Refusal | None:
        found = self._repeats.before(name, arguments)
        if found is None:
            return None
        skipped = {"loop_skipped": True, "repeat_count": found.times}
        return Refusal(found.text, REJECTED_LOOP, metadata=skipped)

    def _denial(self, name: str, reason: str, metadata: Dict) -> Refusal:
        return Refusal(self._denied_text(name, reason), PERMISSION_DENIED, reason, metadata)

    def _denied_text(self, name: str, reason: str) -> str:
        denied = {"error": PERMISSION_DENIED, "reason": reason, "tool": name}
        return self._conversation.effects.to_json(denied, pretty=True)

    def _begin(self, checked: Checked, id: str) -> None:
        """Step 9."""
        name = checked.call["name"]
        self.calls.append(name)
        metadata = {"arguments": checked.arguments, "tool_use_id": checked.call.get("id")}
        self._conversation.note(lifecycle_event("tool_intent", name, role="assistant", metadata=metadata))
        self._emit(
            "tool_call_update",
            tool_call_id=id,
            tool_name=name,
            status="in_progress",
            raw_output=None,
            error=None,
        )

    # Execution.

    def _execute(self, checked: Checked) -> Outcome:
        """Step 11: run the tool; whatever goes wrong is a text."""
        clock = self._runtime.models.monotonic
        begin = clock()
        try:
            outcome = self._attempts(checked)
        except ToolFailure as error:
            if error.category == "tool_rejected":
                outcome = Outcome("", denial=error.text)
            else:
                category = _EVENT_CATEGORIES.get(error.category or "tool_error", "host_bridge_error")
                outcome = Outcome(f"Error: {error.text}", category=category)
        return outcome._replace(ms=int((clock() - begin) * 1000))

    def _attempts(self, checked: Checked) -> Outcome:
        """Call the tool; a tool of the host that can't be reached is tried again, as the options say."""
        attempt = 0
        while True:
            try:
                return self._call(checked)
            except ConnectionError as error:
                if attempt >= self._options.tool_retries:
                    raise ToolFailure(str(error), "transient_network") from error
                self._runtime.models.sleep(
                    self._options.tool_backoff_ms * 2 ** min(attempt, _RETRY_STEPS) / 1000
                )
                attempt += 1

    def _call(self, checked: Checked) -> Outcome:
        name, arguments = checked.call["name"], checked.arguments
        entry = self._toolbox.entries.get(name)
        if entry is None:
            return self._unavailable(name)
        executor = entry.get("executor") or "harn"
        if executor != "harn":
            return self._call_elsewhere(name, executor, entry, arguments)
        if name in FILE_TOOLS and self._runtime.files is not None:
            return Outcome(file_tool(self._runtime.files, name, arguments))
        if name in PLAN_TOOLS:
            return self._plan(checked)
        handler = entry.get("handler")
        if callable(handler):
            return Outcome(self._show(handler(arguments)))
        if self._runtime.host_tool is not None:
            return Outcome(self._show(self._runtime.host_tool(entry, arguments)))
        return self._unavailable(name)

    def _call_elsewhere(self, name: str, executor: str, entry: Dict, arguments: Dict) -> Outcome:
        if executor == "host_bridge" and self._runtime.host_tool is not None:
            return Outcome(self._show(self._runtime.host_tool(entry, arguments)))
        where = {
            "host_bridge": 'executor: "host_bridge", but no host bridge is connected',
            "mcp_server": 'executor: "mcp_server", but no MCP server is connected',
            "provider_native": 'executor: "provider_native": only the model\'s provider runs it',
        }
        return Outcome("", denial=f"Tool '{name}' is declared with {where[executor]}.")

    def _plan(self, checked: Checked) -> Outcome:
        call = checked.call
        pretty = partial(self._conversation.effects.to_json, pretty=True)
        text, event = plan_result(call["name"], checked.arguments, call.get("id"), pretty)
        return Outcome(text, plan=event)

    def _unavailable(self, name: str) -> Outcome:
        return Outcome("", denial=_UNAVAILABLE.format(name))

    # What is told.

    def _refused(self, checked: Checked, refusal: Refusal, id: str) -> Result:
        """The call isn't made: the model, the subscribers and the transcript hear why."""
        call = checked.call
        name = call["name"]
        if refusal.reason is not None:
            self._deny(name, refusal.reason)
        if refusal.category == REJECTED_LOOP:
            self._intervened(name, "skip", refusal.metadata["repeat_count"])
        self._note_execution(checked, refusal.text, True, error_category=refusal.category, **refusal.metadata)
        self._emit(
            "tool_call_update",
            tool_call_id=id,
            tool_name=name,
            status="failed",
            raw_output=None,
            error=refusal.text,
            error_category=refusal.category,
        )
        return Result(call, refusal.text, None)

    def _settle(self, checked: Checked, outcome: Outcome, id: str) -> Result:
        """Steps 12–16."""
        call, name = checked.call, checked.call["name"]
        if outcome.denial is not None:
            reason = f"{outcome.denial} Do not retry this tool."
            self._deny(name, reason)
            text, status = self._denied_text(name, reason), REJECTED
            category: str | None = PERMISSION_DENIED
        else:
            text = self._after(name, checked.arguments, self._short(name, outcome.text))
            status = ERROR if text.startswith(("Error:", "ERROR:")) else OK
            category = (outcome.category or "tool_error") if status == ERROR else None
        self._tell_end(checked, id, text, status, category, outcome.ms)
        if status != REJECTED:
            text = self._compared(name, checked.arguments, text)
        if status == OK:
            self.successful[name] = None
        details = {"error_category": category} if category else {}
        self._note_execution(checked, text, status == REJECTED, outcome.ms, **details)
        self._runtime.models.trace.record(
            "tool_execution",
            tool_name=name,
            tool_use_id=call.get("id"),
            duration_ms=outcome.ms,
            status=status,
            classification=category or status,
            iteration=self._iteration,
        )
        if outcome.plan is not None:
            self._conversation.note(outcome.plan)
            self._emit("plan", plan=outcome.plan["metadata"]["plan"])
        return Result(call, text, status)

    def _tell_end(
        self, checked: Checked, id: str, text: str, status: str, category: str | None, ms: int
    ) -> None:
        name = checked.call["name"]
        executor = (self._toolbox.entries.get(name) or {}).get("executor") or "harn"
        failed = {"error": text, "error_category": category} if status != OK else {"error": None}
        self._emit(
            "tool_call_update",
            tool_call_id=id,
            tool_name=name,
            status="completed" if status == OK else "failed",
            raw_output={"text": text, "tool_use_id": checked.call.get("id")},
            **failed,
            duration_ms=ms,
            execution_duration_ms=ms,
            executor={"kind": _EXECUTORS.get(executor, executor)},
        )

    def _short(self, name: str, text: str) -> str:
        """Step 12: a result that is too long for the conversation, shorter."""
        limit = self._options.tool_output_max_chars
        if len(text) * 4 <= limit or len(text.encode("utf-8", "surrogatepass")) <= limit:
            return text
        compress = self._options.compress_callback
        if compress is not None:
            try:
                squeezed = compress({"tool_name": name, "output": text, "max_chars": limit})
            except Exception as error:
                self._conversation.effects.warn("agent.compress_callback", str(error))
                squeezed = None
            if isinstance(squeezed, str) and squeezed:
                return squeezed
        return microcompact(text, limit)

    def _after(self, name: str, arguments: Dict, text: str) -> str:
        return self._runtime.hooks.after(name, arguments, text)

    def _compared(self, name: str, arguments: Dict, text: str) -> str:
        """Step 15: what is said of a result that came before."""
        found = self._repeats.after(name, arguments, text)
        if found is None:
            return text
        self._intervened(name, found.kind, found.times)
        return found.text

    def _intervened(self, name: str, kind: str, count: int) -> None:
        self._runtime.models.trace.record(
            "loop_intervention", tool_name=name, kind=kind, count=count, iteration=self._iteration
        )

    def _deny(self, name: str, reason: str) -> None:
        self.rejected[name] = None
        self._runtime.models.trace.record(
            "tool_rejected", tool_name=name, reason=reason, iteration=self._iteration
        )

    def _note_execution(
        self, checked: Checked, text: str, rejected: bool, ms: int = 0, **details: Any
    ) -> None:
        call = checked.call
        metadata = {"tool_name": call["name"], "tool_use_id": call.get("id"), "rejected": rejected, **details}
        self._conversation.note(lifecycle_event("tool_execution", text, role="tool", metadata=metadata))
        workflow = self._runtime.ambient().workflow
        if workflow is not None:
            workflow.tool_called(
                ToolCall(call["name"], call.get("id"), checked.arguments, text, rejected, ms, self._iteration)
            )

    def _show(self, value: Any) -> str:
        return self._conversation.effects.show(value)
