"""Harn functions as Python callables, for the domain packages to call."""

from __future__ import annotations

from harnpy.faults import Interruption, paced
from harnpy.formats.nesting import refuse_endless
from harnpy.vm.errors import Interrupted
from harnpy.vm.values import Builtin, Fn, display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm


def with_callables(vm: Vm, options: Value, *keys: str) -> Value:
    """Return the options with the functions under ``keys`` as Python callables; other values stay."""
    if type(options) is not dict:
        return options
    return {**options, **{key: _callable(vm, options[key]) for key in keys if key in options}}


def callables_within(vm: Vm, value: Value) -> Value:
    """Return ``value`` with Python callables for the functions anywhere in its dicts and lists."""
    if type(value) is dict:
        return {key: callables_within(vm, item) for key, item in paced([*value.items()])}
    if type(value) is list:
        return [callables_within(vm, item) for item in paced(value)]
    return _callable(vm, value)


def _callable(vm: Vm, value: Value) -> Any:
    return python_function(vm, value) if type(value) in (Fn, Builtin) else value


class _PythonFunction:
    """A Harn function that Python can call. It is displayed as the function, as options may show it."""

    __slots__ = ("_function", "_vm")

    def __init__(self, vm: Vm, function: Value) -> None:
        self._vm = vm
        self._function = function

    def __call__(self, *args: Value) -> Value:
        try:
            result = self._vm.call(self._function, *args)
            refuse_endless(result)
            return result
        except Interrupted as error:
            raise Interruption(str(error)) from error

    @property
    def type_name(self) -> str:
        return type_name(self._function)

    def display(self) -> str:
        return display(self._function)


def python_function(vm: Vm, function: Value) -> Callable[..., Any]:
    """Return a Harn function as a Python callable, for a domain package."""
    return _PythonFunction(vm, function)
