"""How a Vm reaches HTTP services: everything goes through what it may reach. Spec: 04 §21."""

from __future__ import annotations

from functools import partial

from harnpy.world.net.egress import Egress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.net.http.calls import HttpCalls
    from harnpy.vm.vm import Vm
    from harnpy.world.http import Http


def egress_of(vm: Vm) -> Egress:
    """What the Vm may reach."""
    return vm.state(Egress, Egress)


def http_of(vm: Vm) -> Http:
    """HTTP as programs have it: the rules in force for the effect `network` hold as well."""
    return vm.world.http.behind(egress_of(vm))


def model_http_of(vm: Vm) -> Http:
    """HTTP for model calls, whose effect is another one."""
    return vm.unguarded.http.behind(egress_of(vm))


def http_calls_of(vm: Vm) -> HttpCalls:
    """What the program asks for over HTTP: its mocks, sessions and streams."""
    from harnpy.net.http.calls import HttpCalls

    return vm.state(HttpCalls, lambda: _new_calls(vm))


def _new_calls(vm: Vm) -> HttpCalls:
    from harnpy.builtins.bridge.agent_tasks import AgentTasks
    from harnpy.net.http.calls import Cap, HttpCalls

    most = None if vm.meter is None else vm.meter.most("response_bytes")
    cap = None
    if vm.meter is not None and most is not None:
        cap = Cap(most, partial(vm.meter.excess, "response_bytes"))
    calls = HttpCalls(http_of(vm), egress_of(vm), AgentTasks(vm), vm.world, cap)
    vm.tasks.at_end(calls.aclose)
    return calls
