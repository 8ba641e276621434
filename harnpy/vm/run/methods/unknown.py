"""Calls of methods that a value doesn't have: what is wrong, and what was probably meant. Spec: 04 §3.

Loaded when a program makes such a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.text import unknown_methods as words
from harnpy.text.spell import nearest_at_run_time
from harnpy.vm.errors import TypeFault
from harnpy.vm.run.methods import receivers
from harnpy.vm.values.objects import Struct, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harnpy.vm.vm import Vm

    Value = Any

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
    kind = type_name(receiver)
    struct = receiver.type if type(receiver) is Struct else ""
    text = words.unknown_method(
        kind,
        name,
        hint(kind, name, [*receivers.names(kind), *own], vm.builtins.is_builtin),
        has_methods=receivers.has_methods(kind),
        struct=struct,
        is_field=bool(struct) and name in receiver,
    )
    return TypeFault(text)


def not_callable(name: str, entry: Value) -> TypeFault:
    """Return the error of ``dict.name(…)`` when the dict's entry of that name is ``entry``."""
    return TypeFault(f"entry `{name}` of the dict is not callable, got {type_name(entry)}")


def hint(kind: str, name: str, known: list[str], is_builtin: Callable[[str], bool]) -> str:
    """Return how the error of a call of ``name`` ends, where values have the ``known`` methods."""
    meant = next((method for method in _ELSEWHERE.get(name, ()) if method in known), None)
    if meant is None and is_builtin(name):
        return f" (did you mean `{name}(…)`?)"
    meant = meant or nearest_at_run_time(name, known)
    if meant:
        return f" (did you mean `{meant}`?)"
    listed = kind in receivers.LISTED
    return f" (`harnpy builtins {kind}` lists its methods)" if listed else ""
