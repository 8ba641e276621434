"""The MCP servers that a client of the Agent Client Protocol gives to a session. Spec: 11 §4.

For a definition they are connected as long as the session is open, and their tools are the agent's. A program
gets their descriptions, to name them in its loops.
"""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from harnpy.agent.factory.tools import Tool
from harnpy.mcp.server_spec import STDIO
from harnpy.mcp.servers import Servers
from harnpy.session.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from harnpy.formats.dicts import Dict
    from harnpy.mcp.client import Client
    from harnpy.mcp.server_spec import ServerSpec
    from harnpy.world import World

_UNUSUAL = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST = 64


class ClientServers:
    """The servers of one session; an async context manager: they are connected in it, and afterwards ended
    unless somebody said `keep`."""

    def __init__(self, specs: Sequence[ServerSpec], world: World, *, connects: bool) -> None:
        names = [spec.name for spec in specs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InvalidArgument(f"two MCP servers are called '{twice}'")
        self._specs = specs
        self._connects = connects
        self._servers = Servers(world, lambda: world.http)
        self._clients: list[Client] = []
        self._is_kept = False
        self.tools: list[Tool] = []

    @property
    def described(self) -> list[Dict]:
        """The servers as the option `mcp_servers` of a loop has them."""
        return [_described(spec) for spec in self._specs]

    def keep(self) -> None:
        """Leave the servers connected behind the block."""
        self._is_kept = True

    async def __aenter__(self) -> Self:
        """Raises what connections fail with."""
        try:
            for spec in self._specs if self._connects else ():
                client = await self._servers.connect(spec)
                self._clients.append(client)
                self.tools += [_tool(client, spec.name, tool) for tool in await client.tools()]
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        if not self._is_kept:
            await self.close()

    async def close(self) -> None:
        await asyncio.gather(*(self._servers.disconnect(client) for client in self._clients))
        self._clients.clear()


def _tool(client: Client, server: str, tool: Dict) -> Tool:
    name = _UNUSUAL.sub("_", f"{server}__{tool.get('name')}")[:_LONGEST]
    schema = tool.get("inputSchema")
    parameters = schema if isinstance(schema, dict) else {"type": "object"}
    return Tool(name, tool.get("description") or "", parameters, partial(_call, client, tool["name"]))


async def _call(client: Client, tool: str, arguments: Dict) -> Any:
    return (await client.answer(tool, arguments)).value


def _described(spec: ServerSpec) -> Dict:
    if spec.transport == STDIO:
        command, *args = spec.command
        return {"name": spec.name, "command": command, "args": args, "env": dict(spec.env)}
    token = {} if spec.auth_token is None else {"auth_token": spec.auth_token}
    return {"name": spec.name, "transport": spec.transport, "url": spec.url, **token}
