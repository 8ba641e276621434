"""The live sessions of a Vm."""

from __future__ import annotations

from harnpy.builtins.bridge.contexts import context_of
from harnpy.session.registry import SessionRegistry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.vm import Vm


def sessions_of(vm: Vm) -> SessionRegistry:
    """Return the live sessions of a Vm, created on first use. Their stack is the running task's."""

    def made() -> SessionRegistry:
        return SessionRegistry(world=vm.world, stack=lambda: context_of(vm).sessions)

    return vm.service(SessionRegistry, made)
