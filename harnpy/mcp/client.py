"""A client of one server, and the results of its calls as programs get them. Spec: 07 §15.1."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from harnpy.formats.dicts import Dict, as_dict, as_dicts
from harnpy.mcp.server_spec import (
    DISCONNECTED,
    HTTP,
    STDIO,
    ConnectionFault,
    ProbeFailed,
    ServerError,
    ServerLeft,
    ServerSpec,
    SessionLost,
    require_sdk,
)
from harnpy.mcp.tool_results import may_be_wrapped, read_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harnpy.mcp.connection import Connection, Progress, Serve
    from harnpy.mcp.tool_results import ToolAnswer
    from harnpy.mcp.transports import Transport
    from harnpy.world import World
    from harnpy.world.http import Http

# Locks of asyncio for what outlives a loop: in the REPL each input has one of its own.


class LoopLock:
    """``async with lock():`` holds a lock of the running loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = asyncio.Lock()

    def __call__(self) -> asyncio.Lock:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._lock = loop, asyncio.Lock()
        return self._lock


def resource_content(result: Dict) -> Any:
    """Return a resource's one text, nil without contents, else the list of contents."""
    match result.get("contents") or []:
        case []:
            return None
        case [{"text": str(text)}]:
            return text
        case contents:
            return contents


#: Seconds that an answer, or a report of progress, may take.
PATIENCE = 60.0


