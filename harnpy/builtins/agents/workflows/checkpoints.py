"""Values that a program finds again on its next run. Spec: 04 §26, 08 §11."""

from __future__ import annotations

import os.path

from harnpy.builtins.bridge.places import state_root
from harnpy.vm.declare.builtin import builtin
from harnpy.workflow.checkpoints import Checkpoints, program_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


class _Slot:
    """Where a Vm keeps the checkpoints of the program it runs."""

    checkpoints: Checkpoints | None = None


@builtin("checkpoint(key: string, value: any) -> nil", family="checkpoints")
def checkpoint(vm: Vm, key: str, value: Value) -> None:
    """Keep a value for later runs of this program, as JSON represents it."""
    _checkpoints(vm).set(key, value)


@builtin("checkpoint_get(key: string) -> any", family="checkpoints")
def checkpoint_get(vm: Vm, key: str) -> Value:
    """The value kept under a key, nil without one."""
    return _checkpoints(vm).get(key)


@builtin("checkpoint_exists(key: string) -> bool", family="checkpoints")
def checkpoint_exists(vm: Vm, key: str) -> bool:
    """Whether a value, even nil, is kept under a key."""
    return _checkpoints(vm).has(key)


@builtin("checkpoint_list() -> list", family="checkpoints")
def checkpoint_list(vm: Vm) -> list[str]:
    """All keys of the program's checkpoints, sorted."""
    return _checkpoints(vm).keys()


@builtin("checkpoint_delete(key: string) -> nil", family="checkpoints")
def checkpoint_delete(vm: Vm, key: str) -> None:
    """Remove a checkpoint; a missing one is fine."""
    _checkpoints(vm).delete(key)


@builtin("checkpoint_clear() -> nil", family="checkpoints")
def checkpoint_clear(vm: Vm) -> None:
    """Remove all checkpoints of the program, and their file."""
    _checkpoints(vm).clear()


def _checkpoints(vm: Vm) -> Checkpoints:
    slot = vm.state(_Slot)
    if slot.checkpoints is None:
        path = os.path.join(state_root(vm), "checkpoints", f"{program_name(vm.file)}.json")
        slot.checkpoints = Checkpoints(path, vm.world)
    return slot.checkpoints
