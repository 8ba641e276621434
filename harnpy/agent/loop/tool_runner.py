"""Running a tool: who runs it, how often it is retried, what its failure becomes. Spec: 07 §6.7, §15.1.

The shapes that a call takes on its way are defined here too: checked, refused or run, and what the model
reads of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy import telemetry
from harnpy.agent.plans import plan_result
from harnpy.agent.tool_registry import RUNTIME_SERVED, ToolFailure
from harnpy.agent.toolbox import FILE_TOOLS, PLAN_TOOLS, file_tool
from harnpy.faults import Fault
from harnpy.formats.display import display
from harnpy.formats.json import pretty_json
from harnpy.llm.request_messages import has_media, result_text
from harnpy.mcp.server_spec import ToolError
from harnpy.session.errors import ambiguous
from harnpy.session.events import ESCALATION_RETRIED, TOOL_OUTPUT_DELTA, TOOL_STARTED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harnpy.agent.loop.loop_settings import LoopOptions
    from harnpy.agent.rules.policy_paths import Lead
    from harnpy.agent.runtime import Runtime
    from harnpy.agent.tasks import Tasks
    from harnpy.agent.toolbox import Toolbox
    from harnpy.formats.dicts import Dict
    from harnpy.mcp.client import Client
    from harnpy.mcp.connection import Progress
    from harnpy.mcp.tool_results import ToolAnswer
    from harnpy.session.conversation import Conversation
    from harnpy.session.transaction import RecordedCall
    from harnpy.world.host import ToolBridge

Call = dict[str, Any]

OK, ERROR, REJECTED = "ok", "error", "rejected"
PERMISSION_DENIED = "permission_denied"
REJECTED_LOOP = "rejected_loop"


class Rejection(NamedTuple):
    """The refusal of a call. ``reason`` is that of a denial; ``metadata`` adds to its transcript event."""

    text: str
    category: str
    reason: str | None = None
    metadata: Dict = {}  # noqa: RUF012


class Outcome(NamedTuple):
    """The outcome of a call that was made; a tool that can't be called at all has a ``denial``.

    ``status``: it is known how the call ended, and ``text`` is what the model reads. ``blocks`` are the texts
    and images of a result that has images; ``text`` has words in their place.
    """

    text: str
    ms: int = 0
    category: str | None = None
    denial: str | None = None
    plan: Dict | None = None
    status: str | None = None
    blocks: Sequence[Dict] = ()


class Result(NamedTuple):
    """The result of a call as the model reads it. ``status`` is None when the call wasn't made.

    ``blocks``: as `Outcome` has them.
    """

    call: Call
    text: str
    status: str | None
    blocks: Sequence[Dict] = ()

    @property
    def content(self) -> str | list[Dict]:
        return list(self.blocks) or self.text


@dataclass(slots=True)
class CheckedCall:
    """A call with the arguments that it is made with, or why it isn't made."""

    name: str
    call: Call
    arguments: Dict
    rejection: Rejection | None = None
    notes: Sequence[Dict] = ()
    outcome: Outcome | None = None
    leads: Sequence[Lead] = ()


def denied_text(name: str, reason: str) -> str:
    """Return what the model reads of a denied call."""
    return pretty_json({"error": PERMISSION_DENIED, "reason": reason, "tool": name})


# Calling the tools of MCP servers: those of the loop, and the ones that the project declares.
#
# Spec: 07 §6.7 step 11, §15.1.


class McpCalls:
    """``clients`` are the loop's own, by server."""

    def __init__(self, runtime: Runtime, clients: Mapping[str, Client]) -> None:
        self._runtime = runtime
        self._clients = clients

    def knows(self, entry: Dict) -> bool:
        """Return True if there is a server for a tool."""
        server = server_of(entry)
        return server in self._clients or self._runtime.servers().declared(server) is not None

    def call(self, entry: Dict, arguments: Dict, told: Callable[[Dict], None] | None) -> Outcome:
        """Return what a tool answers; ``told`` gets what it reports of its progress.

        Raises `ToolFailure`.
        """
        try:
            blocks = self._result(entry, arguments, told).blocks
        except Exception as error:
            if not self._runtime.is_failure(error):
                raise
            raise ToolFailure(_text(error), _category(error)) from error
        text = result_text(blocks) if blocks else display(None)
        return Outcome(text, blocks=blocks if has_media(blocks) else ())

    def _result(self, entry: Dict, arguments: Dict, told: Callable[[Dict], None] | None) -> ToolAnswer:
        wait, answer = self._runtime.tasks.wait, partial(self._answer, entry, arguments)
        found: ToolAnswer
        if told is None:
            found = wait(answer())
            return found
        from harnpy.mcp.connection import ReportedCall  # asyncio comes with it

        call = ReportedCall(answer)
        try:
            while (report := wait(call.report())) is not None:
                told(report)
            found = wait(call.result())
            return found
        finally:
            call.stop()

    async def _answer(self, entry: Dict, arguments: Dict, progress: Progress | None = None) -> ToolAnswer:
        server, tool = server_of(entry), entry.get("_mcp_tool_name") or entry["name"]
        if server in self._clients:
            return await self._clients[server].answer(tool, arguments, progress)
        servers = self._runtime.servers()
        client = await servers.ensure_active(server)
        try:
            return await client.answer(tool, arguments, progress)
        finally:
            await servers.release(server)


