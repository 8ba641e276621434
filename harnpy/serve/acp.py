"""An agent for editors: sessions of a store in the Agent Client Protocol, over the official SDK. Spec: 11 §4.

The SDK starts a task for each message and leaves the order to us: a session's updates go through its
`Outbox`, a turn is noted before anything is awaited, and an answer waits for the updates before it. What the
SDK would take for wrong parameters, an error of pydantic's, never leaves a method of ours.
"""

from __future__ import annotations

import asyncio
import json
import os.path
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, BinaryIO, Final, ParamSpec, TypeVar, cast

from acp import PROTOCOL_VERSION, RequestError, schema
from acp.agent.connection import AgentSideConnection

from harnpy.formats.json import JsonError, parse_json
from harnpy.mcp.server_spec import HTTP, ServerSpec
from harnpy.serve.acp_tools import ClientServers
from harnpy.serve.acp_updates import Following, Outbox, Updates, content_of
from harnpy.serve.lines import Lines, LineWriter
from harnpy.serve.mcp_tools import failure
from harnpy.session.actions import WriteMetadata
from harnpy.session.errors import InvalidArgument, SessionNotFound
from harnpy.session.guards import ALLOW, DENY, ApprovalGate, InputGate
from harnpy.session.registers import DELETED
from harnpy.session.runtime import SessionQuery
from harnpy.storage.contract import position
from harnpy.storage.errors import StorageError
from harnpy.version import __version__

if TYPE_CHECKING:
    from acp.interfaces import Client

    from harnpy.serve.agents import Agents
    from harnpy.session.agents import TurnResult
    from harnpy.session.aio import AsyncSession, AsyncSessionRuntime
    from harnpy.session.guards import ApprovalRequest
    from harnpy.session.info import SessionInfo
    from harnpy.world import World

P = ParamSpec("P")
R = TypeVar("R")

_NOT_FOUND: Final = -32002
_INVALID_REQUEST: Final = -32600
_INVALID_PARAMS: Final = -32602
_INTERNAL: Final = -32603
_PARSE_ERROR: Final = -32700

#: Seconds that a client which has closed its end leaves for what it has asked already.
_GRACE: Final = 1.0
#: How many sessions a page of `session/list` has.
_PAGE: Final = 50
#: Events that may wait for their updates: more than a turn has, as none may be left out.
_ENOUGH: Final = 1_000_000
#: How much of a session's first prompt is its title.
_TITLE: Final = 80

# Messages as lines.


