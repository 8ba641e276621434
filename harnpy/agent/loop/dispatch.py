"""Making the tool calls of a turn: checked, run and reported, one after the other. Spec: 07 §6.7.

Each call goes through three steps: *check* (`CallChecker`), *run* (`ToolRunner`) and *settle*, which
reports it (`CallReports`). A run of calls that only read is checked and executed at the same time and
settled in order: no subscriber sees a difference.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from harnpy.agent.errors import reason
from harnpy.agent.loop.call_checker import CallChecker
from harnpy.agent.loop.call_reports import CallReports
from harnpy.agent.loop.repeats import Repeats
from harnpy.agent.loop.tool_calls import (
    ERROR,
    OK,
    PERMISSION_DENIED,
    REJECTED,
    REJECTED_LOOP,
    CheckedCall,
    Outcome,
    Result,
    denied_text,
)
from harnpy.agent.loop.tool_runner import ToolRunner
from harnpy.session.resize.microcompact import microcompact
from harnpy.text.json.compact import compact_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.agent.loop.loop_state import LoopState
    from harnpy.agent.loop.options import LoopOptions
    from harnpy.agent.loop.tool_calls import Call
    from harnpy.agent.rules.gate import Gate
    from harnpy.agent.runtime import Runtime
    from harnpy.agent.tools.toolbox import Internal, Toolbox
    from harnpy.session.turns.conversation import Conversation


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
        self._checker = CallChecker(toolbox, gate, self._repeats, conversation.world)
        self._runner = ToolRunner(runtime, options, toolbox, conversation)
        self._reports = CallReports(runtime, state, conversation, emit, toolbox)

    def dispatch(
        self, calls: list[Call], iteration: int, answer: Callable[[Result], None] = lambda result: None
    ) -> list[Result]:
        """Make the calls of a turn, in order. ``answer`` adds each result to the conversation."""
        self._reports.iteration = iteration
        self._reports.answer = answer
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
        run: list[Call] = []
        seen: set[str] = set()
        for call in calls:
            key = compact_json([call["name"], call["arguments"]])
            if key in seen or not self._toolbox.annotations(call["name"]).read_only:
                break
            seen.add(key)
            run.append(call)
        return run if len(run) > 1 else []

    def _check_and_run(self, calls: list[Call]) -> dict[int, CheckedCall]:
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
        try:
            text, good = internal(call)
        except Exception as error:
            if not self._runtime.is_failure(error):
                raise
            text, good = f"Error: {reason(error)}", False
        if good:
            self._state.successful[name] = None
        return Result(call, text, OK if good else ERROR)

    def _make(self, call: Call, id: str, number: int, checked: CheckedCall | None) -> Result:
        self._reports.pending(id, call["name"], call["arguments"])
        checked = checked or self._checker.check(call)
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
        name, category = checked.name, outcome.category
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
            text = self._shortened(name, outcome.text)
            text = self._runtime.hooks.after(name, checked.arguments, text)
            status = ERROR if text.startswith(("Error:", "ERROR:")) else OK
            category = (category or "tool_error") if status == ERROR else None
        if outcome.status is not None:
            self._repeats.recall(name, checked.arguments, text)
        read = text if status == REJECTED or outcome.status else self._compared(checked, text)
        result = self._reports.recorded(checked, outcome, read, status, category)
        self._reports.ended(checked, id, text, status, category, outcome)
        return result

    def _shortened(self, name: str, text: str) -> str:
        """Shorten a result that is too long for the conversation. Step 12."""
        limit = self._options.tool_output_max_chars
        if len(text) * 4 <= limit or len(text.encode("utf-8", "surrogatepass")) <= limit:
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

    def _compared(self, checked: CheckedCall, text: str) -> str:
        """Return what the model reads of a result, which is another text if it came before. Step 15."""
        found = self._repeats.after(checked.name, checked.arguments, text)
        if found is None:
            return text
        self._reports.intervened(checked.name, found.kind, found.times)
        return found.text