def server_of(entry: Dict) -> str:
    """Return the name of the server that has a tool."""
    return str(entry.get("mcp_server") or entry.get("_mcp_server") or "")


def _text(error: Exception) -> str:
    return getattr(error, "text", None) or str(error)


def _category(error: Exception) -> str:
    """Return the category of a failure: of the tool, something that has a name, or the server."""
    if isinstance(error, ToolError):
        return "tool_error"
    return getattr(error, "category", None) or "mcp_server_error"


# What a tool shows while it runs: the pieces of its result, as they come.
#
# Spec: 07 §6.7 step 11, 10 §C16.1.


#: Seconds between two pieces that are stored: at most four a second.
_PAUSE = 0.25


def in_pieces(result: Any, tasks: Tasks) -> Iterator[Any] | None:
    """Return the pieces of a result that comes in pieces: an iterator, asynchronous or not; else None."""
    if isinstance(result, Iterator):
        return result
    return _awaited(result, tasks) if isinstance(result, AsyncIterator) else None


def _awaited(pieces: AsyncIterator[Any], tasks: Tasks) -> Iterator[Any]:
    while True:
        try:
            piece = tasks.wait(pieces.__anext__())
        except StopAsyncIteration:
            return
        yield piece


class ShownOutput:
    """The output of one call. What the log doesn't have yet when it ends is in the call's own end."""

    def __init__(self, conversation: Conversation, checked: CheckedCall) -> None:
        self._conversation = conversation
        self._tool, self._id = checked.name, checked.call.get("id")
        self._clock = conversation.world.clock.monotonic

    def read(self, pieces: Iterator[Any]) -> str:
        """Return the whole text."""
        texts: list[str] = []
        stored, due = 0, self._clock()
        for piece in pieces:
            texts.append(display(piece))
            now = self._clock()
            if now >= due:
                self._store("".join(texts[stored:]))
                stored, due = len(texts), now + _PAUSE
        return "".join(texts)

    def _store(self, delta: str) -> None:
        if delta:
            shown = {"tool": self._tool, "id": self._id, "delta": delta}
            self._conversation.fact(TOOL_OUTPUT_DELTA, shown)
            self._conversation.store()


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
        known = self._conversation.recorded_call(TOOL_STARTED, tool=checked.name, id=checked.call.get("id"))
        if known is not None:
            outcome = self._known(checked, known)
            if outcome is not None:
                return outcome
        if self._runtime.calling is None:
            return self._spanned(checked, told)
        entry = self._toolbox.entries.get(checked.name) or {}
        is_own = checked.name in (*FILE_TOOLS, *PLAN_TOOLS) and not callable(entry.get("handler"))
        with self._runtime.calling(
            checked.name, entry.get("on_ambiguous") or ("retry" if is_own else "error")
        ):
            return self._spanned(checked, told)

    def _spanned(self, checked: CheckedCall, told: Callable[[Dict], None] | None) -> Outcome:
        with telemetry.tool_span(checked.name, checked.call.get("id")) as span:
            outcome = self._noted(checked, told)
            failed = "tool_rejected" if outcome.denial is not None else outcome.category
            if failed is not None:
                span.fail(failed)
        return outcome

    def _noted(self, checked: CheckedCall, told: Callable[[Dict], None] | None) -> Outcome:
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

    def _known(self, checked: CheckedCall, known: RecordedCall) -> Outcome | None:
        """Return what a call came to before; None if it is to be made again. Spec: 10 §A1.13, §C7.2."""
        if known.end is not None:
            return _recorded(known.end.data)
        entry = self._toolbox.entries.get(checked.name) or {}
        # The runtime's own tools only read, or come to the same again.
        is_own = checked.name in RUNTIME_SERVED and not callable(entry.get("handler"))
        policy = entry.get("on_ambiguous") or ("retry" if is_own else "error")
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
            return self._servers.call(entry, checked.arguments, told)
        where = {
            "host_bridge": 'executor: "host_bridge", but no host bridge is connected',
            "mcp_server": 'executor: "mcp_server", but its MCP server is neither connected nor declared',
            "provider_native": 'executor: "provider_native": only the model\'s provider runs it',
        }
        return Outcome("", denial=f"Tool '{checked.name}' is declared with {where[executor]}.")

    def _call_host(self, bridge: ToolBridge, entry: Dict, checked: CheckedCall) -> Outcome:
        try:
            result = bridge.call(entry["name"], checked.arguments)
            if hasattr(result, "__await__"):
                result = self._runtime.tasks.wait(result)
        except (ConnectionError, Fault, ToolFailure):
            raise
        except Exception as error:
            if self._runtime.is_failure(error):
                raise
            raise ToolFailure(f"{type(error).__name__}: {error}", "tool_error") from error
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
