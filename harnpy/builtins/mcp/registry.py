"""The MCP servers that a project declares in `harn.toml`, and the cards of servers. Spec: 07 §15.1."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.live_mcp import cards_of, servers_of
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import Thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.mcp.client import Client
    from harnpy.reading.dicts import Dict
    from harnpy.vm.vm import Vm

builtin = partial(declare, family="mcp")


@builtin("mcp_ensure_active(name: string) -> mcp_client")
async def mcp_ensure_active(vm: Vm, name: str) -> Client:
    """The client of a server in `harn.toml`, connected when nobody has yet; each call adds one holder.

    Example:
        try { mcp_ensure_active("weather") } catch (e) { "not declared" }  // "not declared"
    """
    if not name:
        raise Thrown("mcp_ensure_active: server name is required")
    return await servers_of(vm).ensure_active(name)


@builtin("mcp_release(name: string) -> nil")
async def mcp_release(vm: Vm, name: str) -> None:
    """Take one holder away; a lazy server without any is disconnected, or `keep_alive_ms` later.

    Example:
        mcp_release("weather")  // nil
    """
    if not name:
        raise Thrown("mcp_release: server name is required")
    await servers_of(vm).release(name)


@builtin("mcp_registry_status() -> list")
def mcp_registry_status(vm: Vm) -> list[Dict]:
    """The servers in `harn.toml`, by name: `{name, lazy, active, ref_count, card?}`.

    Example:
        mcp_registry_status()  // []
    """
    return servers_of(vm).status()


@builtin("mcp_server_card(target: string) -> any")
async def mcp_server_card(vm: Vm, target: str) -> Any:
    """What a server says of itself: the JSON at a URL, in a file, or at the `card` of one in `harn.toml`.

    A URL without an answer is tried again at `/.well-known/mcp-card` below it. Kept for 5 minutes.

    Example:
        write_file("card.json", json_stringify({name: "weather"}))
        mcp_server_card("./card.json").name  // "weather"
    """
    if not target:
        raise Thrown("mcp_server_card: server name, URL, or path is required")
    return await cards_of(vm).card(target)
