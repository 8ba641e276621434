"""``@builtin`` and ``@method``: a builtin is declared once, in the reference's notation.

    @builtin('split(s: string, sep: string = " ") -> list', family="strings")
    def split(vm: Vm, s: str, sep: str) -> list[str]:
        \"""The pieces of `s` between occurrences of `sep`. Spec: 04 §4.2.\"""

The line drives argument binding, completion, help, `harnpy builtins` and the docs. The decorators
only attach a `Declaration`; `harnpy.builtins.catalog` gathers them.

Binding is lenient (04 §0.1), and lenient only here: a missing argument reads as its default or nil,
extras are dropped, a `string` parameter takes the display form of anything (missing: ""), an `int`
one reads as absent when it is given something else. With ``strict=True`` a wrong type throws
``<fn>: `x` must be a string`` instead (08 §1.2); ``x?`` also takes nil. Other types are
documentation: the function looks at what it got.
"""

from __future__ import annotations

from harnpy.syntax.signature import Signature
from harnpy.vm.errors import CategorizedFault, Thrown
from harnpy.vm.values import Builtin, display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol, TypeVar

    from harnpy.vm.machine import Vm

    class Catalog(Protocol):
        """What a Vm wants of the table of all builtins."""

        def names(self) -> Mapping[str, str]: ...
        def find(self, name: str) -> Declaration | None: ...
        def fingerprint(self) -> str: ...
        def global_names(self) -> tuple[str, ...]: ...
        def global_value(self, name: str) -> Any: ...

    F = TypeVar("F", bound=Callable[..., Any])


class Declaration:
    """A builtin function, or a method when ``receiver`` names a value type."""

    __slots__ = ("family", "function", "receiver", "signature_text", "strict")

    def __init__(
        self,
        signature_text: str,
        family: str,
        function: Callable[..., Any],
        strict: bool,
        receiver: str | None,
    ) -> None:
        self.signature_text = signature_text
        self.family = family
        self.function = function
        self.strict = strict
        self.receiver = receiver

    @property
    def name(self) -> str:
        return self.signature_text.partition("(")[0]

    @property
    def doc(self) -> str:
        return (self.function.__doc__ or "").strip()

    @property
    def summary(self) -> str:
        """The docstring's first line."""
        return self.doc.partition("\n")[0]

    def signature(self) -> Signature:
        return Signature(self.signature_text)

    def bind(self) -> Builtin:
        """The callable that generated code calls, with leniency compiled in."""
        return Builtin(self.name, *_binder(self))


class BuiltinTable:
    """The builtins of one Vm: the catalog's, the embedder's, and which of them are denied."""

    def __init__(self, catalog: Catalog, vm: Vm, deny: frozenset[str], allow: frozenset[str] | None) -> None:
        self.catalog = catalog
        self.vm = vm
        self.deny = deny
        self.allow = allow
        self.registered: dict[str, Declaration] = {}
        self._bound: dict[str, Builtin] = {}

    def register(self, declaration: Declaration) -> None:
        """Add a builtin of the embedder's; it hides one of the same name."""
        self.registered[declaration.name] = declaration
        self._bound.pop(declaration.name, None)

    def find(self, name: str) -> Declaration | None:
        return self.registered.get(name) or self.catalog.find(name)

    def is_builtin(self, name: str) -> bool:
        return name in self.registered or name in self.catalog.names()

    def is_global(self, name: str) -> bool:
        return name in self.vm.global_names()

    def names(self) -> list[str]:
        return [*self.catalog.names(), *self.registered]

    def arity(self, name: str) -> int | None:
        """How many arguments a builtin takes; None: any number."""
        return self.bound(name).max_args

    def bound(self, name: str) -> Builtin:
        """The builtin as programs call it; denied ones fail (09 §2)."""
        found = self._bound.get(name)
        if found is None:
            declaration = self.find(name)
            if declaration is None:
                raise LookupError(name)
            found = self._bound[name] = _denied(name) if self.denies(name) else declaration.bind()
        return found

    def denies(self, name: str) -> bool:
        return name in self.deny or (self.allow is not None and name not in self.allow)

    def fingerprint(self) -> str:
        """Changes whenever compiled programs may mean something else."""
        extra = ",".join(sorted({*self.registered, *self.vm.global_names()}))
        return f"{self.catalog.fingerprint()};{extra}"


