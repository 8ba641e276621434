"""Making the tool calls of a turn: checked, run and reported, one after the other. Spec: 07 §6.7.

Each call goes through three steps: *check* (`CallChecker`), *run* (`ToolRunner`) and *settle*, which reports
it (`CallReports`). A run of calls that only read is checked and executed at the same time and settled in
order: no subscriber sees a difference.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent.context import ToolCall
from harnpy.agent.loop.tool_runner import (
    ERROR,
    OK,
    PERMISSION_DENIED,
    REJECTED,
    REJECTED_LOOP,
    CheckedCall,
    Outcome,
    Rejection,
    Result,
    ToolRunner,
    denied_text,
    server_of,
)
from harnpy.agent.tool_registry import failure_reason
from harnpy.agent.toolbox import FILE_ALIASES
from harnpy.faults import paced
from harnpy.formats.dicts import Dict
from harnpy.formats.display import display
from harnpy.formats.json import compact_json
from harnpy.formats.text_size import fits
from harnpy.llm.native_tools import parameters_of
from harnpy.session.events import TOOL_COMPLETED
from harnpy.session.strategies import microcompact

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harnpy.agent.loop.completion import LoopState
    from harnpy.agent.loop.loop_settings import LoopOptions
    from harnpy.agent.loop.tool_runner import Call
    from harnpy.agent.rules.gate import Gate
    from harnpy.agent.runtime import Runtime
    from harnpy.agent.toolbox import Internal, Toolbox
    from harnpy.session.conversation import Conversation
    from harnpy.world import World

# The arguments of a tool call, as the tool expects them. Spec: 07 §6.7.


_WHOLE = re.compile(r"[ \t]*[+-]?\d{1,18}[ \t]*")
_COUNTS = frozenset(
    "range_start range_end offset limit timeout line start_line end_line count".split(),
)

#: A provider reports unreadable arguments under this key.
PARSE_ERROR = "__parse_error"


def normalised_arguments(arguments: Any, aliases: Mapping[str, str] | None = None) -> Dict:
    """Rename aliased keys, and convert texts that stand for counts to ints.

    ``aliases`` maps names that the model may use to the tool's own, which take precedence.
    """
    if not isinstance(arguments, dict):
        return {}
    if aliases:
        renamed = {aliases.get(key, key): value for key, value in arguments.items() if key in aliases}
        arguments = renamed | {key: value for key, value in arguments.items() if key not in aliases}
    return {key: _value(key, value) for key, value in arguments.items()}


def _value(key: str, value: Any) -> Any:
    if isinstance(value, str):
        return int(value) if key in _COUNTS and _WHOLE.fullmatch(value) else value
    if isinstance(value, dict):
        return {name: _value(name, item) for name, item in paced([*value.items()])}
    if isinstance(value, list):
        return [_value("", item) for item in paced(value)]
    return value


def missing_arguments(entry: Dict, arguments: Dict) -> list[str]:
    """Return the names of the required parameters that a call leaves out."""
    parameters = parameters_of(entry).items()
    return sorted(name for name, schema in parameters if arguments.get(name) is None and _is_required(schema))


def _is_required(schema: Any) -> bool:
    return not isinstance(schema, dict) or (schema.get("required") is not False and "default" not in schema)


# Detecting a model that repeats the same call. Spec: 07 §6.7 steps 10 and 15.


_WARNED, _BLOCKED = "[LOOP DETECTED]", "BLOCKED:"


class Intervention(NamedTuple):
    """``kind`` is ``warn``, ``block`` or ``skip``; ``text`` is what the model reads."""

    kind: str
    times: int
    text: str


class Repeats:
    """Counts how often in a row each call, with its arguments, returned the same result."""

    def __init__(self, options: LoopOptions) -> None:
        self._warn = options.loop_detect_warn
        self._block = options.loop_detect_block
        self._skip = options.loop_detect_skip
        self._seen: dict[tuple[str, str], tuple[int, str]] = {}

    def before(self, name: str, arguments: Dict) -> Intervention | None:
        """Return why the call must not be made again, if so; that counts as a repetition."""
        if not self._warn or not self._seen:
            return None
        key = (name, compact_json(arguments))
        count, result = self._seen.get(key, (0, ""))
        if not count or count + 1 < self._skip:
            return None
        self._seen[key] = (count + 1, result)
        text = (
            f"{_BLOCKED} {name}() was NOT executed (repeated {count + 1} times identically). This call will "
            "not be executed again with these arguments. You MUST change your approach NOW."
        )
        return Intervention("skip", count + 1, text)

    def recall(self, name: str, arguments: Dict, shown: str) -> None:
        """Count a call that an earlier run of the turn has made; ``shown`` is what the model read of it."""
        key = (name, compact_json(arguments))
        count, previous = self._seen.get(key, (0, ""))
        is_repeated = shown == previous or shown.startswith((f"{previous}\n{_WARNED}", _BLOCKED))
        self._seen[key] = (count + 1, previous) if count and is_repeated else (1, shown)

    def after(
        self, name: str, arguments: Dict, result: str, blocks: Sequence[Dict] = ()
    ) -> Intervention | None:
        """Return what to show instead of a repeated result; ``blocks`` are part of it."""
        if not self._warn:
            return None
        key = (name, compact_json(arguments))
        count, previous = self._seen.get(key, (0, ""))
        seen = f"{result}\n{compact_json(blocks)}" if blocks else result
        count = count + 1 if count and previous == seen else 1
        self._seen[key] = (count, seen)
        if count >= self._block:
            text = (
                f"{_BLOCKED} {name}() has failed {count} times identically. "
                "You MUST use a different approach. "
                "Pick a different available tool or change your parameters."
            )
            return Intervention("block", count, text)
        if count >= self._warn:
            first = result.partition("\n")[0]
            text = (
                f"{result}\n{_WARNED} This exact {name}() call has produced the same result {count} "
                f'times. The result says: "{first}". Try a DIFFERENT tool or DIFFERENT parameters.'
            )
            return Intervention("warn", count, text)
        return None


# Whether a tool call may be made: permitted, complete, not a repetition. Spec: 07 §6.7 steps 3–8 and 10.


class CallChecker:
    """The checks of one loop's calls."""

    def __init__(self, toolbox: Toolbox, gate: Gate, repeats: Repeats, world: World) -> None:
        self._toolbox = toolbox
        self._gate = gate
        self._repeats = repeats
        self._world = world

    def check(self, call: Call) -> CheckedCall:
        name, given = call["name"], call["arguments"]
        if isinstance(given, dict) and PARSE_ERROR in given:
            text = f"ERROR: {display(given[PARSE_ERROR])}"
            return CheckedCall(name, call, given, Rejection(text, "schema_validation"))
        aliases = {**FILE_ALIASES.get(name, {}), **self._toolbox.annotations(name).arg_aliases}
        arguments = normalised_arguments(given, aliases)
        decision = self._gate.decide(name, arguments, call.get("id"))
        checked = CheckedCall(name, call, decision.arguments, notes=decision.notes, leads=decision.leads)
        if decision.reason is not None:
            text = denied_text(name, decision.reason)
            checked.rejection = Rejection(text, PERMISSION_DENIED, decision.reason, decision.metadata)
        else:
            checked.rejection = self._incomplete(checked) or self._repeated(checked)
        return checked

    def _incomplete(self, checked: CheckedCall) -> Rejection | None:
        entry = self._toolbox.entries.get(checked.name)
        absent = [] if entry is None else missing_arguments(entry, checked.arguments)
        if not absent:
            return None
        text = (
            f"ERROR: Tool '{checked.name}' is missing required parameter(s): {', '.join(absent)}. "
            "Provide all required parameters and try again."
        )
        metadata: Dict = {"arguments": checked.arguments}
        return Rejection(text, "schema_validation", metadata=metadata)

    def _repeated(self, checked: CheckedCall) -> Rejection | None:
        found = self._repeats.before(checked.name, checked.arguments)
        if found is None:
            return None
        skipped = {"loop_skipped": True, "repeat_count": found.times}
        return Rejection(found.text, REJECTED_LOOP, metadata=skipped)


