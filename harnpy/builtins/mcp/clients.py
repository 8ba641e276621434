"""Talking to one MCP server. Spec: 07 §15.1."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.live_mcp import servers_of
from harnpy.mcp.client import Client
from harnpy.mcp.server_spec import ServerSpec
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import Thrown
from harnpy.vm.values.objects import display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

builtin = partial(declare, family="mcp")


@builtin("mcp_connect(command: string, args?: list) -> mcp_client", guarded=True)
async def mcp_connect(vm: Vm, command: str, args: Value) -> Client:
    """Start the program of an MCP server and connect to it; the program's end, at the latest, ends it.

    Example:
        let answer = json_stringify({jsonrpc: "2.0", id: 1, result: {}})
        mcp_server_info(mcp_connect("sh", ["-c", "read ask; echo '${answer}'; cat"])).name  // "sh"
    """
    if not command:
        raise Thrown("mcp_connect: command is required")
    if not isinstance(args, list | None):
        raise Thrown(f"mcp_connect: args must be a list, got {type_name(args)}")
    words = map(display, args or ())
    return await servers_of(vm).connect(ServerSpec(command, command=(command, *words)))


@builtin("mcp_list_tools(client: mcp_client) -> list")
async def mcp_list_tools(vm: Vm, client: Value) -> list[Dict]:
    """The server's tools as it sends them, `{name, description, inputSchema, …}`, with `_mcp_server`.

    Example:
        try { mcp_list_tools(nil) } catch (e) { "no client" }  // "no client"
    """
    return await _client(client, "mcp_list_tools").tools()


@builtin("mcp_call(client: mcp_client, name: string, args?: dict) -> any")
async def mcp_call(vm: Vm, client: Value, name: str, args: Value) -> Any:
    """Call a tool: the one text that it answers, nil without an answer, else the list of contents.

    Throws what a tool says that has failed. Only the calling task waits.

    Example:
        try { mcp_call(nil, "add", {a: 1}) } catch (e) { "no client" }  // "no client"
    """
    found = _first(client, "mcp_call")
    _require(name, "mcp_call: tool name is required")
    return await found.call(name, _arguments(args))


@builtin("mcp_list_resources(client: mcp_client) -> list")
async def mcp_list_resources(vm: Vm, client: Value) -> list[Dict]:
    """The server's resources, `{uri, name, …}`.

    Example:
        try { mcp_list_resources(nil) } catch (e) { "no client" }  // "no client"
    """
    return await _client(client, "mcp_list_resources").listed("resources/list", "resources")


@builtin("mcp_list_resource_templates(client: mcp_client) -> list")
async def mcp_list_resource_templates(vm: Vm, client: Value) -> list[Dict]:
    """The server's templates of resources, `{uriTemplate, name, …}`.

    Example:
        try { mcp_list_resource_templates(nil) } catch (e) { "no client" }  // "no client"
    """
    found = _client(client, "mcp_list_resource_templates")
    return await found.listed("resources/templates/list", "resourceTemplates")


@builtin("mcp_list_prompts(client: mcp_client) -> list")
async def mcp_list_prompts(vm: Vm, client: Value) -> list[Dict]:
    """The server's prompts, `{name, description, arguments}`.

    Example:
        try { mcp_list_prompts(nil) } catch (e) { "no client" }  // "no client"
    """
    return await _client(client, "mcp_list_prompts").listed("prompts/list", "prompts")


@builtin("mcp_read_resource(client: mcp_client, uri: string) -> any")
async def mcp_read_resource(vm: Vm, client: Value, uri: str) -> Any:
    """A resource: its one text, nil without contents, else the list of contents.

    Example:
        try { mcp_read_resource(nil, "file:///a") } catch (e) { "no client" }  // "no client"
    """
    found = _first(client, "mcp_read_resource")
    _require(uri, "mcp_read_resource: URI is required")
    return await found.resource(uri)


@builtin("mcp_get_prompt(client: mcp_client, name: string, args?: dict) -> dict")
async def mcp_get_prompt(vm: Vm, client: Value, name: str, args: Value) -> Dict:
    """A prompt with its arguments filled in: `{description, messages}`.

    Example:
        try { mcp_get_prompt(nil, "greeting") } catch (e) { "no client" }  // "no client"
    """
    found = _first(client, "mcp_get_prompt")
    _require(name, "mcp_get_prompt: prompt name is required")
    return await found.prompt(name, _arguments(args))


@builtin("mcp_server_info(client: mcp_client) -> dict")
def mcp_server_info(vm: Vm, client: Value) -> Dict:
    """`{name, connected: true}` of a client that is connected.

    Example:
        try { mcp_server_info(nil) } catch (e) { e }  // "mcp_server_info: argument must be an MCP client"
    """
    found = _client(client, "mcp_server_info")
    found.require_connection()
    return {"name": found.name, "connected": True}


@builtin("mcp_disconnect(client: mcp_client) -> nil")
async def mcp_disconnect(vm: Vm, client: Value) -> None:
    """End the connection, and the server's program; nothing happens the second time.

    Example:
        try { mcp_disconnect(nil) } catch (e) { e }  // "mcp_disconnect: argument must be an MCP client"
    """
    await servers_of(vm).disconnect(_client(client, "mcp_disconnect"))


def _client(value: Value, caller: str) -> Client:
    """Return the only argument of ``caller``."""
    return _checked(value, f"{caller}: argument must be an MCP client")


def _first(value: Value, caller: str) -> Client:
    """Return the first argument of ``caller``."""
    return _checked(value, f"{caller}: first argument must be an MCP client")


def _checked(value: Value, message: str) -> Client:
    if type(value) is not Client:
        raise Thrown(message)
    return value


def _require(text: str, message: str) -> None:
    if not text:
        raise Thrown(message)


def _arguments(given: Value) -> Dict:
    return given if type(given) is dict else {}
