"""A Harn file as an MCP server over the official SDK: its functions as tools, its sessions as resources.

Spec: 07 §14.6, 08 §1, 09 §11.4.
"""

from __future__ import annotations

import asyncio
import os.path
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from harnpy import Vm
from harnpy.agent.people import ESCALATION, QUESTION, HumanCancelled
from harnpy.faults import Fault, TooLarge
from harnpy.formats.dicts import Dict
from harnpy.formats.display import display
from harnpy.formats.json import as_data, to_json
from harnpy.net.admission import CALLER, GONE
from harnpy.serve.functions import functions_of, session_verbs
from harnpy.serve.mcp_tools import CallFailed, Result, Tool, failure
from harnpy.serve.program import NotServed, Program
from harnpy.version import __version__
from harnpy.vm.errors import VmError

Context = ServerRequestContext[Any, Any]

# A program's request to a person as a form that an MCP client shows, and what was filled in as the response.
#
# Spec: 07 §14.6, 09 §11.4.


_TEXT = {"type": "string"}
#: What a field of a form can be; a question about anything else is answered by a text.
_FIELDS = ("string", "number", "integer", "boolean")
_DETAILS = ("detail", "args", "principal", "capabilities_requested")


class Form(NamedTuple):
    """A message, and the schema of what is to be filled in: an object of plain fields."""

    message: str
    schema: dict[str, Any]


def form(request: Dict) -> Form:
    """The form for a request."""
    payload = request["payload"]
    if request["kind"] == QUESTION:
        return Form(payload["prompt"], _fields({"answer": _answer_field(payload)}, "answer"))
    if request["kind"] == ESCALATION:
        message = f"For {payload['role']}: {payload['reason']}"
        return Form(message, _fields({"accepted": _yes_or_no("Accept"), "reason": _reason()}, "accepted"))
    details = [f"{key}: {display(payload[key])}" for key in _DETAILS if payload.get(key)]
    message = "\n".join([f"Approve: {payload.get('action') or 'an action'}", *details])
    fields = {"approved": _yes_or_no("Approve"), "reviewer": _reviewer(request), "reason": _reason()}
    return Form(message, _fields(fields, "approved", "reviewer"))


def response(request: Dict, content: Mapping[str, Any]) -> Dict:
    """The response that a filled-in form comes to. Raises HumanCancelled for a declined escalation."""
    if request["kind"] == ESCALATION and content.get("accepted") is not True:
        raise HumanCancelled("escalation was declined")
    return dict(content)


def _fields(fields: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(required)}


def _answer_field(payload: Dict) -> dict[str, Any]:
    schema, default = payload.get("schema"), payload.get("default")
    field = dict(schema) if isinstance(schema, dict) and schema.get("type") in _FIELDS else dict(_TEXT)
    return field if default is None else {**field, "default": default}


def _yes_or_no(title: str) -> dict[str, Any]:
    return {"type": "boolean", "title": title}


def _reason() -> dict[str, Any]:
    return {**_TEXT, "title": "Reason"}


def _reviewer(request: Dict) -> dict[str, Any]:
    """Return who decides: one of those who may and haven't, or anybody."""
    payload = request["payload"]
    allowed = payload.get("approvers") or payload.get("reviewers") or []
    left = [name for name in allowed if name not in request["approved_by"]]
    return {**_TEXT, "title": "Who decides", **({"enum": left} if left else {})}


# The client that makes a call: it is told how far the call is, and asked what the program asks a person.


class McpCaller:
    """The caller of one request: a client of the handshake, which is asked while the request runs."""

    def __init__(self, context: Context) -> None:
        self._session = context.session
        self._request = context.request_id
        self._sending: list[asyncio.Task[None]] = []

    def report(self, current: float, total: float | None, message: str) -> None:
        sending = self._session.report_progress(current, total, message)
        self._sending.append(asyncio.ensure_future(sending))

    async def sent(self) -> None:
        """Wait until all reports are sent: they must come before the result."""
        await asyncio.gather(*self._sending, return_exceptions=True)

    async def ask(self, request: Dict) -> Dict:
        """Have the client's user fill in a form. Raises HumanCancelled."""
        if not self._session.can_send_request:
            raise HumanCancelled(_CANT_ASK)
        message, schema = self._form(request)
        try:
            filled = await self._session.elicit_form(message, schema, self._request)
        except MCPError as error:
            raise HumanCancelled(f"the MCP client failed to ask its user: {error}") from None
        return _filled_in(request, filled)

    def _form(self, request: Dict) -> Form:
        """Return the form for a request. Raises HumanCancelled for a client that has no forms."""
        able = self._session.client_capabilities
        forms = None if able is None else able.elicitation
        if forms is None or (forms.form is None and forms.url is not None):
            raise HumanCancelled(_CANT_ASK)
        return form(request)


