"""Values that a program finds again on its next run. Spec: 04 §26, 08 §11."""

from __future__ import annotations

import os.path
from functools import partial

from harnpy.agent.kept.kept_values import Checkpoints
from harnpy.builtins.bridge.places import state_root
from harnpy.vm.declare.builtin import builtin as declare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="checkpoints")

_DEFAULT, _REPL = "default", "repl"


@builtin("checkpoint(key: string, value: any) -> nil")
def checkpoint(vm: Vm, key: str, value: Value) -> None:
    """Keep a value for later runs of this program, as JSON represents it.

    Example:
        checkpoint("page", 7)
        checkpoint_get("page")  // 7
    """
    _checkpoints(vm).set(key, value)


@builtin("checkpoint_get(key: string) -> any")
def checkpoint_get(vm: Vm, key: str) -> Value:
    """The value kept under a key, nil without one.

    Example:
        checkpoint_get("no such key")  // nil
    """
    return _checkpoints(vm).get(key)


@builtin("checkpoint_exists(key: string) -> bool")
def checkpoint_exists(vm: Vm, key: str) -> bool:
    """Whether a value, even nil, is kept under a key.

    Example:
        checkpoint("nothing", nil)
        checkpoint_exists("nothing")  // true
    """
    return _checkpoints(vm).has(key)


@builtin("checkpoint_list() -> list")
def checkpoint_list(vm: Vm) -> list[str]:
    """All keys of the program's checkpoints, sorted.

    Example:
        checkpoint_clear()
        checkpoint("b", 1)
        checkpoint("a", 2)
        checkpoint_list()  // ["a", "b"]
    """
    return _checkpoints(vm).keys()


@builtin("checkpoint_delete(key: string) -> nil")
def checkpoint_delete(vm: Vm, key: str) -> None:
    """Remove a checkpoint; a missing one is fine.

    Example:
        checkpoint("page", 7)
        checkpoint_delete("page")
        checkpoint_exists("page")  // false
    """
    _checkpoints(vm).delete(key)


@builtin("checkpoint_clear() -> nil")
def checkpoint_clear(vm: Vm) -> None:
    """Remove all checkpoints of the program, and their file.

    Example:
        checkpoint("page", 7)
        checkpoint_clear()
        checkpoint_list()  // []
    """
    _checkpoints(vm).clear()


def _checkpoints(vm: Vm) -> Checkpoints:
    def load() -> Checkpoints:
        path = os.path.join(state_root(vm), "checkpoints", f"{program_name(vm.file)}.json")
        return Checkpoints(path, vm.world.state_files, vm.tasks.sleep)

    return vm.state(Checkpoints, load)


def program_name(file: str | None) -> str:
    """Return the name for a program's checkpoints: its file name without the extension."""
    if file == "<repl>":
        return _REPL
    if file is None or file.startswith("<"):
        return _DEFAULT
    stem = os.path.splitext(os.path.basename(file))[0]
    return _DEFAULT if stem in ("", ".", "..") else stem
