"""The globals of generated code: the helpers it calls by name, and what one unit refers to.

A unit knows which helpers its code uses, and only their modules are loaded: a program that adds no
strings and spawns no tasks starts without either. Modules of builtins are loaded by the first call.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.vm.compile import CompiledUnit
    from harnpy.vm.modules.linker import Linker
    from harnpy.vm.values.objects import Fn
    from harnpy.vm.vm import Vm


def namespace(
    vm: Vm, unit: CompiledUnit, impls: dict[str, dict[str, Fn]], linker: Linker | None = None
) -> dict[str, Any]:
    """The globals for one unit; ``impls`` collects its `impl` methods, ``linker`` does its imports."""
    space: dict[str, Any] = {"vm": vm, "UNIT": unit, "getrefcount": sys.getrefcount}
    # Where Python's tools find the source text of what is no file, or no longer.
    space["__name__"], space["__loader__"] = unit.file, unit
    for python, place in unit.helpers:
        space[python] = _helper(vm, python, place)
    for python, name, module in unit.called:
        _bind_when_called(vm, space, python, name, module)
    for python, name, module in unit.valued:
        space[python] = vm.builtins.bound(name, module)
    for python, name in unit.globals:
        space[python] = vm.global_value(name)
    if unit.methods:
        space.update(_method_tables(unit, impls))
    if linker:
        space.update(linker.helpers())
    space["implement"] = lambda struct, name, fn: impls.setdefault(struct, {}).update({name: fn})
    space["call_method"] = _spread_method_call(vm, impls)
    return space


def _bind_when_called(vm: Vm, space: dict[str, Any], python: str, name: str, module: str) -> None:
    """Load a builtin's module at its first call: a library names more builtins than a run needs."""

    def first(vm: Vm, *args: Any) -> Any:
        function = space[python] = vm.builtins.direct(name, module)
        return function(vm, *args)

    space[python] = first


def _helper(vm: Vm, name: str, place: str) -> Any:
    """The helper ``name``; `harnpy.vm.emit.protocol` lists the places."""
    if place == "vm" or place.startswith("vm."):
        owner: Any = vm
        for part in place.split(".")[1:]:
            owner = getattr(owner, part)
        return getattr(owner, name)
    module = f"harnpy.vm.{place}"
    __import__(module)
    helper = getattr(sys.modules[module], name)
    return helper.__get__(vm.tasks) if place.startswith("run.tasks.") else helper


def _method_tables(unit: CompiledUnit, impls: dict[str, dict[str, Fn]]) -> dict[str, Any]:
    from harnpy.vm.run.methods.dispatch import MethodTable

    return {python: MethodTable(name, count, impls) for python, name, count in unit.methods}


def _spread_method_call(vm: Vm, impls: dict[str, dict[str, Fn]]) -> Callable[..., Any]:
    def call(depth: int, receiver: Any, name: str, args: list[Any]) -> Any:
        from harnpy.vm.run.methods.dispatch import call_method

        return call_method(vm, impls, depth, receiver, name, args)

    return call
