"""The Vm's session store, and how builtins reach it."""

from __future__ import annotations

from harnpy.builtins.bridge.contexts import context_of
from harnpy.faults import Interruption
from harnpy.session.registry import SessionRegistry
from harnpy.vm.errors import Interrupted
from harnpy.vm.values.objects import Builtin, Fn, display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


def _make_store(vm: Vm) -> SessionRegistry:
    """The live sessions of a Vm; their stack is the running task's."""
    return SessionRegistry(world=vm.world, stack=lambda: context_of(vm).sessions)


def store_of(vm: Vm) -> SessionRegistry:
    """The live sessions of a Vm."""
    return vm.service(SessionRegistry, lambda: _make_store(vm))


def with_callables(vm: Vm, options: Value, *keys: str) -> Value:
    """The options with the functions under ``keys`` as Python ones; what is no function stays."""
    if type(options) is not dict:
        return options
    return {**options, **{key: _callable(vm, options[key]) for key in keys if key in options}}


def callables_within(vm: Vm, value: Value) -> Value:
    """``value`` with Python functions for the functions anywhere in its dicts and lists."""
    if type(value) is dict:
        return {key: callables_within(vm, item) for key, item in value.items()}
    if type(value) is list:
        return [callables_within(vm, item) for item in value]
    return _callable(vm, value)


def _callable(vm: Vm, value: Value) -> Any:
    return python_function(vm, value) if type(value) in (Fn, Builtin) else value


class _PythonFunction:
    """A function of Harn that Python can call. It is shown as what it is: options may want its text."""

    __slots__ = ("_function", "_vm")

    def __init__(self, vm: Vm, function: Value) -> None:
        self._vm = vm
        self._function = function

    def __call__(self, *args: Value) -> Value:
        try:
            return self._vm.call(self._function, *args)
        except Interrupted as error:
            raise Interruption(str(error)) from error

    @property
    def type_name(self) -> str:
        return type_name(self._function)

    def display(self) -> str:
        return display(self._function)


def python_function(vm: Vm, function: Value) -> Callable[..., Any]:
    """A function of Harn for a domain package to call."""
    return _PythonFunction(vm, function)
