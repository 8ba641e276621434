"""The MCP servers of one loop: started for it, their tools offered to its model. Spec: 07 §15.1."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from harnpy.faults import Interruption, MisuseError
from harnpy.formats.dicts import as_dict
from harnpy.llm.native_tools import Parameters, is_registry, tool_entries
from harnpy.mcp.server_spec import read_server_spec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from types import TracebackType

    from harnpy.agent.runtime import Runtime
    from harnpy.agent.tasks import Tasks
    from harnpy.formats.dicts import Dict
    from harnpy.mcp.client import Client
    from harnpy.mcp.server_spec import ServerSpec
    from harnpy.mcp.servers import Servers


class LoopServers:
    """``clients`` by the names of the servers. Leaving ends the ``own`` ones, releases others."""

    def __init__(
        self, servers: Servers, tasks: Tasks, clients: Mapping[str, Client], own: Collection[str]
    ) -> None:
        self._servers = servers
        self._tasks = tasks
        self._own = own
        self.clients = clients

    def __enter__(self) -> LoopServers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        clients = [client for name, client in self.clients.items() if name in self._own]
        for client in clients:
            client.leave()
        if error is None or isinstance(error, Exception | Interruption):  # not in a task that is stopped
            held = [name for name in self.clients if name not in self._own]
            releases = (self._servers.release(name) for name in held)
            self._tasks.wait(_all(*(self._servers.disconnect(client) for client in clients), *releases))


def with_servers(runtime: Runtime, given: Dict, caller: str) -> tuple[Dict, LoopServers]:
    """Start the servers that the options of a loop name; their tools are in the options that are returned.

    Raises `MisuseError`, naming ``caller``, and what connections fail with: then no server is left.
    """
    specs = read_specs(given["mcp_servers"], caller)
    servers = runtime.servers()
    clients = runtime.tasks.wait(_connected(servers, specs))
    found = LoopServers(
        servers, runtime.tasks, clients, [name for name, spec in specs.items() if spec is not None]
    )
    try:
        listed = runtime.tasks.wait(_all(*(client.tools() for client in found.clients.values())))
        entries = [entry for tools in listed for entry in _entries(tools, caller)]
        return {**given, "tools": _offered(given.get("tools"), entries, caller)}, found
    except BaseException as error:
        found.__exit__(type(error), error, None)
        raise


def read_specs(described: Any, caller: str) -> dict[str, ServerSpec | None]:
    """Return the servers by name; None for one that is only named, which the project declares."""
    if not isinstance(described, list):
        raise MisuseError(f"{caller}: `mcp_servers` must be a list of server config dicts")
    specs: dict[str, ServerSpec | None] = {}
    for each in described:
        if isinstance(each, str):
            if each in specs:
                raise MisuseError(f"{caller}: duplicate MCP server name `{each}` in `mcp_servers`")
            specs[each] = None
            continue
        if not isinstance(each, dict):
            raise MisuseError(
                f"{caller}: each `mcp_servers` entry must be a dict, or the name of a server of harn.toml"
            )
        command = each.get("command")
        if not (command is None or isinstance(command, str) or _are_texts(command)):
            raise MisuseError(f"{caller}: MCP `command` must be a string or a string array")
        try:
            spec = read_server_spec(each)
        except MisuseError as error:
            raise MisuseError(f"{caller}: {error}") from None
        if not spec.name:
            raise MisuseError(f"{caller}: every `mcp_servers` entry requires a non-empty `name`")
        if spec.name in specs:
            raise MisuseError(f"{caller}: duplicate MCP server name `{spec.name}` in `mcp_servers`")
        specs[spec.name] = spec
    return specs


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


async def _connected(servers: Servers, specs: Mapping[str, ServerSpec | None]) -> dict[str, Client]:
    """Connect to all at the same time; when one fails, the others are ended."""
    tasks = {
        name: asyncio.ensure_future(servers.ensure_active(name) if spec is None else servers.connect(spec))
        for name, spec in specs.items()
    }
    try:
        await asyncio.gather(*tasks.values())
    except BaseException:
        undone = (_undone(servers, name, specs[name], task) for name, task in tasks.items())
        await asyncio.gather(*undone)
        raise
    return {name: task.result() for name, task in tasks.items()}


async def _undone(
    servers: Servers, name: str, spec: ServerSpec | None, connecting: asyncio.Task[Client]
) -> None:
    connecting.cancel()
    await asyncio.wait([connecting])
    if not connecting.cancelled() and connecting.exception() is None:
        await (servers.release(name) if spec is None else servers.disconnect(connecting.result()))


async def _all(*calls: Any) -> list[Any]:
    return await asyncio.gather(*calls)


def _entries(tools: list[Dict], caller: str) -> Iterator[Dict]:
    """The registry entries of a server's tools, by names that begin with the server's."""
    for tool in tools:
        server, name = tool["_mcp_server"], tool.get("name")
        if not isinstance(name, str) or not name:
            raise MisuseError(f"{caller}: MCP server `{server}` returned a tool without a name")
        schema = as_dict(tool.get("inputSchema"))
        entry = {
            "name": f"{server}__{name}",
            "description": tool.get("description") or "",
            "parameters": Parameters(schema),
            "executor": "mcp_server",
            "mcp_server": server,
            "_mcp_server": server,
            "_mcp_tool_name": name,
            "annotations": {
                "kind": "fetch",
                "side_effect_level": "network",
                "arg_schema": {"required": schema.get("required") or []},
            },
        }
        if tool.get("outputSchema") is not None:
            entry["outputSchema"] = tool["outputSchema"]
        yield entry


def _offered(given: Any, entries: list[Dict], caller: str) -> Any:
    """The tools of a loop's options, and those of its servers."""
    offered = [*tool_entries(given), *entries]
    names = [entry["name"] for entry in offered]
    for entry in entries:
        if names.count(entry["name"]) > 1:
            raise MisuseError(f"{caller}: duplicate tool name `{entry['name']}` after MCP server prefixing")
    return {**given, "tools": offered} if is_registry(given) else offered
