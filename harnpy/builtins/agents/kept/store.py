"""The store: values that the programs of a project share, from run to run. Spec: 04 §26."""

from __future__ import annotations

import os.path
from functools import partial

from harnpy.agent.kept.kept_values import KeyValueStore
from harnpy.builtins.bridge.places import state_root
from harnpy.vm.declare.builtin import builtin as declare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="store")


@builtin("store_get(key: string) -> any")
def store_get(vm: Vm, key: str) -> Value:
    """The value under a key, nil without one.

    Example:
        store_set("visits", 3)
        store_get("visits")  // 3
    """
    return _store(vm).get(key)


@builtin("store_set(key: string, value: any) -> nil")
def store_set(vm: Vm, key: str, value: Value) -> None:
    """Keep a value, as JSON represents it, for all programs of the project and their next runs.

    Example:
        store_set("user", {name: "Ada"})
        store_get("user").name  // "Ada"
    """
    _store(vm).set(key, value)


@builtin("store_delete(key: string) -> nil")
def store_delete(vm: Vm, key: str) -> None:
    """Remove a key; a missing one is fine.

    Example:
        store_set("user", "ada")
        store_delete("user")
        store_get("user")  // nil
    """
    _store(vm).delete(key)


@builtin("store_list() -> list")
def store_list(vm: Vm) -> list[str]:
    """All keys, sorted.

    Example:
        store_clear()
        store_set("b", 1)
        store_set("a", 2)
        store_list()  // ["a", "b"]
    """
    return _store(vm).keys()


@builtin("store_save() -> nil")
def store_save(vm: Vm) -> None:
    """Write the file, which every change does anyway.

    Example:
        store_set("user", "ada")
        store_save()  // nil
    """
    _store(vm).save()


@builtin("store_clear() -> nil")
def store_clear(vm: Vm) -> None:
    """Remove all keys and the file.

    Example:
        store_set("user", "ada")
        store_clear()
        store_list()  // []
    """
    _store(vm).clear()


def _store(vm: Vm) -> KeyValueStore:
    def load() -> KeyValueStore:
        return KeyValueStore(os.path.join(state_root(vm), "store.json"), vm.world.state_files, vm.tasks.sleep)

    return vm.state(KeyValueStore, load)
