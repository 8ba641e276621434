"""How a Vm reaches HTTP services: everything goes through what it may reach. Spec: 04 §21."""

from __future__ import annotations

from functools import partial

from harnpy.builtins import settings_of
from harnpy.world.net.egress import Egress, environment_egress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.net.http.calls import HttpCalls
    from harnpy.vm.vm import Vm
    from harnpy.world.http import Http
    from harnpy.world.net.egress import EgressBlocked

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
    from harnpy.eventlog.errors import LogError
    from harnpy.eventlog.log_events import LogEvent

    try:
        payload = {**blocked.place(), "error_type": "EgressBlocked"}
        log_of(vm).append(_AUDIT, LogEvent("egress.blocked", payload))
    except LogError as error:
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
    from harnpy.net.http.calls import HttpCalls

    return vm.state(HttpCalls, lambda: _new_calls(vm))


def _new_calls(vm: Vm) -> HttpCalls:
    from harnpy.builtins.bridge.agent_tasks import AgentTasks
    from harnpy.net.http.calls import Cap, HttpCalls

    most, cap = response_bytes_of(vm), None
    if vm.meter is not None and most is not None:
        cap = Cap(most, partial(vm.meter.excess, "response_bytes"))
    calls = HttpCalls(http_of(vm), egress_of(vm), AgentTasks(vm), vm.world, cap)
    vm.tasks.at_end(calls.aclose)
    return calls