class Client:
    """``http`` is for servers at a URL; ``serve`` runs a coroutine beside the program.

    Calls raise `ServerError` and `ConnectionFault`; of one that is cancelled the server is told. Programs
    hold clients as values of the type `mcp_client`.
    """

    type_name = "mcp_client"

    def __init__(
        self,
        spec: ServerSpec,
        world: World,
        http: Callable[[], Http],
        serve: Serve = asyncio.create_task,
        patience: float = PATIENCE,
    ) -> None:
        self.spec = spec
        self.name = spec.name
        self._world = world
        self._http = http
        self._serve = serve
        self._patience = patience
        self._transport: Transport | None = None
        self._connection: Connection | None = None
        self._left: Connection | None = None
        self._tools: dict[Any, Dict] = {}
        #: What the connection is begun with; once there was one, it isn't negotiated again.
        self._version = spec.protocol_version
        #: Why the last attempt to connect failed.
        self._failure = ""
        self._alone = LoopLock()

    def display(self) -> str:
        return f"<mcp_client:{self.name}>"

    # The connection.

    @property
    def is_connected(self) -> bool:
        return self._connection is not None and not self._connection.ended

    def require_connection(self) -> None:
        """Raise `ConnectionFault` when the connection has ended, and not only with a run."""
        connection = self._connection
        if connection is None and self._failure:
            raise ConnectionFault(f"mcp.{self.name} isn't connected: {self._failure}")
        if connection is None or (connection.ended and not connection.interrupted):
            raise ConnectionFault(DISCONNECTED)

    async def connect(self) -> None:
        """Raises `NotStarted`, `ServerError` and `ConnectionFault`."""
        try:
            await self._connected()
        except Exception as error:
            self._failure = str(error)
            raise
        self._failure = ""

    async def _connected(self) -> None:
        require_sdk()
        try:
            await self._connect(self._version)
        except ProbeFailed:
            # Some servers end when their first message is another than `initialize`.
            from mcp_types.version import LATEST_HANDSHAKE_VERSION

            await self._connect(LATEST_HANDSHAKE_VERSION)

    async def _connect(self, version: str | None) -> None:
        from harnpy.mcp.connection import Connection
        from harnpy.mcp.negotiation import negotiate

        transport = self._new_transport()
        connection = Connection(transport, self._serve, self._patience)
        await connection.open()
        try:
            await negotiate(connection, transport, version)
        except BaseException:
            await connection.close()
            raise
        self._transport, self._connection = transport, connection
        self._version = transport.version

    def _new_transport(self) -> Transport:
        kind = self.spec.transport
        if kind == STDIO and self.spec.command:
            from harnpy.mcp.transports import Stdio

            return Stdio(self.spec, self._world)
        if kind == HTTP and self.spec.url:
            from harnpy.mcp.transports import StreamableHttp

            return StreamableHttp(self.spec, self._http())
        raise ConnectionFault(_lacking(self.spec))

    @property
    def about(self) -> Dict:
        """What the connected server says of itself."""
        return {} if self._transport is None else self._transport.about

    def leave(self) -> None:
        """Begin to end the connection and the server's program, without waiting for it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.leave()
            self._left = connection

    async def disconnect(self) -> None:
        """End the connection and the server's program; nothing to be done the second time."""
        self.leave()
        left, self._left = self._left, None
        if left is not None:
            await left.close()

    async def suspend(self) -> None:
        """End them until the next request, which connects again."""
        if self._connection is not None:
            await self._connection.close()

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, progress: Progress | None = None
    ) -> Dict:
        """Return the result of a request. It is made once more in a session that the server has lost, and
        where the connection was one of a recorded run (13 §3)."""
        try:
            return await self._requested(method, params, progress)
        except ServerLeft:
            if self._transport is None or not self._transport.interrupted:
                raise
        return await self._requested(method, params, progress)

    async def _requested(
        self, method: str, params: Mapping[str, Any] | None, progress: Progress | None
    ) -> Dict:
        connection, transport = await self._current()
        from harnpy.mcp.negotiation import Rounds, initialize, is_modern

        if is_modern(transport.version):
            rounds, sent = Rounds(self._patience), params or {}
            while True:
                result = await self._standing_alone(connection, transport.version, method, sent, progress)
                following = await rounds.again(sent, result)
                if following is None:
                    return result
                sent = following
        session = transport.session
        try:
            return await connection.request(method, params, progress)
        except SessionLost:
            async with self._alone():
                if transport.session == session:
                    transport.session = None
                    await initialize(connection, transport, transport.version)
            return await connection.request(method, params, progress)

    async def _standing_alone(
        self,
        connection: Connection,
        version: str,
        method: str,
        params: Mapping[str, Any],
        progress: Progress | None,
    ) -> Dict:
        """Make a request that says itself what it is. The tools are listed when the server misses headers
        that a tool's schema asks for."""
        from mcp_types import HEADER_MISMATCH

        try:
            return await connection.request(method, *self._stamped(version, method, params, progress))
        except ServerError as error:
            if error.code != HEADER_MISMATCH or method != "tools/call":
                raise
        await self.tools()
        return await connection.request(method, *self._stamped(version, method, params, progress))

    def _stamped(
        self, version: str, method: str, params: Mapping[str, Any], progress: Progress | None
    ) -> tuple[Dict, Progress | None, dict[str, str]]:
        from harnpy.mcp.negotiation import stamped

        tool = self._tools.get(params.get("name")) if method == "tools/call" else None
        sent = stamped(version, method, params, None if tool is None else as_dict(tool.get("inputSchema")))
        return sent.params, progress, sent.headers

    async def _current(self) -> tuple[Connection, Transport]:
        if self._connection is not None and self._connection.interrupted:
            async with self._alone():
                if self._connection is not None and self._connection.interrupted:
                    await self.connect()
        self.require_connection()
        assert self._connection is not None
        assert self._transport is not None
        return self._connection, self._transport

    # What servers offer.

    async def tools(self) -> list[Dict]:
        """Return the tools as the server has them, each with the server's name as ``_mcp_server``."""
        from harnpy.mcp.negotiation import is_offered

        version = "" if self._transport is None else self._transport.version
        listed = [tool for tool in await self.listed("tools/list", "tools") if is_offered(version, tool)]
        self._tools = {name: tool for tool in listed if isinstance(name := tool.get("name"), str)}
        return [{"_mcp_server": self.name, **tool} for tool in listed]

    async def call(self, tool: str, arguments: Dict, progress: Progress | None = None) -> Any:
        """Return what programs get of a tool's answer. Raises `ToolError`."""
        return (await self.answer(tool, arguments, progress)).value

    async def answer(self, tool: str, arguments: Dict, progress: Progress | None = None) -> ToolAnswer:
        """Return what a tool answers. Raises `ToolError` when it says that it has failed."""
        result = await self.request("tools/call", {"name": tool, "arguments": arguments}, progress)
        if may_be_wrapped(result) and tool not in self._tools:
            with suppress(ServerError):
                await self.tools()
        return read_answer(result, self._tools.setdefault(tool, {}).get("outputSchema"))

    async def resource(self, uri: str) -> Any:
        return resource_content(await self.request("resources/read", {"uri": uri}))

    async def prompt(self, name: str, arguments: Dict) -> Dict:
        return await self.request("prompts/get", {"name": name, "arguments": arguments})

    async def listed(self, method: str, key: str) -> list[Dict]:
        """Return all items that ``method`` lists under ``key``, page by page."""
        items: list[Dict] = []
        seen: set[str] = set()
        cursor = None
        while True:
            result = await self.request(method, None if cursor is None else {"cursor": cursor})
            items += as_dicts(result.get(key))
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str):
                return items
            if cursor in seen:
                raise ConnectionFault(f"MCP: '{method}' has no end: the cursor '{cursor}' came twice")
            seen.add(cursor)


def _lacking(spec: ServerSpec) -> str:
    """Return why no connection can be made."""
    if spec.transport not in (STDIO, HTTP):
        return f"MCP server '{spec.name}': unknown transport '{spec.transport}': there are stdio and http"
    missing = "command" if spec.transport == STDIO else "url"
    hint = "; for its `url` the transport is http" if spec.transport == STDIO and spec.url else ""
    return f"MCP server '{spec.name}': a server of transport {spec.transport} needs a `{missing}`{hint}"
