"""How a Vm reaches HTTP services and databases: only through its egress policy. Spec: 04 §21, §21.4."""

from __future__ import annotations

from functools import partial

from harnpy.builtins import settings_of
from harnpy.world.egress import Egress, environment_egress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.net.http_calls import HttpCalls
    from harnpy.vm.vm import Vm
    from harnpy.world.egress import EgressBlocked
    from harnpy.world.http import Http

#: Where what was blocked is written down.
_AUDIT = "connectors.egress.audit"


def egress_of(vm: Vm) -> Egress:
    """What the program may reach, by the embedder's policy, else by that of the environment."""
    return vm.state(Egress, lambda: _new_egress(vm))


def _new_egress(vm: Vm) -> Egress:
    policy, on_blocked = settings_of(vm).egress, partial(_audit, vm)
    if policy is not None:
        return Egress(policy, on_blocked)
    return environment_egress(vm.unguarded.environment.get, on_blocked)


def _audit(vm: Vm, blocked: EgressBlocked) -> None:
    from harnpy.builtins.bridge.live_event_log import log_of
    from harnpy.eventlog.contract import LogEvent
    from harnpy.eventlog.errors import LogError
    from harnpy.project import ManifestError

    try:
        payload = {**blocked.place(), "error_type": "EgressBlocked"}
        log_of(vm).append(_AUDIT, LogEvent("egress.blocked", payload))
    except (LogError, ManifestError) as error:
        # The request is refused all the same, and that is what the program must hear of.
        vm.unguarded.warn("egress", f"{blocked.message}: not in the event log: {error}")


def http_of(vm: Vm) -> Http:
    """HTTP as programs have it: the rules in force for the effect `network` hold as well."""
    return vm.world.http.behind(egress_of(vm))


def model_http_of(vm: Vm) -> Http:
    """HTTP for model calls, whose effect is another one."""
    return vm.unguarded.http.behind(egress_of(vm))


def response_bytes_of(vm: Vm) -> int | None:
    """How many bytes the embedder lets a response have; None is any number."""
    return None if vm.meter is None else vm.meter.most("response_bytes")


def http_calls_of(vm: Vm) -> HttpCalls:
    """What the program asks for over HTTP: its mocks, sessions and streams."""
    from harnpy.net.http_calls import HttpCalls

    return vm.state(HttpCalls, lambda: _new_calls(vm))


def _new_calls(vm: Vm) -> HttpCalls:
    from harnpy.builtins.bridge.agent_tasks import AgentTasks
    from harnpy.net.http_calls import Cap, HttpCalls

    most, cap = response_bytes_of(vm), None
    if vm.meter is not None and most is not None:
        cap = Cap(most, partial(vm.meter.excess, "response_bytes"))
    calls = HttpCalls(http_of(vm), egress_of(vm), AgentTasks(vm), vm.world, cap)
    vm.tasks.at_end(calls.aclose)
    return calls


# Databases of stores that a program names: what it may reach holds for them, too. Spec: 04 §21.4.


_SURFACE = "store_open"


def reach_database(vm: Vm, url: str) -> None:
    """Raise `EgressBlocked` unless each server of a database may be reached, at each of its addresses.

    The driver resolves names by itself, when it connects: unlike HTTP, it isn't held to these addresses.
    """
    egress = egress_of(vm)
    if egress.policy is None:
        return
    from harnpy.world.egress import Forbidden
    from harnpy.world.http_client import resolved_now

    for host, port in _database_servers(url) or [("", 0)]:
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


def _database_servers(url: str) -> list[tuple[str, int]] | None:
    try:
        from harnpy.storage.postgres.database import servers
    except ImportError:
        return None
    return servers(url)
