"""The live sessions of a Vm."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.contexts import context_of
from harnpy.session.registry import SessionRegistry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.vm import Vm


def sessions_of(vm: Vm) -> SessionRegistry:
    """Return the live sessions of a Vm, created on first use."""
    return vm.service(SessionRegistry, _opened)


def _opened(vm: Vm) -> SessionRegistry:
    """Return sessions whose stack is the running task's, as many as the Vm's limits allow."""
    meter = vm.meter
    admission = None if meter is None else partial(meter.hold, "sessions")
    return SessionRegistry(world=vm.world, stack=lambda: context_of(vm).sessions, admission=admission)