def _denied(name: str) -> Builtin:
    def refuse(vm: Vm, *args: Any) -> None:
        raise CategorizedFault("tool_rejected", f"Tool '{name}' is not permitted.")

    return Builtin(name, refuse, None)


def builtin(signature: str, *, family: str, strict: bool = False) -> Callable[[F], F]:
    """Declare a builtin function ``(vm, *args)``; an `async def` suspends the calling task while it waits."""
    return _declare(signature, family, strict, None)


def method(receiver: str, signature: str) -> Callable[[F], F]:
    """Declare a method ``(vm, self, *args)`` of the value type ``receiver``, e.g. ``"list"``."""
    return _declare(signature, receiver + " methods", False, receiver)


def _declare(signature: str, family: str, strict: bool, receiver: str | None) -> Callable[[F], F]:
    def attach(function: F) -> F:
        declared = getattr(function, "declarations", ())
        declaration = Declaration(signature, family, function, strict, receiver)
        function.declarations = (*declared, declaration)  # type: ignore[attr-defined]
        return function

    return attach


_COROUTINE = 0x80
"""`inspect.CO_COROUTINE`: set in the code of an `async def`."""

_ARTICLES = {"string": "a string", "int": "an int", "dict": "a dict", "list": "a list", "bool": "a bool"}
_PYTHON = {"string": str, "int": int, "dict": dict, "list": list, "bool": bool}


def _binder(declaration: Declaration) -> tuple[Callable[..., Any], int | None]:
    """The function's lenient form and the number of arguments it takes (None: any)."""
    signature = declaration.signature()
    function = declaration.function
    space: dict[str, Any] = {"fn": _waiting(function), "display": display, "reject": _reject}
    heads, passed = [], []
    receiver = "self, " if declaration.receiver else ""
    for i, p in enumerate(signature.parameters):
        if p.rest:
            heads.append(f"*{p.name}")
            passed.append(f"*{p.name}")
            continue
        default = "" if p.type == "string" and not p.optional and not p.has_default else p.default
        space[f"d{i}"] = default
        heads.append(f"{p.name}=d{i}")
        passed.append(_argument(declaration, p.name, p.type, p.optional, i, space))
    count = None if signature.rest else len(signature.parameters)
    if passed == [head.partition("=")[0] for head in heads] and space["fn"] is function:
        return _with_defaults(function, [p.default for p in signature.parameters if not p.rest]), count
    text = f"def bound(vm, {receiver}{', '.join(heads)}):\n    return fn(vm, {receiver}{', '.join(passed)})\n"
    exec(compile(text, f"<binder of {declaration.name}>", "exec"), space)  # noqa: S102
    return space["bound"], count


def _waiting(function: Callable[..., Any]) -> Callable[..., Any]:
    """A coroutine function as one that suspends the calling task until its result is there."""
    code = getattr(function, "__code__", None)
    if code is None or not code.co_flags & _COROUTINE:
        return function
    return lambda vm, *args: vm.tasks.await_coroutine(function(vm, *args))


def _with_defaults(function: Callable[..., Any], defaults: list[Any]) -> Callable[..., Any]:
    """The function itself, its declared defaults put in: nothing to convert, nothing to pay."""
    # `types.FunctionType` by another name: its module is not worth loading at every start.
    new: Any = type(_with_defaults)
    plain: Any = function
    bare: Callable[..., Any] = new(
        plain.__code__, plain.__globals__, plain.__name__, tuple(defaults), plain.__closure__
    )
    return bare


def _argument(
    declaration: Declaration, name: str, type_: str, optional: bool, i: int, space: dict[str, Any]
) -> str:
    """The Python text that turns the argument ``name`` into what the function is given."""
    if declaration.strict and type_ in _PYTHON:
        wanted = _ARTICLES[type_] + (" or nil" if optional else "")
        space[f"m{i}"] = f"{declaration.name}: `{name}` must be {wanted}"
        space[f"t{i}"] = _PYTHON[type_]
        also = f" or {name} is None" if optional else ""
        return f"{name} if type({name}) is t{i}{also} else reject(m{i})"
    if type_ == "string":
        spare = f"None if {name} is None else " if optional else ""
        return f"{name} if type({name}) is str else {spare}display({name})"
    if type_ == "int":
        return f"{name} if type({name}) is int else d{i}"
    return name


def _reject(message: str) -> None:
    raise Thrown(message)
