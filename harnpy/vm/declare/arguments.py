"""Converting a builtin's arguments: leniently, and only here. Spec: 04 §0.1.

A missing argument reads as its default or nil, extras are dropped, a `string` parameter takes the display
form of anything (missing: ""), an `int` one reads as absent when it is given something else. A *strict*
builtin throws ``<fn>: `x` must be a string`` instead (08 §1.2); ``x?`` also takes nil. Other types are
documentation: the function itself checks its arguments.

The conversions are Python text. Generated code has them in line, except where the type is known; a builtin
that is used as a value gets a function made of the same text.
"""

from __future__ import annotations

from harnpy.vm.errors import Thrown
from harnpy.vm.values.objects import Builtin, display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Never

    from harnpy.vm.declare.builtin import Declaration, Parameter

_COROUTINE = 0x80
"""`inspect.CO_COROUTINE`: set in the code of an `async def`."""
_COLLECTS_POSITIONALS = 0x04
"""`inspect.CO_VARARGS`."""

#: Types that are checked or converted: their words in messages, and their Python types.
_CHECKED = {
    "string": ("a string", "str"),
    "int": ("an int", "int"),
    "dict": ("a dict", "dict"),
    "list": ("a list", "list"),
    "bool": ("a bool", "bool"),
}


def conversion(declaration: Declaration, p: Parameter, variable: str) -> str:
    """Return the Python text that converts ``variable``, the argument of the parameter ``p``."""
    if declaration.counted:
        return variable
    if declaration.strict and p.type in _CHECKED:
        article, python = _CHECKED[p.type]
        also = f" or {variable} is None" if p.optional else ""
        message = f"{declaration.name}: `{p.name}` must be {article}{' or nil' if p.optional else ''}"
        return f"({variable} if type({variable}) is {python}{also} else reject({message!r}))"
    if p.type == "string":
        spare = f"None if {variable} is None else " if p.optional else ""
        return f"({variable} if type({variable}) is str else {spare}display({variable}))"
    if p.type == "int":
        return f"({variable} if type({variable}) is int else {p.default!r})"
    return variable


def converts(declaration: Declaration, p: Parameter) -> bool:
    """Return whether `conversion` does anything with the argument of ``p``."""
    if declaration.counted:
        return False
    return p.type in ("string", "int") or (declaration.strict and p.type in _CHECKED)


def needs_value(declaration: Declaration, p: Parameter) -> bool:
    """Return whether a missing argument is converted too, as nil: a strict builtin refuses it."""
    return declaration.strict and p.type in _CHECKED and not p.optional


def default(p: Parameter) -> Any:
    """Return the value of a missing argument."""
    return "" if p.type == "string" and not p.optional and not p.has_default else p.default


def reject(message: str) -> Never:
    raise Thrown(message)


def direct(declaration: Declaration) -> Callable[..., Any]:
    """Return the Python function for callers that convert the arguments; missing ones have defaults."""
    function = declaration.function
    if declaration.counted:
        return _waiting(function)
    if not _names_parameters(declaration):
        return bind(declaration).call
    defaults = tuple(default(p) for p in declaration.signature().parameters if not p.rest)
    # `types.FunctionType`, without loading `types` at every start.
    new: Any = type(direct)
    plain: Any = function
    bare: Callable[..., Any] = new(
        plain.__code__, plain.__globals__, plain.__name__, defaults, plain.__closure__
    )
    return bare


def _names_parameters(declaration: Declaration) -> bool:
    """Return whether the Python function has just the declared parameters: then it can be given defaults."""
    code = declaration.function.__code__
    named = code.co_argcount - (2 if declaration.receiver else 1)
    declared = sum(not p.rest for p in declaration.signature().parameters)
    return named == declared and not code.co_flags & _COROUTINE


def most_arguments(declaration: Declaration) -> int | None:
    """Return how many arguments are passed on; None means all."""
    signature = declaration.signature()
    surplus = declaration.counted and declaration.function.__code__.co_flags & _COLLECTS_POSITIONALS
    return None if signature.rest or surplus else len(signature.parameters)


def bind(declaration: Declaration) -> Builtin:
    """Return the builtin as a value: a function that converts its arguments."""
    parameters = declaration.signature().parameters
    if declaration.counted or (_names_parameters(declaration) and not _converts(declaration)):
        return Builtin(declaration.name, direct(declaration), most_arguments(declaration))
    space: dict[str, Any] = {"fn": _waiting(declaration.function), "display": display, "reject": reject}
    heads, passed = [], []
    for i, p in enumerate(parameters):
        # Not by the parameter's own name: it may be one of the names above.
        argument = f"a{i}"
        space[f"d{i}"] = None if needs_value(declaration, p) else default(p)
        heads.append(f"*{argument}" if p.rest else f"{argument}=d{i}")
        passed.append(f"*{argument}" if p.rest else conversion(declaration, p, argument))
    first = "vm, self" if declaration.receiver else "vm"
    text = f"def bound({', '.join([first, *heads])}):\n    return fn({', '.join([first, *passed])})\n"
    exec(compile(text, f"<binder of {declaration.name}>", "exec"), space)  # noqa: S102
    return Builtin(declaration.name, space["bound"], most_arguments(declaration))


def _converts(declaration: Declaration) -> bool:
    return any(converts(declaration, p) for p in declaration.signature().parameters if not p.rest)


def _waiting(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a coroutine function as one that suspends the calling task until the result is there."""
    if not function.__code__.co_flags & _COROUTINE:
        return function
    return lambda vm, *args: vm.tasks.await_coroutine(function(vm, *args))