class Stdio:
    """The two streams of a client, as a transport of the SDK: what is no message is answered here."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO) -> None:
        self._lines = Lines(reader)
        self._writer = LineWriter(writer)
        self._is_gone = False
        #: The requests that have no answer yet.
        self._due: set[str] = set()
        self._paid = asyncio.Event()

    async def send(self, message: dict[str, Any]) -> None:
        try:
            await self._send(message)
        finally:
            if "method" not in message:
                self._due.discard(_key(message))
                self._paid.set()

    async def _send(self, message: dict[str, Any]) -> None:
        if self._is_gone:
            return
        text = json.dumps(message, separators=(",", ":"), ensure_ascii=False, default=str)
        try:
            await self._writer.write(text.encode("utf-8", "replace"))
        except OSError:
            self._is_gone = True  # its end of stdin says so, too

    async def receive(self) -> dict[str, Any] | None:
        while line := await self._lines.next():
            if line.isspace():
                continue
            try:
                message = parse_json(line.decode("utf-8"))
            except (JsonError, UnicodeDecodeError):
                await self._refuse(_PARSE_ERROR, "a line must be a message of JSON-RPC 2.0")
                continue
            if not isinstance(message, dict) or not isinstance(message.get("method", ""), str):
                await self._refuse(_INVALID_REQUEST, "this is no message of JSON-RPC 2.0")
                continue
            params = message.get("params")
            if isinstance(params, dict):
                # The SDK would pass its keys as arguments, over those that have the same name.
                params.pop("_meta", None)
                if isinstance(params.get("mcpServers"), list):
                    # It leaves out those that it can't read, without a word.
                    params["_meta"] = {"named_servers": len(params["mcpServers"])}
            if "method" in message and "id" in message:
                self._due.add(_key(message))
            return message
        await self._settled()
        return None

    async def _settled(self) -> None:
        """Wait, not for long, for the answers to what a client has asked that has closed its end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                while self._due:
                    self._paid.clear()
                    await self._paid.wait()

    async def close(self) -> None:
        self._writer.close()

    async def _refuse(self, code: int, why: str) -> None:
        await self.send({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": why}})


def _key(message: dict[str, Any]) -> str:
    """Return what an id is known by: it may be anything, and an answer has the one of its request."""
    return json.dumps(message.get("id"), default=str)


# Errors.


def _answered(method: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """Have whatever a method raises become an answer that says what was wrong."""

    @wraps(method)
    async def answered(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await method(*args, **kwargs)
        except RequestError:
            raise
        except Exception as error:
            raise _refusal(error) from None

    return answered


def _refusal(error: Exception) -> RequestError:
    if isinstance(error, SessionNotFound):
        code = _NOT_FOUND
    elif isinstance(error, InvalidArgument):
        code = _INVALID_PARAMS
    else:
        code = _INTERNAL
    is_known = type(error).__module__.startswith("harnpy.") or isinstance(error, OSError)
    text = failure(error) if is_known and str(error) else f"{type(error).__name__}: {error}"
    name = getattr(error, "code", None)
    return RequestError(code, text, {"code": name} if isinstance(name, str) else None)


# Sessions, as one client has them open.


class OpenSession:
    """A session that the client has begun or loaded. ``turn`` runs; ``rules`` are what is always allowed or
    always refused, by the names of tools. ``following`` is that of the last turn."""

    following: Following

    def __init__(self, id: str, outbox: Outbox, servers: ClientServers) -> None:
        self.id = id
        self.outbox = outbox
        self.servers = servers
        self.turn: asyncio.Task[TurnResult] | None = None
        self.rules: dict[str, str] = {}
        self.is_titled = False
        self.is_cancelled = False

    async def cancel(self) -> None:
        """End the turn that runs, if one does."""
        if self.turn is not None:
            self.is_cancelled = True
            self.turn.cancel()
            await asyncio.wait([self.turn])

    async def close(self) -> None:
        await self.cancel()
        await self.outbox.close()
        await self.servers.close()


_OPTIONS: Final[tuple[tuple[schema.PermissionOptionKind, str, str], ...]] = (
    ("allow_once", "Allow", ALLOW),
    ("allow_always", "Always allow {tool} in this session", ALLOW),
    ("reject_once", "Reject", DENY),
    ("reject_always", "Always reject {tool} in this session", DENY),
)
_NOT_ASKED = "the client failed to ask its user"
_REJECTED: Final = "rejected by the user"


class AcpAgent:
    """One AGENT and its sessions, for one client. ``enter`` makes a directory the process's."""

    def __init__(
        self,
        agents: Agents,
        runtime: AsyncSessionRuntime,
        world: World,
        enter: Callable[[str], object],
    ) -> None:
        (self._name,) = agents.names
        self._agents = agents
        self._runtime = runtime
        self._world = world
        self._enter = enter
        self._open: dict[str, OpenSession] = {}
        self._asks_forms = False

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def close(self) -> None:
        """End the turns that run, and the servers that were started for sessions."""
        for each in list(self._open.values()):
            await each.close()
        self._open.clear()

    # Methods of the protocol.

    @_answered
    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: schema.ClientCapabilities | None = None,
        client_info: schema.Implementation | None = None,
        **_: Any,
    ) -> schema.InitializeResponse:
        elicitation = None if client_capabilities is None else client_capabilities.elicitation
        self._asks_forms = elicitation is not None and elicitation.form is not None
        is_program = self._agents.kind(self._name) == "program"
        capabilities = schema.AgentCapabilities(
            load_session=True,
            prompt_capabilities=schema.PromptCapabilities(
                image=not is_program, audio=False, embedded_context=True
            ),
            mcp_capabilities=schema.McpCapabilities(http=True, sse=False),
            session_capabilities=schema.SessionCapabilities(
                list=schema.SessionListCapabilities(),
                fork=schema.SessionForkCapabilities(),
                resume=schema.SessionResumeCapabilities(),
                close=schema.SessionCloseCapabilities(),
            ),
        )
        return schema.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=capabilities,
            agent_info=schema.Implementation(name="harnpy", title=self._name, version=__version__),
            auth_methods=[],
        )

    @_answered
    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Any] | None = None,
        named_servers: int = 0,
        **_: Any,
    ) -> schema.NewSessionResponse:
        self._work_in(cwd, additional_directories)
        async with self._connected(mcp_servers, named_servers) as servers:
            definition = self._agents.definition(self._name)
            session = await self._runtime.create(definition or self._name, metadata={"cwd": cwd})
            self._opened(session.id, servers)
        return schema.NewSessionResponse(session_id=session.id)

    @_answered
    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[Any] | None = None,
        additional_directories: list[str] | None = None,
        named_servers: int = 0,
        **_: Any,
    ) -> schema.LoadSessionResponse:
        session, opened = await self._again(
            cwd, session_id, mcp_servers, named_servers, additional_directories
        )
        opened.outbox.put(*Updates().past(session.session.view.window.history()))
        await opened.outbox.sent()
        return schema.LoadSessionResponse()

    @_answered
    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Any] | None = None,
        named_servers: int = 0,
        **_: Any,
    ) -> schema.ResumeSessionResponse:
        await self._again(cwd, session_id, mcp_servers, named_servers, additional_directories)
        return schema.ResumeSessionResponse()

    @_answered
    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[Any] | None = None,
        named_servers: int = 0,
        **_: Any,
    ) -> schema.ForkSessionResponse:
        self._work_in(cwd, additional_directories)
        source = await self._found(session_id)
        async with self._connected(mcp_servers, named_servers) as servers:
            fork = await source.fork()
            self._opened(fork.id, servers).is_titled = "title" in fork.metadata
        return schema.ForkSessionResponse(session_id=fork.id)

    @_answered
    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> schema.ListSessionsResponse:
        if cursor is not None:
            try:
                position(cursor)
            except StorageError:
                raise InvalidArgument(
                    f"`cursor` is none that session/list has returned: '{cursor}'"
                ) from None
        page = await self._runtime.list(SessionQuery(limit=_PAGE, after=cursor))
        shown = [self._info(info) for info in page.items]
        return schema.ListSessionsResponse(
            sessions=[info for info in shown if cwd is None or info.cwd == cwd], next_cursor=page.next
        )

    @_answered
    async def close_session(self, session_id: str, **_: Any) -> schema.CloseSessionResponse:
        opened = self._opened_one(session_id)
        await opened.cancel()
        await opened.outbox.sent()
        await opened.close()
        self._open.pop(session_id, None)
        return schema.CloseSessionResponse()

    @_answered
    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> schema.PromptResponse:
        opened = self._opened_one(session_id)
        if opened.turn is not None:
            raise RequestError(
                _INVALID_REQUEST, f"session '{session_id}' is in a turn: wait for its end, or cancel it"
            )
        content, opened.is_cancelled = content_of(prompt), False
        turn = opened.turn = asyncio.create_task(self._turn(opened, content))
        try:
            await asyncio.wait([turn])
        finally:
            if not turn.done():  # the client has gone
                turn.cancel()
                await asyncio.wait([turn])
            opened.turn = None
        await opened.outbox.sent()
        if turn.cancelled() or (opened.is_cancelled and turn.exception() is not None):
            return schema.PromptResponse(stop_reason="cancelled")
        return _response(turn.result())

    async def cancel(self, session_id: str, **_: Any) -> None:
        opened = self._open.get(session_id)
        if opened is not None:
            await opened.cancel()

    # Turns.

    async def _turn(self, opened: OpenSession, content: str | list[dict[str, Any]]) -> TurnResult:
        is_program = self._agents.kind(self._name) == "program"
        session = await self._found(opened.id)
        await self._entitle(session, opened, content)
        seen = session.version
        watch = await self._runtime.watch(opened.id, after=seen, chunks=True, buffer=_ENOUGH)
        async with Following(watch, seen, Updates(), opened.outbox) as opened.following:
            try:
                return await self._agents.prompt(
                    self._runtime,
                    opened.id,
                    {"role": "user", "content": content},
                    approvals=ApprovalGate(partial(self._decide, opened), threshold=0),
                    inputs=InputGate(partial(self._answer, opened)) if self._asks_forms else None,
                    tools=() if is_program else opened.servers.tools,
                    mcp_servers=opened.servers.described if is_program else (),
                )
            finally:
                await opened.following.reach(session.version)
                opened.outbox.put(*opened.following.updates.abandoned())

    async def _entitle(self, session: AsyncSession, opened: OpenSession, content: Any) -> None:
        """Have lists show a session by its first prompt."""
        if opened.is_titled:
            return
        opened.is_titled = True
        texts = [content] if isinstance(content, str) else [block.get("text", "") for block in content]
        title = " ".join(" ".join(texts).split())[:_TITLE]
        if title and "title" not in session.metadata:
            await self._runtime.execute(opened.id, WriteMetadata("title", title))
            opened.outbox.put(schema.SessionInfoUpdate(session_update="session_info_update", title=title))

    async def _decide(self, opened: OpenSession, request: ApprovalRequest) -> tuple[str, str]:
        """Return what the client's user, or an earlier answer of theirs, says of a call."""
        known = opened.rules.get(request.tool)
        if known is not None:
            return known, "" if known == ALLOW else _REJECTED
        arguments = parse_json(request.args) if request.args else request.metadata or None
        await self._shown(opened)
        call = opened.following.updates.named(request.tool, arguments)
        asked = schema.ToolCallUpdate(
            tool_call_id=request.id if call is None else call.id,
            title=request.tool,
            kind="other" if call is None else call.kind,
            status="pending",
            raw_input=arguments,
        )
        options = [
            schema.PermissionOption(option_id=id, name=name.format(tool=request.tool), kind=id)
            for id, name, _ in _OPTIONS
        ]
        try:
            answer = await self._client.request_permission(opened.id, asked, options)
        except (RequestError, ConnectionError):
            return DENY, _NOT_ASKED
        if isinstance(answer.outcome, schema.DeniedOutcome):
            return DENY, "the request was cancelled"
        chosen = answer.outcome.option_id
        decision = next((decision for id, _, decision in _OPTIONS if id == chosen), None)
        if decision is None:
            return DENY, f"the client chose '{chosen}', which was no option"
        if chosen.endswith("_always"):
            opened.rules[request.tool] = decision
        return decision, "" if decision == ALLOW else _REJECTED

    async def _answer(self, opened: OpenSession, question: str) -> str:
        """Return what the client's user types into a form. Raises HumanCancelled."""
        from harnpy.agent.people import HumanCancelled

        form = schema.ElicitationFormSessionMode(
            session_id=opened.id,
            requested_schema=schema.ElicitationSchema(
                properties={"answer": schema.ElicitationStringPropertySchema(type="string")},
                required=["answer"],
            ),
        )
        await self._shown(opened)
        try:
            answer = await self._client.create_elicitation(question, form)
        except (RequestError, ConnectionError):
            raise HumanCancelled(_NOT_ASKED) from None
        if not isinstance(answer, schema.AcceptElicitationResponse):
            raise HumanCancelled("the question was dismissed")
        return str((answer.content or {}).get("answer", ""))

    async def _shown(self, opened: OpenSession) -> None:
        """Wait until the client was sent what its user is asked about."""
        session = await self._runtime.get(opened.id)
        await opened.following.reach(session.version)
        await opened.outbox.sent()

    # Sessions.

    def _work_in(self, cwd: str, additional: list[str] | None) -> None:
        """Make a session's directory the process's, unless there are sessions in another one."""
        if not os.path.isabs(cwd) or "\0" in cwd:
            raise InvalidArgument(f"`cwd` must be an absolute path, got '{cwd}'")
        if additional:
            raise InvalidArgument(
                "`additionalDirectories` isn't supported: sessions have one directory, `cwd`"
            )
        files = self._world.files
        if files.real_path(cwd) == files.real_path(files.cwd()):
            return
        if self._open:
            raise InvalidArgument(
                f"this process works in {files.cwd()}: start another `harnpy acp` for sessions in {cwd}"
            )
        if not files.is_dir(cwd):
            raise InvalidArgument(f"`cwd` is no directory: {cwd}")
        self._enter(cwd)

    def _connected(self, given: list[Any] | None, named: int) -> ClientServers:
        """Return the servers that the client gives to a session; it has ``named`` so many."""
        lost = named - len(given or ())
        if lost > 0:
            raise InvalidArgument(
                f"{lost} of `mcpServers` can't be read: a server has `name`, `command`, `args` and `env`, "
                'or `type: "http"`, `name`, `url` and `headers`'
            )
        return ClientServers(
            [_spec(server) for server in given or ()],
            self._world,
            connects=self._agents.kind(self._name) == "definition",
        )

    async def _again(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[Any] | None,
        named_servers: int,
        additional: list[str] | None,
    ) -> tuple[AsyncSession, OpenSession]:
        """Return a session of the store, opened; again, if it is open."""
        session = await self._found(session_id)
        before = self._open.get(session_id)
        if before is not None and before.turn is not None:
            raise RequestError(_INVALID_REQUEST, f"session '{session_id}' is in a turn: cancel it first")
        self._work_in(cwd, additional)
        async with self._connected(mcp_servers, named_servers) as servers:
            if before is not None:
                await before.close()
            opened = self._opened(session_id, servers)
        return session, opened

    async def _found(self, id: str) -> AsyncSession:
        """Return a session of the store. Raises `SessionNotFound`, also for one that was deleted."""
        if "\0" in id or (await self._runtime.info(id)).status == DELETED:
            raise SessionNotFound(id)
        return await self._runtime.get(id)

    def _opened(self, id: str, servers: ClientServers) -> OpenSession:
        servers.keep()
        opened = self._open[id] = OpenSession(id, Outbox(self._client, id), servers)
        return opened

    def _opened_one(self, id: str) -> OpenSession:
        if id not in self._open:
            raise RequestError(
                _NOT_FOUND, f"session '{id}' is not open here: begin it with session/new or session/load"
            )
        return self._open[id]

    def _info(self, info: SessionInfo) -> schema.SessionInfo:
        cwd, title = info.metadata.get("cwd"), info.metadata.get("title")
        return schema.SessionInfo(
            session_id=info.id,
            cwd=cwd if isinstance(cwd, str) else self._world.files.cwd(),
            title=str(title or info.agent_label or info.id),
            updated_at=info.updated_at,
        )


