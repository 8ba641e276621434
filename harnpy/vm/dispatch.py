"""Methods: from a receiver's type and a method's name to the function to run. Spec: reference 02 §14.4.

Generated code indexes a `MethodTable`, one for each method name and number of arguments in a program, by
the receiver's Python type. What a type has no such method for is filled in as it is met.
"""

from __future__ import annotations

from harnpy.vm import methods
from harnpy.vm.values import Builtin, Fn, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from harnpy.vm.machine import Vm

    Value = Any
    #: ``(vm, receiver, *args)``
    Method = Callable[..., Value]
    #: The `impl` methods of a program: struct name, then method name.
    Impls = dict[str, dict[str, Fn]]


class MethodTable(dict):  # type: ignore[type-arg]
    """Methods of one name, taking a fixed number of arguments, by receiver type."""

    def __init__(self, name: str, count: int, impls: Impls) -> None:
        super().__init__()
        self.name = name
        self.count = count
        self.impls = impls

    def __missing__(self, type_: type) -> Method:
        method = self[type_] = self.find(type_)
        return method

    def find(self, type_: type) -> Method:
        if type_ is Struct:
            return self.of_struct
        declaration = methods.find(type_, self.name)
        if declaration is not None:
            return _taking(declaration.bind(), self.count)
        return self.of_entry if type_ is dict else _nothing

    def of_struct(self, vm: Vm, receiver: Struct, *args: Value) -> Value:
        """A method from an `impl` block of the struct; unknown ones give nil (02 §15.3)."""
        fn = self.impls.get(receiver.type, {}).get(self.name)
        return None if fn is None else vm.calls.call(fn, 1, (receiver, *args))

    def of_entry(self, vm: Vm, receiver: dict[str, Value], *args: Value) -> Value:
        """A callable entry of a dict, called without the dict."""
        entry = receiver.get(self.name)
        if type(entry) is Fn or type(entry) is Builtin:
            return vm.calls.call(entry, 1, args)
        return None


def _nothing(vm: Vm, receiver: Value, *args: Value) -> None:
    """An unknown method is nil, not an error."""


def _taking(bound: Builtin, count: int) -> Method:
    """``bound`` for calls with ``count`` arguments: surplus ones are dropped."""
    most = bound.max_args
    if most is None or count <= most:
        return bound.call
    call = bound.call
    return lambda vm, receiver, *args: call(vm, receiver, *args[:most])


def call_method(vm: Vm, impls: Impls, receiver: Value, name: str, args: Sequence[Value]) -> Value:
    """A method call whose number of arguments is known only now."""
    return MethodTable(name, len(args), impls)[type(receiver)](vm, receiver, *args)