_CANT_ASK = "the MCP client can't ask its user"


def _filled_in(request: Dict, filled: types.ElicitResult) -> Dict:
    if filled.action != "accept":
        raise HumanCancelled("the user declined" if filled.action == "decline" else "the user cancelled")
    return response(request, filled.content or {})


class RoundsCaller(McpCaller):
    """The caller of a request without a handshake, which is asked between rounds: each round is a request of
    its own, and ends with a result or with what is ``asked``."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.asked: dict[str, Form] = {}
        self.has_asked = asyncio.Event()
        self._answers: dict[str, asyncio.Future[types.ElicitResult]] = {}
        self._number = 0

    def come_back(self, context: Context, responses: Mapping[str, object] | None) -> None:
        """Begin another round, with the client's responses. What it left out is asked again."""
        self._session, self._request = context.session, context.request_id
        for key, filled in (responses or {}).items():
            answer = self._answers.get(key)
            if answer is not None and not answer.done() and isinstance(filled, types.ElicitResult):
                answer.set_result(filled)
                del self.asked[key]
        if not self.asked:
            self.has_asked.clear()

    async def ask(self, request: Dict) -> Dict:
        """Raises HumanCancelled."""
        asked = self._form(request)
        self._number += 1
        key = f"question-{self._number}"
        answer = self._answers[key] = asyncio.get_running_loop().create_future()
        self.asked[key] = asked
        self.has_asked.set()
        try:
            return _filled_in(request, await answer)
        finally:
            del self._answers[key]
            self.asked.pop(key, None)

    def requests(self) -> dict[str, Any]:
        """Return what the client is to ask its user before it comes back."""
        return {
            key: types.ElicitRequest(
                params=types.ElicitRequestFormParams(message=message, requested_schema=schema)
            )
            for key, (message, schema) in self.asked.items()
        }


# Calls that wait for their client's user, between the rounds of a request. Spec: 09 §11.4.


#: Seconds that a client may take to come back, and how many calls of one may wait.
_AWAY, _MOST_WAITING = 600.0, 64
#: Turns of the event loop without another question or anything to do for the call, and seconds behind its
#: last question, in which others of the same call are asked along.
_TOGETHER, _COMPUTING = 5, 1.0


class OpenCall(NamedTuple):
    """A call that has begun; ``request`` is what every round of it must repeat."""

    request: tuple[str, Any]
    calling: asyncio.Task[Result]
    caller: RoundsCaller
    client: object

    async def asks(self, gone: asyncio.Future[None] | None, is_busy: Callable[[], bool]) -> bool:
        """Wait until the call has ended, which it has when this returns False, or asks something.

        ``is_busy()``: whether a task of it goes on without being answered.
        """
        asking = asyncio.ensure_future(self.caller.has_asked.wait())
        waited: list[asyncio.Future[Any]] = [self.calling, asking, *([] if gone is None else [gone])]
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not self.calling.done():
                await self._others(is_busy)
        finally:
            asking.cancel()
        if gone is not None and gone.done():
            raise CallFailed("the client has left")
        return not self.calling.done() and bool(self.caller.asked)

    async def _others(self, is_busy: Callable[[], bool]) -> None:
        """Wait for the other questions of the call: tasks that compute come to theirs one after the other."""
        time = asyncio.get_running_loop().time
        known, left, end = len(self.caller.asked), _TOGETHER, time() + _COMPUTING
        while left:
            await asyncio.sleep(0)
            left -= 1
            if len(self.caller.asked) > known:
                known, left, end = len(self.caller.asked), _TOGETHER, time() + _COMPUTING
            elif is_busy() and time() < end:
                left = _TOGETHER


