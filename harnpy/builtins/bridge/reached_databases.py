"""Databases of stores that a program names: what it may reach holds for them, too. Spec: 04 §21.4."""

from __future__ import annotations

from harnpy.builtins.bridge.live_http import egress_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.vm import Vm

_SURFACE = "store_open"


def reach_database(vm: Vm, url: str) -> None:
    """Raise `EgressBlocked` unless each server of a database may be reached, at each of its addresses.

    The driver resolves names by itself, when it connects: unlike HTTP, it isn't held to these addresses.
    """
    egress = egress_of(vm)
    if egress.policy is None:
        return
    from harnpy.world.net.connecting import resolved_now
    from harnpy.world.net.egress import Forbidden

    for host, port in _servers(url) or [("", 0)]:
        if host.startswith("/"):
            continue
        egress.admit_place(_SURFACE, url, host, port)
        try:
            for address in resolved_now(host, port):
                egress.admit_address(host, port, address)
        except Forbidden as forbidden:
            raise egress.blocked(_SURFACE, url, forbidden) from None
        except OSError:
            continue  # whoever opens it is told


def _servers(url: str) -> list[tuple[str, int]] | None:
    try:
        from harnpy.storage.postgres.servers import servers
    except ImportError:
        return None
    return servers(url)
