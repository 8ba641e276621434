"""The MCP server over the official SDK: what the protocol asks, answered by a served program."""

from __future__ import annotations

import os.path
from functools import partial
from typing import TYPE_CHECKING

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError

from harnpy.faults import Fault, TooLarge
from harnpy.serve.mcp.caller import McpCaller
from harnpy.serve.mcp.resources import Sessions
from harnpy.serve.mcp.results import CallFailed, failure
from harnpy.version import __version__
from harnpy.vm.errors import VmError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mcp.server.context import ServerRequestContext

    from harnpy.serve.mcp.results import Result
    from harnpy.serve.mcp.tools import Tool
    from harnpy.serve.program import Program

    Context = ServerRequestContext[Any, Any]


class Tools:
    """Answers `tools/list` and `tools/call`."""

    def __init__(
        self, program: Program, tools: dict[str, Tool], after: Callable[[], object] = lambda: None
    ) -> None:
        """``after`` is called when a call has ended."""
        self._program = program
        self._tools = tools
        self._after = after

    async def list(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_listed(tool) for tool in self._tools.values()])

    async def call(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name}")
        caller = McpCaller(context)
        calling = partial(self._program.call, caller=caller)
        try:
            return _answer(await tool.run(params.arguments or {}, calling))
        except (CallFailed, VmError, Fault, TooLarge) as error:
            return types.CallToolResult(content=[_text(failure(error))], is_error=True)
        finally:
            self._after()
            await caller.sent()


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


def _listed(tool: Tool) -> types.Tool:
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