def _spec(server: Any) -> ServerSpec:
    """Return an MCP server that the client names as connections have it. Raises `InvalidArgument`."""
    if isinstance(server, schema.McpServerStdio):
        env = {each.name: each.value for each in server.env}
        return ServerSpec(server.name, command=(server.command, *server.args), env=env)
    if isinstance(server, schema.HttpMcpServer):
        token = None
        for header in server.headers:
            kind, _, rest = header.value.partition(" ")
            if header.name.lower() != "authorization" or kind.lower() != "bearer" or token is not None:
                raise InvalidArgument(
                    f"MCP server '{server.name}': header '{header.name}' can't be sent, "
                    "only `Authorization: Bearer TOKEN`"
                )
            token = rest
        return ServerSpec(server.name, HTTP, url=server.url, auth_token=token)
    kind = getattr(server, "type", type(server).__name__)
    raise InvalidArgument(
        f"MCP server '{server.name}': transport '{kind}' isn't supported: use stdio or http"
    )


def _response(result: TurnResult) -> schema.PromptResponse:
    """Return the answer to a prompt. Raises RequestError for a turn that failed."""
    if result.status == "failed":
        raise RequestError(_INTERNAL, f"the turn failed: {result.stop_reason}", {"code": result.stop_reason})
    return schema.PromptResponse(
        stop_reason=_STOPS.get(result.stop_reason, "end_turn"), usage=_usage(result.usage or {})
    )


#: By what a turn ended with (10 §C16.4).
_STOPS: Final[dict[str, schema.StopReason]] = {
    "cut": "max_tokens",
    "budget_exhausted": "max_tokens",
    "max_turns_hit": "max_turn_requests",
    "refused": "refusal",
    "cancelled": "cancelled",
}


def _usage(used: dict[str, Any]) -> schema.Usage | None:
    asked, answered = used.get("input_tokens"), used.get("output_tokens")
    if not isinstance(asked, int) or not isinstance(answered, int):
        return None
    return schema.Usage(
        input_tokens=asked, output_tokens=answered, total_tokens=used.get("total_tokens", asked + answered)
    )


async def serve_acp(agent: AcpAgent, reader: BinaryIO, writer: BinaryIO) -> None:
    """Serve the client at the other end of two streams until it closes its end."""
    # Forks, and sessions without their history, are methods that the SDK has behind this flag.
    connection = AgentSideConnection(
        cast(Any, agent), Stdio(reader, writer), listening=False, use_unstable_protocol=True
    )
    try:
        await connection.listen()
    finally:
        await agent.close()
        await connection.close()
