"""The globals of generated code: the helpers it calls by name, and what one unit refers to.

A unit knows which helpers its code uses, and only their modules are loaded: a program that adds no
strings and spawns no tasks starts without either. Modules of builtins are loaded by the first call.
"""

from __future__ import annotations

import sys

from harnpy.vm.emit import protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.vm.modules.linker import Linker
    from harnpy.vm.unit import Unit
    from harnpy.vm.values.objects import Fn
    from harnpy.vm.vm import Vm


def namespace(
    vm: Vm, unit: Unit, impls: dict[str, dict[str, Fn]], linker: Linker | None = None
) -> dict[str, Any]:
    """The globals for one unit; ``impls`` collects its `impl` methods, ``linker`` does its imports."""
    space: dict[str, Any] = {"vm": vm, "UNIT": unit, "getrefcount": sys.getrefcount}
    for name in unit.helpers:
        space[name] = _helper(vm, name)
    for name in unit.called:
        _bind_when_called(vm, space, name)
    for name in unit.valued:
        space[protocol.builtin_value(name)] = vm.builtins.bound(name)
    for name in unit.globals:
        space[protocol.global_value(name)] = vm.global_value(name)
    if unit.methods:
        space.update(_method_tables(unit, impls))
    if linker:
        space.update(linker.helpers())
    space["implement"] = lambda struct, name, fn: impls.setdefault(struct, {}).update({name: fn})
    space["call_method"] = _spread_method_call(vm, impls)
    return space


def _bind_when_called(vm: Vm, space: dict[str, Any], name: str) -> None:
    """Let the first call of a builtin load its module: a library names more of them than a run needs."""
    variable = protocol.builtin_function(name)

    def first(vm: Vm, *args: Any) -> Any:
        function = space[variable] = vm.builtins.direct(name)
        return function(vm, *args)

    space[variable] = first


def _helper(vm: Vm, name: str) -> Any:
    place = protocol.HELPERS[name]
    if place == "vm" or place.startswith("vm."):
        owner: Any = vm
        for part in place.split(".")[1:]:
            owner = getattr(owner, part)
        return getattr(owner, name)
    module = f"harnpy.vm.{place}"
    __import__(module)
    helper = getattr(sys.modules[module], name)
    return helper.__get__(vm.tasks) if place.startswith("run.tasks.") else helper


def _method_tables(unit: Unit, impls: dict[str, dict[str, Fn]]) -> dict[str, Any]:
    from harnpy.vm.run.methods.dispatch import MethodTable

    return {
        protocol.method_table(name, count): MethodTable(name, count, impls) for name, count in unit.methods
    }


def _spread_method_call(vm: Vm, impls: dict[str, dict[str, Fn]]) -> Callable[..., Any]:
    def call(depth: int, receiver: Any, name: str, args: list[Any]) -> Any:
        from harnpy.vm.run.methods.dispatch import call_method

        return call_method(vm, impls, depth, receiver, name, args)

    return call
