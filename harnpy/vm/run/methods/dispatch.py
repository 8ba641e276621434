"""Methods: from a receiver's type and a method's name to the function to run. Spec: 02 §14.4.

Generated code indexes a `MethodTable`, one for each method name and number of arguments in a program, by
the receiver's Python type. Entries are filled in as types are met; for a type without the method the entry
refuses the call.
"""

from __future__ import annotations

from harnpy.vm.run.methods import receivers
from harnpy.vm.values.objects import Builtin, Fn, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Never

    from harnpy.vm.errors import TypeFault
    from harnpy.vm.vm import Vm

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
        declaration = receivers.find(type_, self.name)
        if declaration is not None:
            return _taking(declaration.bind(), self.count)
        if type_ is not dict:
            return _unknown(self.name)
        return (self.of_entry_0, self.of_entry_1, self.of_entry_2, self.of_entry)[min(self.count, 3)]

    def own(self, vm: Vm, depth: int, receiver: Struct, *args: Value) -> Value:
        """A method from an `impl` block of the struct."""
        methods = self.impls.get(receiver.type, {})
        fn = methods.get(self.name)
        if fn is None:
            raise _unknown_method(vm, receiver, self.name, methods)
        return vm.calls.call(fn, depth, (receiver, *args))

    def of_struct(self, vm: Vm, receiver: Struct, *args: Value) -> Value:
        return self.own(vm, 1, receiver, *args)

    def of_entry(self, vm: Vm, receiver: dict[str, Value], *args: Value) -> Value:
        """A callable entry of a dict, called without the dict."""
        entry = receiver.get(self.name)
        if type(entry) is Fn or type(entry) is Builtin:
            return vm.calls.call(entry, 1, args)
        from harnpy.vm.run.methods.unknown import not_callable

        if self.name in receiver:
            raise not_callable(self.name, entry)
        raise _unknown_method(vm, receiver, self.name, receiver)

    # The same for few arguments, passed on one by one: `f(*args)` takes a piece of the C stack, and functions
    # in dicts recurse.

    def of_entry_0(self, vm: Vm, receiver: dict[str, Value]) -> Value:
        fn = receiver.get(self.name)
        return fn.call(1) if type(fn) is Fn and fn.arity == 0 else self.of_entry(vm, receiver)

    def of_entry_1(self, vm: Vm, receiver: dict[str, Value], a: Value) -> Value:
        fn = receiver.get(self.name)
        return fn.call(1, a) if type(fn) is Fn and fn.arity == 1 else self.of_entry(vm, receiver, a)

    def of_entry_2(self, vm: Vm, receiver: dict[str, Value], a: Value, b: Value) -> Value:
        fn = receiver.get(self.name)
        return fn.call(1, a, b) if type(fn) is Fn and fn.arity == 2 else self.of_entry(vm, receiver, a, b)


def _unknown(name: str) -> Method:
    """Return what stands for the method ``name`` with values that have none."""

    def refuse(vm: Vm, receiver: Value, *args: Value) -> Never:
        raise _unknown_method(vm, receiver, name)

    return refuse


def _unknown_method(vm: Vm, receiver: Value, name: str, own: Iterable[str] = ()) -> TypeFault:
    from harnpy.vm.run.methods.unknown import unknown_method

    return unknown_method(vm, receiver, name, own)


def _taking(bound: Builtin, count: int) -> Method:
    """``bound`` for calls with ``count`` arguments: surplus ones are dropped."""
    most = bound.max_args
    if most is None or count <= most:
        return bound.call
    call = bound.call
    return lambda vm, receiver, *args: call(vm, receiver, *args[:most])


def call_method(vm: Vm, impls: Impls, depth: int, receiver: Value, name: str, args: Sequence[Value]) -> Value:
    """A method call whose number of arguments is known only now."""
    table = MethodTable(name, len(args), impls)
    if type(receiver) is Struct:
        return table.own(vm, depth, receiver, *args)
    return table[type(receiver)](vm, receiver, *args)
