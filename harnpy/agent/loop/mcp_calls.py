"""Calling the tools of MCP servers: those of the loop, and the ones that the project declares.

Spec: 07 §6.7 step 11, §15.1.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from harnpy.agent.errors import ToolFailure
from harnpy.mcp.errors import ToolError
from harnpy.text.display import display

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harnpy.agent.runtime import Runtime
    from harnpy.mcp.client import Client
    from harnpy.mcp.connection import Progress
    from harnpy.reading.dicts import Dict


class McpCalls:
    """``clients`` are the loop's own, by server."""

    def __init__(self, runtime: Runtime, clients: Mapping[str, Client]) -> None:
        self._runtime = runtime
        self._clients = clients

    def knows(self, entry: Dict) -> bool:
        """Whether there is a server for a tool."""
        server = server_of(entry)
        return server in self._clients or self._runtime.servers().declared(server) is not None

    def call(self, entry: Dict, arguments: Dict, told: Callable[[Dict], None] | None) -> str:
        """Return what a tool answers, as text; ``told`` gets what it reports of its progress.

        Raises `ToolFailure`.
        """
        try:
            return display(self._result(entry, arguments, told))
        except Exception as error:
            if not self._runtime.is_failure(error):
                raise
            raise ToolFailure(_text(error), _category(error)) from error

    def _result(self, entry: Dict, arguments: Dict, told: Callable[[Dict], None] | None) -> Any:
        wait = self._runtime.tasks.wait
        if told is None:
            return wait(self._answer(entry, arguments))
        from harnpy.mcp.reported import ReportedCall  # asyncio comes with it

        call = ReportedCall(partial(self._answer, entry, arguments))
        try:
            while (report := wait(call.report())) is not None:
                told(report)
            return wait(call.result())
        finally:
            call.stop()

    async def _answer(self, entry: Dict, arguments: Dict, progress: Progress | None = None) -> Any:
        server, tool = server_of(entry), entry.get("_mcp_tool_name") or entry["name"]
        if server in self._clients:
            return await self._clients[server].call(tool, arguments, progress)
        servers = self._runtime.servers()
        client = await servers.ensure_active(server)
        try:
            return await client.call(tool, arguments, progress)
        finally:
            await servers.release(server)


def server_of(entry: Dict) -> str:
    """Return the name of the server that has a tool."""
    return str(entry.get("mcp_server") or entry.get("_mcp_server") or "")


def _text(error: Exception) -> str:
    return getattr(error, "text", None) or str(error)


def _category(error: Exception) -> str:
    """What went wrong: the tool, something that has a name, or the server."""
    if isinstance(error, ToolError):
        return "tool_error"
    return getattr(error, "category", None) or "mcp_server_error"