class OpenCalls:
    """The calls whose clients are away, by the state that brings them back; ``token`` makes a new one."""

    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token
        self._calls: dict[str, tuple[OpenCall, asyncio.TimerHandle]] = {}

    def leave(self, call: OpenCall) -> str:
        """Keep a call until its client comes back; one that doesn't ends it. Raises CallFailed."""
        if sum(other.client == call.client for other, _ in self._calls.values()) >= _MOST_WAITING:
            raise CallFailed(f"{_MOST_WAITING} calls of this client wait for its user already")
        state = self._token()
        timer = asyncio.get_running_loop().call_later(_AWAY, self._end, state)
        self._calls[state] = call, timer
        return state

    def take(self, state: str, request: tuple[str, Any], client: object) -> OpenCall:
        """Return the call whose client has come back. Raises MCPError."""
        call, timer = self._calls.get(state, (None, None))
        if call is None or timer is None or (call.request, call.client) != (request, client):
            raise MCPError(code=types.INVALID_PARAMS, message="Unknown request state, or of another request")
        timer.cancel()
        del self._calls[state]
        return call

    def _end(self, state: str) -> None:
        call, _ = self._calls.pop(state)
        call.calling.cancel()


# The live sessions of a served program as MCP resources: listed, read, watched. Spec: 08 §1, 09 §11.4.


_SCHEME = "harn://sessions/"
_JSON = "application/json"


class Sessions:
    """Answers `resources/*`; ``changes`` are published as they are noticed, by `look`."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._sessions = program.vm.sessions
        self.changes = InMemorySubscriptionBus()
        self._seen = self._versions()
        self._publishing: set[asyncio.Task[None]] = set()
        # What a loop does shows while it runs; what other verbs do, when their call has ended.
        self._sessions.observers.append(lambda event: self.look())

    async def list(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        ids = await self._program.do(self._sessions.ids)
        return types.ListResourcesResult(resources=[_listed_resource(id) for id in reversed(ids)])

    async def templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            name="session",
            uri_template=f"{_SCHEME}{{id}}",
            description="A session by its id: its messages, its state and where it comes from.",
            mime_type=_JSON,
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        snapshot = await self._program.do(lambda: self._snapshot(params.uri))
        if snapshot is None:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Resource not found: {params.uri}")
        contents = types.TextResourceContents(uri=params.uri, mime_type=_JSON, text=snapshot)
        return types.ReadResourceResult(contents=[contents])

    def _snapshot(self, uri: str) -> str | None:
        """Return what `agent_session_snapshot` does, as JSON; None when there is no such session."""
        if not uri.startswith(_SCHEME):
            return None
        id = unquote(uri.removeprefix(_SCHEME), errors="surrogatepass")
        snapshot = self._sessions.snapshot_value(id)
        return None if snapshot is None else to_json(as_data(snapshot))

    def look(self) -> None:
        """Publish what has changed since the last look."""
        before, self._seen = self._seen, self._versions()
        if before.keys() != self._seen.keys():
            self._publish(ResourcesListChanged())
        for id in before.keys() | self._seen.keys():
            if before.get(id) != self._seen.get(id):
                self._publish(ResourceUpdated(uri_of(id)))

    def _versions(self) -> dict[str, int]:
        return {id: resident.session.version for id, resident in self._sessions.by_id.items()}

    def _publish(self, event: ServerEvent) -> None:
        publishing = asyncio.ensure_future(self.changes.publish(event))
        self._publishing.add(publishing)
        publishing.add_done_callback(self._publishing.discard)


def uri_of(id: str) -> str:
    """The URI of a session's resource; an id may be any text."""
    return _SCHEME + quote(id, safe="", errors="surrogatepass")


def _listed_resource(id: str) -> types.Resource:
    return types.Resource(name=id, uri=uri_of(id), mime_type=_JSON)


