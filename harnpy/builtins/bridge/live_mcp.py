"""The MCP servers of a Vm. Spec: 07 §15.1."""

from __future__ import annotations

from harnpy.builtins.bridge.live_http import http_of
from harnpy.builtins.bridge.places import workplace_of
from harnpy.mcp.cards import Cards
from harnpy.mcp.servers import Servers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.vm import Vm


def servers_of(vm: Vm) -> Servers:
    """The program's servers; its end ends them."""
    return vm.state(Servers, lambda: _new_servers(vm))


def _new_servers(vm: Vm) -> Servers:
    servers = Servers(vm.world, lambda: http_of(vm), lambda coroutine: vm.tasks.serve(coroutine))
    vm.tasks.at_end(servers.suspend)
    return servers


def cards_of(vm: Vm) -> Cards:
    """What the program has read of servers' cards."""
    return vm.state(Cards, lambda: _new_cards(vm))


def _new_cards(vm: Vm) -> Cards:
    return Cards(servers_of(vm), vm.world, lambda: http_of(vm), lambda path: workplace_of(vm).path(path))
