"""How a Vm reaches HTTP services: everything goes through what it may reach. Spec: 04 §21."""

from __future__ import annotations

from harnpy.world.net.egress import Egress

TYPE_CHECKING = False
if TYPE_CHECKING:
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
