"""Servers of the Model Context Protocol: those of a manifest, those of a program, calls.

Spec: 07 §15.1, 09 §12.
"""

from __future__ import annotations

import os.path
from functools import partial

from harnpy.builtins.bridge.contexts import workplace_of
from harnpy.builtins.bridge.live_http import http_of
from harnpy.faults import Fault, MisuseError
from harnpy.formats.options import expected
from harnpy.mcp.client import Client
from harnpy.mcp.server_spec import HTTP, ServerSpec
from harnpy.mcp.servers import Cards, Servers, read_declared
from harnpy.project import ManifestError
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import Thrown, VmError
from harnpy.vm.values import display, type_name
from harnpy.world.egress import redacted_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from harnpy.formats.dicts import Dict
    from harnpy.formats.manifest import Manifest
    from harnpy.mcp.servers import Declared
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm


def servers_of(vm: Vm) -> Servers:
    """Return the program's servers; its end ends them."""
    return vm.state(Servers, lambda: _new_servers(vm))


def _new_servers(vm: Vm) -> Servers:
    servers = Servers(vm.world, lambda: http_of(vm), lambda coroutine: vm.tasks.serve(coroutine))
    vm.tasks.at_end(servers.suspend)
    return servers


def cards_of(vm: Vm) -> Cards:
    """Return the servers' cards that the program has read."""
    return vm.state(Cards, lambda: _new_cards(vm))


def _new_cards(vm: Vm) -> Cards:
    return Cards(servers_of(vm), vm.world, lambda: http_of(vm), lambda path: workplace_of(vm).path(path))


# The MCP servers that a manifest declares: known before a program starts, eager ones connected.
#
# Spec: 07 §15.1, 09 §12.


#: The global dict of the servers that are connected before a program starts.
GLOBAL = "mcp"

_LEAD = "failed to read MCP servers"


def bind_servers(vm: Vm, manifest: Manifest) -> None:
    """Declare the servers of a manifest whenever a program starts. Raises `ManifestError`."""
    declared = _declared(manifest.path, manifest.tables["mcp"])
    if not declared:
        return
    clients: dict[str, Client] = {}
    if not all(each.lazy for each in declared):
        vm.set_global(GLOBAL, clients)
    vm.on_start.append(lambda: _start(vm, declared, clients))


def _declared(path: str, tables: Any) -> list[Declared]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ManifestError(
            f"{_LEAD}: `mcp` must be an array of tables", path, "write each server as [[mcp]]"
        )
    try:
        declared = [_read(table, os.path.dirname(path)) for table in tables]
    except MisuseError as error:
        raise ManifestError(f"{_LEAD}: {error}", path) from None
    names = [each.spec.name for each in declared]
    for number, name in enumerate(names):
        if not name:
            raise ManifestError(f"{_LEAD}: [[mcp]] number {number + 1} has no `name`", path)
        if name in names[:number]:
            raise ManifestError(f"{_LEAD}: two servers are called '{name}'", path, "rename one of them")
    return declared


def _read(table: Dict, root: str) -> Declared:
    """Return the server of a table. Raises `MisuseError`."""
    from harnpy.agent.loop_options import DECLARED_SERVER

    given = {key.replace("-", "_"): value for key, value in table.items()}
    known = tuple(DECLARED_SERVER.own)
    for key in given:
        if key not in known:
            raise MisuseError(f"[[mcp]] has no key '{key}' ({expected(key, known)})")
    return read_declared(given, root)


def _start(vm: Vm, declared: Sequence[Declared], clients: dict[str, Client]) -> None:
    servers, tell = servers_of(vm), vm.unguarded.streams.write_err
    servers.declare(declared)
    clients.clear()
    outcomes = vm.tasks.await_coroutine(servers.connect_eager())
    for each in declared:
        name = each.spec.name
        outcome = outcomes.get(name)
        if outcome is None:
            tell(f"[harn] mcp: deferred '{name}' (lazy, boots on first use)\n")
            continue
        clients[name] = servers.client(name)
        if isinstance(outcome, Client):
            tell(f"[harn] mcp: connected to '{name}'\n")
        elif isinstance(outcome, Fault | VmError):
            tell(f"warning: mcp: failed to connect to '{name}': {outcome}\n")
        else:
            raise outcome


# Talking to one MCP server. Spec: 07 §15.1.


builtin = partial(declare, family="mcp")


@builtin("mcp_connect(command: string, args?: list) -> mcp_client", guarded=True)
async def mcp_connect(vm: Vm, command: str, args: Value) -> Client:
    """Start an MCP server's program, or go to the server at a URL, and connect to it.

    A program ends with the Harn program at the latest. For a token and other settings of a server at a URL,
    declare it in `harn.toml`.

    Example:
        let answer = json_stringify({jsonrpc: "2.0", id: 1, result: {supportedVersions: ["2026-07-28"]}})
        mcp_server_info(mcp_connect("sh", ["-c", "read ask; echo '${answer}'; cat"])).name  // "sh"
    """
    if not command:
        raise Thrown("mcp_connect: command is required")
    if not isinstance(args, list | None):
        raise Thrown(f"mcp_connect: args must be a list, got {type_name(args)}")
    if command.startswith(("http://", "https://")):
        if args:
            raise Thrown("mcp_connect: a server at a URL takes no args; declare its auth_token in harn.toml")
        name = redacted_url(command)
        return await servers_of(vm).connect(ServerSpec(name, HTTP, url=command))
    words = map(display, args or ())
    return await servers_of(vm).connect(ServerSpec(command, command=(command, *words)))