# How a loop's tool calls are reported: to the log, to subscribers, the trace and the workflow's record.
#
# A call's end is in the log, with its result, before anyone hears of it. Spec: 07 §6.7, 08 §1.7, 10 §C16.1.


_EXECUTORS = {"harn": "harn_builtin"}


def _unheard(result: Result) -> None:
    """Where nobody wants a call's result at once."""


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
        self.answer: Callable[[Result], None] = _unheard
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
        self,
        checked: CheckedCall,
        outcome: Outcome,
        text: str,
        status: str,
        category: str | None,
        blocks: Sequence[Dict] = (),
    ) -> Result:
        """Record a call that was made; ``text``, or ``blocks``, is what the model reads."""
        if status == OK:
            self._state.successful[checked.name] = None
        result = Result(checked.call, text, status, blocks)
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


class Dispatcher:
    """The calls of one loop. ``emit(type, **fields)`` notifies subscribers."""

    def __init__(
        self,
        runtime: Runtime,
        state: LoopState,
        options: LoopOptions,
        conversation: Conversation,
        emit: Callable[..., None],
        toolbox: Toolbox,
        gate: Gate,
    ) -> None:
        self._runtime = runtime
        self._state = state
        self._options = options
        self._toolbox = toolbox
        self._world = conversation.world
        self._conversation = conversation
        self._repeats = Repeats(options)
        self._gate = gate
        self._checker = CallChecker(toolbox, gate, self._repeats, conversation.world)
        self._runner = ToolRunner(runtime, options, toolbox, conversation)
        self._reports = CallReports(runtime, state, conversation, emit, toolbox)

    def dispatch(
        self, calls: list[Call], iteration: int, answer: Callable[[Result], None] = _unheard
    ) -> list[Result]:
        """Make the calls of a turn, in order. ``answer`` adds each result to the conversation."""
        self._reports.iteration = iteration
        self._reports.answer = answer
        if self._gate.has_functions:
            self._conversation.store()  # they may look at the answer
        try:
            return self._made(calls, iteration, answer)
        finally:
            self._reports.answer = _unheard  # it refers to who has the calls made

    def _made(self, calls: list[Call], iteration: int, answer: Callable[[Result], None]) -> list[Result]:
        together = self._check_and_run(self._reading_run(calls))
        results = []
        for number, call in enumerate(calls):
            internal = self._toolbox.internal.get(call["name"])
            if internal is not None:
                results.append(self._answer(call, internal))
                answer(results[-1])
            else:
                id = f"tool-{call['id']}" if call.get("id") else f"tool-iter-{iteration}-{number}"
                results.append(self._make(call, id, number, together.get(number)))
        return results

    # A run of calls that only read.

    def _reading_run(self, calls: list[Call]) -> list[Call]:
        """Return the leading calls that only read, each of them once; [] if there is nothing to gain."""
        if len(calls) < 2:
            return []
        run: list[Call] = []
        seen: set[str] = set()
        for call in calls:
            if not self._toolbox.annotations(call["name"]).read_only:
                break
            key = compact_json([call["name"], call["arguments"]])
            if key in seen:
                break
            seen.add(key)
            run.append(call)
        return run if len(run) > 1 else []

    def _check_and_run(self, calls: list[Call]) -> dict[int, CheckedCall]:
        if not calls:
            return {}
        checked = [self._checker.check(call) for call in calls]
        allowed = [item for item in checked if item.rejection is None]
        for number, item in enumerate(checked):
            if item.rejection is None:
                self._reports.started(item, number, parallel=True)
        self._conversation.store()
        outcomes = self._runtime.tasks.together([partial(self._runner.run, item) for item in allowed])
        for item, outcome in zip(allowed, outcomes, strict=True):
            item.outcome = outcome
        return dict(enumerate(checked))

    # One call.

    def _answer(self, call: Call, internal: Internal) -> Result:
        """Answer a call that the loop handles itself: no policy, no hook, no tool events."""
        name = call["name"]
        self._state.calls.append(name)
        self._conversation.store()
        try:
            text, good = internal(call)
        except Exception as error:
            if not self._runtime.is_failure(error):
                raise
            text, good = f"Error: {failure_reason(error)}", False
        if good:
            self._state.successful[name] = None
        return Result(call, text, OK if good else ERROR)

    def _make(self, call: Call, id: str, number: int, checked: CheckedCall | None) -> Result:
        self._reports.pending(id, call["name"], call["arguments"])
        checked = self._checker.check(call) if checked is None else checked
        for note in checked.notes:
            self._conversation.note(note)
        rejection = checked.rejection
        if rejection is not None:
            if rejection.category == REJECTED_LOOP:
                self._reports.started(checked, number)  # the repetition is only noticed after step 9
                self._reports.begun(checked, id)
            return self._reports.refused(checked, rejection, id)
        if checked.outcome is None:
            self._reports.started(checked, number)
            self._conversation.store()
        self._reports.begun(checked, id)
        outcome = checked.outcome or self._runner.run(checked, partial(self._reports.progressed, checked, id))
        return self._settle(checked, outcome, id)

    def _settle(self, checked: CheckedCall, outcome: Outcome, id: str) -> Result:
        """Steps 12–16."""
        name, category, shortened = checked.name, outcome.category, outcome.text
        if outcome.status is not None:
            text, status = outcome.text, outcome.status
            if status == REJECTED:
                self._reports.denied(name, text)
        elif outcome.denial is not None:
            reason = f"{outcome.denial} Do not retry this tool."
            self._reports.denied(name, reason)
            text = denied_text(name, reason)
            status, category = REJECTED, PERMISSION_DENIED
        else:
            shortened = self._shortened(name, outcome.text)
            hooks = self._runtime.hooks
            text = hooks.after(name, checked.arguments, shortened) if hooks else shortened
            status = ERROR if text.startswith(("Error:", "ERROR:")) else OK
            category = (category or "tool_error") if status == ERROR else None
        if outcome.status is not None:
            self._repeats.recall(name, checked.arguments, text)
        blocks = _shown(outcome, shortened, text) if outcome.blocks else ()
        read = text if status == REJECTED or outcome.status else self._compared(checked, text, blocks)
        blocks = blocks if read == text else ()
        result = self._reports.recorded(checked, outcome, read, status, category, blocks)
        self._reports.ended(checked, id, text, status, category, outcome)
        return result

    def _shortened(self, name: str, text: str) -> str:
        """Shorten a result that is too long for the conversation. Step 12."""
        limit = self._options.tool_output_max_chars
        if fits(text, limit):
            return text
        compress = self._options.compress_callback
        if compress is not None:
            try:
                squeezed = compress({"tool_name": name, "output": text, "max_chars": limit})
            except Exception as error:
                self._world.warn("agent.compress_callback", str(error))
                squeezed = None
            if isinstance(squeezed, str) and squeezed:
                return squeezed
        return microcompact(text, limit)

    def _compared(self, checked: CheckedCall, text: str, blocks: Sequence[Dict]) -> str:
        """Return what the model reads of a result, which is another text if it came before. Step 15."""
        found = self._repeats.after(checked.name, checked.arguments, text, blocks)
        if found is None:
            return text
        self._reports.intervened(checked.name, found.kind, found.times)
        return found.text


def _shown(outcome: Outcome, shortened: str, text: str) -> list[Dict]:
    """Return the blocks of a result that the model reads. A hook that replaces the text replaces the images
    with it; a text that was too long is in front of them."""
    if text != shortened:
        return []
    if shortened == outcome.text:
        return list(outcome.blocks)
    return [{"type": "text", "text": text}, *(each for each in outcome.blocks if each["type"] != "text")]
