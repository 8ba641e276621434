"""Running a tool: who runs it, how often it is retried, what its failure becomes. Spec: 07 §6.7 step 11."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.errors import ToolFailure
from harnpy.agent.loop.mcp_calls import McpCalls
from harnpy.agent.loop.shown_output import ShownOutput, in_pieces
from harnpy.agent.loop.tool_calls import ERROR, OK, PERMISSION_DENIED, REJECTED, Outcome
from harnpy.agent.plans import plan_result
from harnpy.agent.tools.served import FILE_TOOLS, PLAN_TOOLS, file_tool
from harnpy.session.errors import ambiguous
from harnpy.session.events import ESCALATION_RETRIED, TOOL_STARTED
from harnpy.text.display import display

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.agent.loop.options import LoopOptions
    from harnpy.agent.loop.tool_calls import CheckedCall
    from harnpy.agent.runtime import Runtime
    from harnpy.agent.tools.toolbox import Toolbox
    from harnpy.reading.dicts import Dict
    from harnpy.session.runtime.recorded import Recalled
    from harnpy.session.turns.conversation import Conversation
    from harnpy.world.host import ToolBridge

_RETRY_STEPS = 5
_UNAVAILABLE = (
    "Tool '{}' is not available in the current environment. "
    "Use only the tools listed in the tool-calling contract."
)
#: What the error category of a tool's failure is called in events. Spec: 07 §9.2.
_EVENT_CATEGORIES = {
    "timeout": "timeout",
    "rate_limit": "network",
    "overloaded": "network",
    "server_error": "network",
    "transient_network": "network",
    "schema_validation": "schema_validation",
    "tool_error": "tool_error",
    "mcp_server_error": "mcp_server_error",
    "cancelled": "cancelled",
    "tool_rejected": PERMISSION_DENIED,
}


class ToolRunner:
    """Runs the tools of one loop."""

    def __init__(
        self, runtime: Runtime, options: LoopOptions, toolbox: Toolbox, conversation: Conversation
    ) -> None:
        self._runtime = runtime
        self._options = options
        self._toolbox = toolbox
        self._conversation = conversation
        self._world = conversation.world
        self._servers = McpCalls(runtime, toolbox.clients)

    def run(self, checked: CheckedCall, told: Callable[[Dict], None] | None = None) -> Outcome:
        """Run the tool, in a span while spans are recorded. Whatever goes wrong becomes a text.

        ``told`` gets what a tool of an MCP server reports of its progress. A tool that an earlier run of the
        turn has run isn't run again.
        """
        known = self._conversation.recall(TOOL_STARTED, tool=checked.name, id=checked.call.get("id"))
        if known is not None:
            outcome = self._known(checked, known)
            if outcome is not None:
                return outcome
        spans = self._runtime.models.spans()
        if spans is None:
            return self._outcome(checked, told)
        span, rejected = spans.begin("tool_call", checked.name), True
        try:
            outcome = self._outcome(checked, told)
            rejected = outcome.denial is not None
        finally:
            spans.end(span, is_rejected=rejected)
        return outcome

    def _known(self, checked: CheckedCall, known: Recalled) -> Outcome | None:
        """Return what a call came to before; None if it is to be made again. Spec: 10 §A1.13, §C7.2."""
        if known.end is not None:
            return _recorded(known.end.data)
        policy = (self._toolbox.entries.get(checked.name) or {}).get("on_ambiguous", "error")
        if policy == "retry":
            return None
        if policy == "ask" and self._runtime.ask is not None:
            refusal = self._runtime.ask(checked.name, checked.arguments)
            return None if refusal is None else Outcome(f"Error: {refusal}", category="tool_error")
        return Outcome(f"Error: {ambiguous(known.begin.data['idempotency_key'])}", category="tool_error")

    def _outcome(self, checked: CheckedCall, told: Callable[[Dict], None] | None) -> Outcome:
        clock = self._world.clock.monotonic
        begin = clock()
        context = self._runtime.context()
        try:
            with context.govern(context.rules.following(checked.leads)):
                outcome = self._attempts(checked, told)
        except ToolFailure as error:
            if error.category == "tool_rejected":
                outcome = Outcome("", denial=error.text)
            else:
                category = _EVENT_CATEGORIES.get(error.category or "tool_error", "host_bridge_error")
                outcome = Outcome(f"Error: {error.text}", category=category)
        return outcome._replace(ms=int((clock() - begin) * 1000))

    def _attempts(self, checked: CheckedCall, told: Callable[[Dict], None] | None) -> Outcome:
        """Call the tool. A host tool that can't be reached is retried as the options say."""
        attempt = 0
        while True:
            try:
                return self._call(checked, told)
            except ConnectionError as error:
                if attempt >= self._options.tool_retries:
                    raise ToolFailure(str(error), "transient_network") from error
                pause_ms = self._options.tool_backoff_ms * 2 ** min(attempt, _RETRY_STEPS)
                attempt += 1
                self._note_retry(checked.name, attempt, str(error))
                self._runtime.tasks.sleep(pause_ms / 1000)

    def _note_retry(self, tool: str, attempt: int, error: str) -> None:
        agent = self._conversation.agent
        retry = {"agent_id": agent, "scope": "tool", "target": tool, "attempt": attempt, "error": error}
        self._conversation.fact(ESCALATION_RETRIED, retry)
        self._conversation.store()

    def _call(self, checked: CheckedCall, told: Callable[[Dict], None] | None) -> Outcome:
        name, arguments = checked.name, checked.arguments
        entry = self._toolbox.entries.get(name)
        if entry is None:
            return _unavailable(name)
        executor = self._toolbox.executor(name)
        if executor != "harn":
            return self._call_elsewhere(checked, executor, entry, told)
        if name in FILE_TOOLS:
            return Outcome(self._file_tool(name, arguments))
        if name in PLAN_TOOLS:
            return self._plan(checked)
        handler = entry.get("handler")
        if callable(handler):
            return Outcome(self._text(checked, handler(arguments)))
        if self._world.host.bridge is not None:
            return self._call_host(self._world.host.bridge, entry, checked)
        return _unavailable(name)

    def _text(self, checked: CheckedCall, result: Any) -> str:
        """Return a tool's result as text; one that comes in pieces is shown while it comes."""
        if type(result) is str:
            return result
        pieces = in_pieces(result, self._runtime.tasks)
        return display(result) if pieces is None else ShownOutput(self._conversation, checked).read(pieces)

    def _file_tool(self, name: str, arguments: Dict) -> str:
        """Return what a file tool shows. Raises `ToolFailure` where the rules don't allow it."""
        try:
            return file_tool(self._world.files, self._runtime.workplace, name, arguments)
        except Exception as error:
            if not self._runtime.is_failure(error):
                raise
            text = getattr(error, "text", None) or str(error)
            raise ToolFailure(text, getattr(error, "category", None)) from error

    def _call_elsewhere(
        self, checked: CheckedCall, executor: str, entry: Dict, told: Callable[[Dict], None] | None
    ) -> Outcome:
        if executor == "host_bridge" and self._world.host.bridge is not None:
            return self._call_host(self._world.host.bridge, entry, checked)
        if executor == "mcp_server" and self._servers.knows(entry):
            return Outcome(self._servers.call(entry, checked.arguments, told))
        where = {
            "host_bridge": 'executor: "host_bridge", but no host bridge is connected',
            "mcp_server": 'executor: "mcp_server", but its MCP server is neither connected nor declared',
            "provider_native": 'executor: "provider_native": only the model\'s provider runs it',
        }
        return Outcome("", denial=f"Tool '{checked.name}' is declared with {where[executor]}.")

    def _call_host(self, bridge: ToolBridge, entry: Dict, checked: CheckedCall) -> Outcome:
        result = bridge.call(entry["name"], checked.arguments)
        if hasattr(result, "__await__"):
            result = self._runtime.tasks.wait(result)
        return Outcome(self._text(checked, result))

    def _plan(self, checked: CheckedCall) -> Outcome:
        text, event = plan_result(checked.name, checked.arguments, checked.call.get("id"))
        return Outcome(text, plan=event)


def _recorded(end: Dict) -> Outcome:
    """Return the outcome that a ``tool_completed`` tells of."""
    category = end.get("error_category")
    status = REJECTED if end.get("rejected") else OK if category is None else ERROR
    text = end["output"] if category is None else end["error"]
    return Outcome(text, end.get("duration_ms", 0), category, status=status)


def _unavailable(name: str) -> Outcome:
    return Outcome("", denial=_UNAVAILABLE.format(name))
