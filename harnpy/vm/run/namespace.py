"""The globals of generated code: the helpers it calls by name, and what one unit refers to.

A unit knows which helpers its code uses, and only their modules are loaded: a program that adds no
strings and spawns no tasks starts without either. Modules of builtins are loaded by the first call.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    from harnpy.vm.compile import Unit
    from harnpy.vm.modules.links import Linker
    from harnpy.vm.values.objects import Fn
    from harnpy.vm.vm import Vm

#: Helpers by where they are: a module of `harnpy.vm`, or an attribute of the Vm.
_HELPERS = {
    "values.objects": "Builtin Duration EnumValue Fn Generator Stream Struct display",
    "errors": "Interrupted Thrown",
    "declare.arguments": "reject",
    "run.backtrace": "caught",
    "run.parameter_types": "check_parameter",
    "values.in_place": "SOLE read_path store_path",
    "values.operators": (
        "add sub mul div mod power neg wrap eq ne lt gt le ge in_ index slice_ get_prop get_prop_optional "
        "get_path set_prop set_index range_to spread_list spread_dict destructure_dict destructure_list "
        "iterate_for"
    ),
    "run.calls": (
        "FAILURES MISSING UNSET again alive as_result bad_propagation construct constructor err field "
        "immutable make_struct overflow payload redeclared retry_count run_defers unsupported"
    ),
    "vm.calls": (
        "TAIL bouncing call call_builtin call_dynamic call_from_frames call_late call_named fill generator "
        "pipe read_dynamic read_late shell tail tail_named tail_pipe undefined_builtin undefined_variable"
    ),
    "vm.tasks": (
        "await_task cancel_gracefully cancel_task deadline_begin deadline_end is_cancelled parallel "
        "pause_deadlines resume_deadlines select select_limit spawn"
    ),
    "vm": "poll signal",
}
_WHERE = {name: place for place, names in _HELPERS.items() for name in names.split()}


def helpers_used(code: CodeType) -> list[str]:
    """The helpers that ``code``, or a function in it, refers to."""
    found: set[str] = set()
    codes = [code]
    while codes:
        top = codes.pop()
        found.update(top.co_names)
        codes += [constant for constant in top.co_consts if type(constant) is type(code)]
    return sorted(found & _WHERE.keys())


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
        space[f"v_{name.replace('.', '__')}_"] = vm.builtins.bound(name)
    for name in unit.globals:
        space[f"g_{name}_"] = vm.global_value(name)
    if unit.methods:
        space.update(_method_tables(unit, impls))
    if linker:
        space.update(linker.helpers())
    space["implement"] = lambda struct, name, fn: impls.setdefault(struct, {}).update({name: fn})
    space["call_method"] = _spread_method_call(vm, impls)
    return space


def _bind_when_called(vm: Vm, space: dict[str, Any], name: str) -> None:
    """Let the first call of a builtin load its module: a library names more of them than a run needs."""
    variable = f"b_{name.replace('.', '__')}_"

    def first(vm: Vm, *args: Any) -> Any:
        function = space[variable] = vm.builtins.direct(name)
        return function(vm, *args)

    space[variable] = first


def _helper(vm: Vm, name: str) -> Any:
    place = _WHERE[name]
    if place == "vm" or place.startswith("vm."):
        owner: Any = vm
        for part in place.split(".")[1:]:
            owner = getattr(owner, part)
        return getattr(owner, name)
    module = f"harnpy.vm.{place}"
    __import__(module)
    return getattr(sys.modules[module], name)


def _method_tables(unit: Unit, impls: dict[str, dict[str, Fn]]) -> dict[str, Any]:
    from harnpy.vm.run.methods.dispatch import MethodTable

    tables = {}
    for name, count in unit.methods:
        shown = name if name.isascii() else name.encode().hex()
        tables[f"m_{shown}_{count}_"] = MethodTable(name, count, impls)
    return tables


def _spread_method_call(vm: Vm, impls: dict[str, dict[str, Fn]]) -> Callable[..., Any]:
    def call(depth: int, receiver: Any, name: str, args: list[Any]) -> Any:
        from harnpy.vm.run.methods.dispatch import call_method

        return call_method(vm, impls, depth, receiver, name, args)

    return call
