"""The globals of generated code: every helper it calls by name, and what one unit refers to."""

from __future__ import annotations

from sys import getrefcount

from harnpy.vm import backtrace, calls, checks, ops, update, values
from harnpy.vm.dispatch import MethodTable, call_method
from harnpy.vm.errors import Thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.load import Unit
    from harnpy.vm.machine import Vm

_VALUES = ("Builtin", "Duration", "EnumValue", "Fn", "Generator", "Stream", "Struct", "display")
_OPS = (
    "add", "sub", "mul", "div", "mod", "power", "neg", "wrap", "eq", "ne", "lt", "gt", "le", "ge", "in_",
    "index", "slice_", "get_prop", "get_prop_optional", "get_path", "set_prop", "set_index", "range_to",
    "spread_list", "spread_dict", "destructure_dict", "destructure_list", "iterate_for",
)  # fmt: skip
_CALLS = (
    "FAILURES", "MISSING", "UNSET", "again", "alive", "as_result", "bad_propagation", "construct",
    "constructor", "err", "field", "immutable", "make_struct", "overflow", "payload", "redeclared",
    "retry_count", "run_defers", "unsupported",
)  # fmt: skip
_VM_CALLS = (
    "bouncing", "call", "call_builtin", "call_dynamic", "call_late", "call_named", "fill", "pipe",
    "read_dynamic", "read_late", "shell", "tail", "tail_named", "tail_pipe", "undefined_builtin",
    "undefined_variable",
)  # fmt: skip
_TASKS = (
    "await_task", "cancel_gracefully", "cancel_task", "deadline_begin", "deadline_end", "is_cancelled",
    "parallel", "poll", "signal", "spawn",
)  # fmt: skip


def shared_names(vm: Vm) -> dict[str, Any]:
    """What every unit of a Vm sees."""
    space: dict[str, Any] = {"vm": vm, "Thrown": Thrown, "getrefcount": getrefcount}
    for source, names in (
        (values, _VALUES),
        (ops, _OPS),
        (calls, _CALLS),
        (vm.calls, _VM_CALLS),
        (vm.tasks, _TASKS),
    ):
        space.update((name, getattr(source, name)) for name in names)
    space["caught"] = backtrace.caught
    space["check_parameter"] = checks.check_parameter
    space["SOLE"] = update.SOLE
    space["store_path"] = update.store_path
    space["read_path"] = update.read_path
    return space


def namespace(vm: Vm, unit: Unit, impls: dict[str, dict[str, values.Fn]]) -> dict[str, Any]:
    """The globals for one unit; ``impls`` collects its `impl` methods."""
    space = dict(vm.shared_names)
    space["UNIT"] = unit
    for name in unit.builtins:
        bound = vm.builtins.bound(name)
        plain = name.replace(".", "__")
        space[f"b_{plain}_"] = bound.call
        space[f"v_{plain}_"] = bound
    for name in unit.globals:
        space[f"g_{name}_"] = vm.global_value(name)
    for name, count in unit.methods:
        shown = name if name.isascii() else name.encode().hex()
        space[f"m_{shown}_{count}_"] = MethodTable(name, count, impls)

    def implement(struct: str, name: str, fn: values.Fn) -> None:
        impls.setdefault(struct, {})[name] = fn

    space["implement"] = implement
    space["call_method"] = lambda receiver, name, args: call_method(vm, impls, receiver, name, args)
    return space