class Tools:
    """Answers `tools/list` and `tools/call`."""

    def __init__(
        self, program: Program, tools: dict[str, Tool], after: Callable[[], object] = lambda: None
    ) -> None:
        """``after`` is called when a call has ended."""
        self._program = program
        self._tools = tools
        self._after = after
        entropy = program.vm.unguarded.entropy
        self._open = OpenCalls(lambda: entropy.bytes(24).hex())

    async def list(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_listed_tool(tool) for tool in self._tools.values()])

    async def call(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name}")
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return await self._round(tool, context, params)
        caller = McpCaller(context)
        calling = partial(self._call, caller, gone_of(context))
        try:
            return _answer(await tool.run(params.arguments or {}, calling))
        except (CallFailed, VmError, Fault, TooLarge) as error:
            return types.CallToolResult(content=[_text(failure(error))], is_error=True)
        finally:
            self._after()
            await caller.sent()

    async def _round(
        self, tool: Tool, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Begin a call, or go on with one whose client comes back; return its result or what it asks."""
        call = self._opened(tool, context, params)
        has_ended = True
        try:
            if await call.asks(gone_of(context), lambda: self._program.is_busy(call.caller)):
                state = self._open.leave(call)
                has_ended = False
                return types.InputRequiredResult(input_requests=call.caller.requests(), request_state=state)
            return _answer(await call.calling)
        except (CallFailed, VmError, Fault, TooLarge) as error:
            return types.CallToolResult(content=[_text(failure(error))], is_error=True)
        finally:
            if has_ended:
                call.calling.cancel()
                self._after()
            await call.caller.sent()

    def _opened(self, tool: Tool, context: Context, params: types.CallToolRequestParams) -> OpenCall:
        request, client = (tool.name, params.arguments or {}), _client_of(context)
        if params.request_state is not None:
            call = self._open.take(params.request_state, request, client)
            call.caller.come_back(context, params.input_responses)
            return call
        caller = RoundsCaller(context)

        async def calling(function: Any, args: Sequence[Any]) -> Any:
            return await self._program.call(function, args, caller)

        running = asyncio.ensure_future(tool.run(params.arguments or {}, calling))
        return OpenCall(request, running, caller, client)

    async def _call(
        self, caller: McpCaller, gone: asyncio.Future[None] | None, function: Any, args: Sequence[Any]
    ) -> Any:
        """Call a function, until the client that would receive the result is gone."""
        calling = asyncio.ensure_future(self._program.call(function, args, caller))
        try:
            await asyncio.wait(
                [calling] if gone is None else [calling, gone], return_when=asyncio.FIRST_COMPLETED
            )
            if not calling.done():
                raise CallFailed("the client has left")
            return calling.result()
        finally:
            calling.cancel()


def _client_of(context: Context) -> object:
    """Return whom a request is from: over HTTP a key or an address."""
    scope: dict[str, object] = getattr(context.request, "scope", {})
    return scope.get(CALLER)


def gone_of(context: Context) -> asyncio.Future[None] | None:
    """Return what is done when the client of an HTTP request has left."""
    scope = getattr(context.request, "scope", {})
    gone: asyncio.Future[None] | None = scope.get(GONE)
    return gone


def server_of(program: Program, tools: dict[str, Tool], with_sessions: bool) -> Server[Any]:
    """A server that offers ``tools`` of a program, and is named like its file."""
    name = os.path.basename(program.library.module.name).removesuffix(".harn")
    if not with_sessions:
        offered = Tools(program, tools)
        return Server(name, version=__version__, on_list_tools=offered.list, on_call_tool=offered.call)
    sessions = Sessions(program)
    offered = Tools(program, tools, sessions.look)
    return Server(
        name,
        version=__version__,
        on_list_tools=offered.list,
        on_call_tool=offered.call,
        on_list_resources=sessions.list,
        on_list_resource_templates=sessions.templates,
        on_read_resource=sessions.read,
        on_subscriptions_listen=ListenHandler(sessions.changes),
    )


def _listed_tool(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description or None,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
    )


def _answer(result: Result) -> types.CallToolResult:
    content = [] if result.text is None else [_text(result.text)]
    if result.structured is None:
        return types.CallToolResult(content=content)
    return types.CallToolResult(content=content, structured_content=result.structured)


def _text(text: str) -> Any:
    return types.TextContent(type="text", text=text)


# Serving one file over one transport, from its opening to its end.


async def serve(
    vm: Vm, file: str, transport: Callable[[Server[Any]], Awaitable[None]], with_sessions: bool = False
) -> None:
    """Offer what ``file`` has to clients that come by ``transport``, until that ends.

    ``with_sessions``: also its live sessions, and the verbs to act on them. Raises OSError, SourceFault and
    VmError for a file that can't be run, NotServed for one without anything to call.
    """
    async with Program(vm, file) as program:
        functions = functions_of(program.library)
        if with_sessions:
            functions = session_verbs(vm) | functions
        if not functions:
            raise NotServed(f"{file} offers nothing: it has no `pub fn` and no `tool`")
        tools = {name: Tool(function) for name, function in functions.items()}
        await transport(server_of(program, tools, with_sessions))