@builtin("mcp_list_tools(client: mcp_client) -> list")
async def mcp_list_tools(vm: Vm, client: Value) -> list[Dict]:
    """Return the server's tools as it sends them, `{name, description, inputSchema, …}`, with `_mcp_server`.

    Example: try { mcp_list_tools(nil) } catch (e) { "no client" }  // "no client"
    """
    return await _client(client, "mcp_list_tools").tools()


@builtin("mcp_call(client: mcp_client, name: string, args?: dict) -> any")
async def mcp_call(vm: Vm, client: Value, name: str, args: Value) -> Any:
    """Call a tool: its structured content, or its texts joined, nil if empty, or else the list of contents.

    If the tool fails, throws its message. Only the calling task waits.

    Example: try { mcp_call(nil, "add", {a: 1}) } catch (e) { "no client" }  // "no client"
    """
    found = _first(client, "mcp_call")
    _require(name, "mcp_call: tool name is required")
    return await found.call(name, _arguments(args))


@builtin("mcp_list_resources(client: mcp_client) -> list")
async def mcp_list_resources(vm: Vm, client: Value) -> list[Dict]:
    """Return the server's resources, `{uri, name, …}`.

    Example: try { mcp_list_resources(nil) } catch (e) { "no client" }  // "no client"
    """
    return await _client(client, "mcp_list_resources").listed("resources/list", "resources")


@builtin("mcp_list_resource_templates(client: mcp_client) -> list")
async def mcp_list_resource_templates(vm: Vm, client: Value) -> list[Dict]:
    """Return the server's resource templates, `{uriTemplate, name, …}`.

    Example: try { mcp_list_resource_templates(nil) } catch (e) { "no client" }  // "no client"
    """
    found = _client(client, "mcp_list_resource_templates")
    return await found.listed("resources/templates/list", "resourceTemplates")


@builtin("mcp_list_prompts(client: mcp_client) -> list")
async def mcp_list_prompts(vm: Vm, client: Value) -> list[Dict]:
    """Return the server's prompts, `{name, description, arguments}`.

    Example: try { mcp_list_prompts(nil) } catch (e) { "no client" }  // "no client"
    """
    return await _client(client, "mcp_list_prompts").listed("prompts/list", "prompts")


@builtin("mcp_read_resource(client: mcp_client, uri: string) -> any")
async def mcp_read_resource(vm: Vm, client: Value, uri: str) -> Any:
    """Return a resource: its only text, nil if it is empty, or else the list of contents.

    Example: try { mcp_read_resource(nil, "file:///a") } catch (e) { "no client" }  // "no client"
    """
    found = _first(client, "mcp_read_resource")
    _require(uri, "mcp_read_resource: URI is required")
    return await found.resource(uri)


@builtin("mcp_get_prompt(client: mcp_client, name: string, args?: dict) -> dict")
async def mcp_get_prompt(vm: Vm, client: Value, name: str, args: Value) -> Dict:
    """Return a prompt with its arguments filled in: `{description, messages}`.

    Example: try { mcp_get_prompt(nil, "greeting") } catch (e) { "no client" }  // "no client"
    """
    found = _first(client, "mcp_get_prompt")
    _require(name, "mcp_get_prompt: prompt name is required")
    return await found.prompt(name, _arguments(args))


@builtin("mcp_server_info(client: mcp_client) -> dict")
def mcp_server_info(vm: Vm, client: Value) -> Dict:
    """Return `{name, connected: true, server?}` of a connected client.

    `server` is what the server says of itself: its own name and version.

    Example:
        try { mcp_server_info(nil) } catch (e) { e }  // "mcp_server_info: argument must be an MCP client"
    """
    found = _client(client, "mcp_server_info")
    found.require_connection()
    info: Dict = {"name": found.name, "connected": True}
    return {**info, "server": found.about} if found.about else info


@builtin("mcp_disconnect(client: mcp_client) -> nil")
async def mcp_disconnect(vm: Vm, client: Value) -> None:
    """End the connection and the server's program; a second call does nothing.

    Example: try { mcp_disconnect(nil) } catch (e) { e }  // "mcp_disconnect: argument must be an MCP client"
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


# The MCP servers that a project declares in `harn.toml`, and the cards of servers. Spec: 07 §15.1.


@builtin("mcp_ensure_active(name: string) -> mcp_client")
async def mcp_ensure_active(vm: Vm, name: str) -> Client:
    """Return the client of a server in `harn.toml`, connecting if necessary; each call adds one holder.

    Example: try { mcp_ensure_active("weather") } catch (e) { "not declared" }  // "not declared"
    """
    if not name:
        raise Thrown("mcp_ensure_active: server name is required")
    return await servers_of(vm).ensure_active(name)


@builtin("mcp_release(name: string) -> nil")
async def mcp_release(vm: Vm, name: str) -> None:
    """Remove one holder; a lazy server without holders is disconnected, at once or after `keep_alive_ms`.

    Example: mcp_release("weather")  // nil
    """
    if not name:
        raise Thrown("mcp_release: server name is required")
    await servers_of(vm).release(name)


@builtin("mcp_registry_status() -> list")
def mcp_registry_status(vm: Vm) -> list[Dict]:
    """Return the servers in `harn.toml` by name: `{name, lazy, active, ref_count, card?}`.

    Example: mcp_registry_status()  // []
    """
    return servers_of(vm).status()


@builtin("mcp_server_card(target: string) -> any")
async def mcp_server_card(vm: Vm, target: str) -> Any:
    """Return a server's card: the JSON at a URL, in a file, or at the `card` of a server in `harn.toml`.

    A URL without an answer is tried again at `/.well-known/mcp-card` below it. Kept for 5 minutes.

    Example:
        write_file("card.json", json_stringify({name: "weather"}))
        mcp_server_card("./card.json").name  // "weather"
    """
    if not target:
        raise Thrown("mcp_server_card: server name, URL, or path is required")
    return await cards_of(vm).card(target)
