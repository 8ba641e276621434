"""Which module has the methods of which values."""

from __future__ import annotations

import sys

from harnpy.vm.declare.builtin import Declaration
from harnpy.vm.run.pacing import handle
from harnpy.vm.values.objects import Range

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.vm import Vm

#: The kinds of Python's own types; a value class says its own in `type_name`.
_PLAIN: dict[type, str] = {str: "string", list: "list", dict: "dict"}
#: The module with the methods of each kind. No module of a kind is loaded before a program calls one.
_MODULES = {
    "string": "strings",
    "list": "lists",
    "dict": "dicts",
    "set": "sets",
    "range": "ranges",
    "iter": "iters",
    "generator": "iters",
    "stream": "iters",
    "channel": "iters",
}

#: The kinds whose methods `harnpy builtins KIND` lists. Spec: 09 §4.5.
LISTED = ("string", "list", "dict", "set", "range", "iter", "generator", "stream")


def find(type_: type, name: str) -> Declaration | None:
    """The method ``name`` of values of Python type ``type_``.

    Looks through the receiver's module each time, some ten microseconds: keep the result.
    """
    receiver = _PLAIN.get(type_) or getattr(type_, "type_name", None)
    return declared(receiver).get(name) if receiver in _MODULES else None


def has_methods(receiver: str) -> bool:
    return receiver in _MODULES


def names(receiver: str) -> list[str]:
    """The method names of ``receiver`` ("list", "iter" …), sorted; none for a kind without methods."""
    return sorted(declared(receiver)) if receiver in _MODULES else []


def declared(receiver: str) -> dict[str, Declaration]:
    """Every method of ``receiver`` by name."""
    module = "harnpy.vm.run.methods." + _MODULES[receiver]
    __import__(module)
    own = {
        declaration.name: declaration
        for function in vars(sys.modules[module]).values()
        for declaration in getattr(function, "declarations", ())
        if declaration.receiver == receiver
    }
    if receiver != "range":
        return own
    return {name: _lifted(method) for name, method in declared("iter").items()} | own


def _lifted(method: Declaration) -> Declaration:
    """An iterator method as a range has it: on a fresh handle each time. Spec: 02 §16."""
    function = method.function

    def on_range(vm: Vm, self: Range, *args: Any) -> Any:
        return function(vm, handle(self, vm.signal, vm.poll), *args)

    on_range.__doc__ = function.__doc__
    return Declaration(method.signature_text, "range methods", on_range, False, "range")
