"""Methods: from a receiver's type and a method's name to the function to run. Spec: 02 §14.4, 04 §3.

Generated code indexes a `MethodTable`, one for each method name and number of arguments in a program, by the
receiver's Python type. Entries are filled in as types are met; for a type without the method the entry
refuses the call. The methods themselves are in one module a receiver, loaded when a program first calls one
of them; these modules hold nothing but `@method` functions and their helpers.
"""

from __future__ import annotations

import sys

from harnpy.vm.declare import Declaration
from harnpy.vm.errors import TypeFault
from harnpy.vm.values import Builtin, Fn, Range, Struct, type_name
from harnpy.vm.values.iterators import handle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Final, Never

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

    #: ``(vm, receiver, *args)``
    Method = Callable[..., Value]
    #: The `impl` methods of a program: struct name, then method name.
    Impls = dict[str, dict[str, Fn]]

#: The kinds of Python's own types; a value class says its own in `type_name`.
_PLAIN: dict[type, str] = {str: "string", list: "list", dict: "dict"}
#: The module with the methods of each kind. No module of a kind is loaded before a program calls one.
_MODULES = {
    "string": "string_methods",
    "list": "list_methods",
    "dict": "dict_methods",
    "set": "dict_methods",
    "range": "iter_methods",
    "iter": "iter_methods",
    "generator": "iter_methods",
    "stream": "iter_methods",
    "channel": "iter_methods",
}

#: The kinds whose methods `harnpy builtins KIND` lists. Spec: 09 §4.5.
LISTED = ("string", "list", "dict", "set", "range", "iter", "generator", "stream")


def method_of(type_: type, name: str) -> Declaration | None:
    """Return the method ``name`` of values of Python type ``type_``."""
    receiver = _PLAIN.get(type_) or getattr(type_, "type_name", None)
    return declared_methods(receiver).get(name) if receiver in _MODULES else None


def has_methods(receiver: str) -> bool:
    return receiver in _MODULES


def method_names(receiver: str) -> list[str]:
    """The method names of ``receiver`` ("list", "iter" …), sorted; none for a kind without methods."""
    return sorted(declared_methods(receiver)) if receiver in _MODULES else []


class _Table:
    """The methods of each receiver, as its module declares them; read on first use."""

    declared: Final[dict[str, dict[str, Declaration]]] = {}


def declared_methods(receiver: str) -> dict[str, Declaration]:
    """Return every method of ``receiver`` by name."""
    if receiver not in _Table.declared:
        module = "harnpy.vm.run." + _MODULES[receiver]
        __import__(module)
        found = {
            declaration.name: declaration
            for function in vars(sys.modules[module]).values()
            for declaration in getattr(function, "declarations", ())
            if declaration.receiver == receiver
        }
        if receiver == "range":
            found = {name: _lifted(method) for name, method in declared_methods("iter").items()} | found
        _Table.declared[receiver] = found
    return _Table.declared[receiver]


def _lifted(method: Declaration) -> Declaration:
    """An iterator method as a range has it: on a fresh handle each time. Spec: 02 §16."""
    function = method.function

    def on_range(vm: Vm, self: Range, *args: Any) -> Any:
        return function(vm, handle(self, vm.signal, vm.poll), *args)

    on_range.__doc__ = function.__doc__
    return Declaration(method.signature_text, "range methods", on_range, False, "range")


# Calls of methods that a value doesn't have: what is wrong, and what was probably meant. Spec: 04 §3.
#
# Loaded when a program makes such a call.


#: Names from other languages, and what such a method is called here: the first one that the kind has.
_ELSEWHERE = {
    "add": ("push",),
    "append": ("push", "add"),
    "every": ("all",),
    "flatMap": ("flat_map",),
    "forEach": ("for_each", "each"),
    "includes": ("contains", "has"),
    "length": ("count",),
    "map": ("map_values",),
    "size": ("count",),
    "some": ("any",),
    "strip": ("trim",),
}


def unknown_method(vm: Vm, receiver: Value, name: str, own: Iterable[str] = ()) -> TypeFault:
    """Return the error of ``receiver.name(…)``; ``own``: what a dict or struct brings itself."""
    from harnpy.formats import suggestions as words

    kind = type_name(receiver)
    struct = receiver.type if type(receiver) is Struct else ""
    text = words.unknown_method(
        kind,
        name,
        method_hint(kind, name, [*method_names(kind), *own], vm.builtins.signature),
        has_methods=has_methods(kind),
        struct=struct,
        is_field=bool(struct) and name in receiver,
    )
    return TypeFault(text)


def not_callable(name: str, entry: Value) -> TypeFault:
    """Return the error of ``dict.name(…)`` when the dict's entry of that name is ``entry``."""
    return TypeFault(f"entry `{name}` of the dict is not callable, got {type_name(entry)}")


def method_hint(kind: str, name: str, known: list[str], signature: Callable[[str], str]) -> str:
    """Return how the error of a call of ``name`` ends, where values have the ``known`` methods. ``signature``
    returns that of a builtin."""
    from harnpy.formats.suggestions import nearest_at_run_time
    from harnpy.vm.declare import Signature

    meant = next((method for method in _ELSEWHERE.get(name, ()) if method in known), None)
    if meant is None and "to_list" in known and name in method_names("list"):
        return f" (did you mean `to_list().{name}`?)"
    if (kind, name) == ("string", "join"):
        return " (it is a method of the list: `list.join(separator)`)"
    declared = signature(name) if meant is None else ""
    if declared and Signature(declared).begins_with(kind):
        return f" (did you mean `{name}(…)`?)"
    meant = meant or nearest_at_run_time(name, known)
    if meant:
        return f" (did you mean `{meant}`?)"
    listed = kind in LISTED
    return f" (`harnpy builtins {kind}` lists its methods)" if listed else ""


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
        declaration = method_of(type_, self.name)
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
