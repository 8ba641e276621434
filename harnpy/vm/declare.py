"""Declaring builtins: `@builtin` and `@method`, the conversion of arguments, and the builtins of one Vm.

    @builtin('split(s: string, sep: string = " ") -> list', family="strings")
    def split(vm: Vm, s: str, sep: str) -> list[str]:
        \"\"\"The pieces of `s` between occurrences of `sep`. Spec: 04 §4.2.\"\"\"

The line, its `Signature`, drives argument binding, completion, help, `harnpy builtins` and the docs. The
decorators only attach a `Declaration`; `harnpy.builtins.catalog` gathers them. A module whose builtins share
their options states them once, `builtin = partial(declare, family="strings")`.
"""

from __future__ import annotations

from harnpy.vm.errors import CategorizedFault, RuntimeFault, Thrown, binder
from harnpy.vm.values import Builtin, display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Never, Protocol, TypeVar

    from harnpy.check.knowledge import Knowledge
    from harnpy.vm.resolve import Preparation
    from harnpy.vm.vm import Vm

    F = TypeVar("F", bound=Callable[..., Any])

    class Catalog(Protocol):
        """The table of all builtins, as far as a Vm needs it."""

        def names(self) -> Mapping[str, str]: ...
        def find(self, name: str, module: str = "") -> Declaration | None: ...
        def module_of(self, name: str) -> str: ...
        def signature(self, name: str) -> str: ...
        def absence(self, name: str) -> str | None: ...
        def knowledge(self, table: BuiltinTable) -> Knowledge: ...
        def fingerprint(self) -> str: ...
        def global_names(self) -> tuple[str, ...]: ...
        def global_value(self, name: str, bound: Callable[[str], Builtin]) -> Any: ...
        def raises_faults(self, module: str) -> bool: ...


# Signatures: how the line of a declaration is read. Spec: 03 §8.3, 04 §0.1.
#
#     split(s: string, sep: string = " ") -> list
#
# It is read by hand: a warm start must not load the parser to call `println`.


class Parameter:
    """One parameter. ``default`` is the written one, or None (nil) where there is none."""

    __slots__ = ("default", "has_default", "name", "optional", "rest", "type")

    def __init__(
        self, name: str, type: str, optional: bool, rest: bool, has_default: bool, default: Any
    ) -> None:
        self.name = name
        self.type = type
        self.optional = optional
        self.rest = rest
        self.has_default = has_default
        self.default = default


class Signature:
    """A callable's name, type parameters, parameters and result type; ``text`` is the notation as written.

    A result that is written `T?` is `T | nil` and ``lenient``: nil is for arguments that mean nothing, and
    the checks take it for a `T`.
    """

    __slots__ = ("lenient", "name", "parameters", "returns", "text", "type_params")

    def __init__(self, text: str) -> None:
        self.text = text
        head, _, tail = text.partition("(")
        inside, _, after = tail.rpartition(")")
        self.name, _, type_params = head.partition("<")
        self.type_params = tuple(_split(type_params.rstrip(">")))
        written = after.partition("->")[2].strip() or "any"
        self.lenient = written.endswith("?")
        self.returns = f"{written[:-1]} | nil" if self.lenient else written
        self.parameters = tuple(_parameter(part) for part in _split(inside))

    def begins_with(self, kind: str) -> bool:
        """Return True if the first parameter takes values of a kind (`list`, `iter` …), or their text."""
        types = _split(self.parameters[0].type.replace("|", ",")) if self.parameters else []
        names = {"dict" if type.startswith("{") else type.partition("<")[0].rstrip("?") for type in types}
        kinds = {kind, "dict"} if kind == "struct" else {kind}
        return not names.isdisjoint({*kinds, "any", "string", *self.type_params})

    @property
    def rest(self) -> bool:
        return bool(self.parameters) and self.parameters[-1].rest


def name_of(signature: str) -> str:
    """Return the name that a signature begins with."""
    return signature.partition("(")[0].partition("<")[0]


def _split(text: str) -> list[str]:
    """The comma-separated pieces of ``text``; commas in brackets and quotes don't count."""
    pieces, depth, quoted, begin = [], 0, False, 0
    for i, c in enumerate(text):
        if c == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif c in "([{<":
            depth += 1
        elif c in ")]}>":
            depth -= text[i - 1 : i + 1] != "->"
        elif c == "," and depth == 0:
            pieces.append(text[begin:i])
            begin = i + 1
    pieces.append(text[begin:])
    return [piece.strip() for piece in pieces if piece.strip()]


def _parameter(text: str) -> Parameter:
    rest = text.startswith("...")
    head, has_default, default = text.removeprefix("...").partition(" = ")
    name, _, type_ = head.partition(":")
    optional = name.endswith("?")
    return Parameter(
        name.rstrip("?").strip(),
        type_.strip() or "any",
        optional,
        rest,
        bool(has_default),
        _literal(default.strip()) if has_default else None,
    )


def _literal(text: str) -> Any:
    words = {"nil": None, "true": True, "false": False}
    if text in words:
        return words[text]
    if text.startswith('"'):
        return text[1:-1]
    return float(text) if "." in text else int(text)


# What a module declares, and how its arguments are converted.


class Absent:
    """The type of `ABSENT`."""

    __slots__ = ()


#: In a ``counted`` builtin, the Python default of a parameter whose absence is not the same as nil.
ABSENT: Any = Absent()


def require(message: str, *arguments: Any) -> None:
    """Raise a runtime error when one of a ``counted`` builtin's arguments was not written."""
    if ABSENT in arguments:
        raise RuntimeFault(message)


class Declaration:
    """A builtin function, or a method when ``receiver`` names a value type.

    What is made of it is made once, for all Vms: nothing of a program is in it.
    """

    __slots__ = (
        "_bound",
        "_direct",
        "_reporting",
        "_signature",
        "counted",
        "family",
        "function",
        "guarded",
        "name",
        "receiver",
        "signature_text",
        "strict",
    )

    def __init__(
        self,
        signature_text: str,
        family: str,
        function: Callable[..., Any],
        strict: bool = False,
        receiver: str | None = None,
        counted: bool = False,
        guarded: bool = False,
    ) -> None:
        self.signature_text = signature_text
        self.name = name_of(signature_text)
        self.family = family
        self.function = function
        self.strict = strict
        self.receiver = receiver
        self.counted = counted
        self.guarded = guarded
        self._signature: Signature | None = None
        self._bound: Builtin | None = None
        self._direct: Callable[..., Any] | None = None
        self._reporting: dict[Callable[..., Any], Callable[..., Any]] = {}

    @property
    def doc(self) -> str:
        return (self.function.__doc__ or "").strip()

    @property
    def summary(self) -> str:
        """The docstring's first line."""
        return self.doc.partition("\n")[0]

    def signature(self) -> Signature:
        if self._signature is None:
            self._signature = Signature(self.signature_text)
        return self._signature

    def bind(self) -> Builtin:
        """Return the builtin as a value, which takes any arguments."""
        if self._bound is None:
            self._bound = _bound(self)
        return self._bound

    def direct(self) -> Callable[..., Any]:
        """Return the Python function for callers that convert the arguments; missing ones have defaults."""
        if self._direct is None:
            self._direct = _direct(self)
        return self._direct

    def reporting_faults(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``function``, which is this builtin, with its faults as Harn errors."""
        if function not in self._reporting:
            from harnpy.vm.errors import reporting_faults

            self._reporting[function] = reporting_faults(self.name, function)
        return self._reporting[function]


def builtin(
    signature: str, *, family: str, strict: bool = False, counted: bool = False, guarded: bool = False
) -> Callable[[F], F]:
    """Declare a builtin function ``(vm, *args)``; an `async def` suspends the calling task while it waits.

    ``strict``: wrong types are refused instead of converted. ``counted``: the function receives only the
    arguments that were written, unconverted, and its Python defaults stand for the rest (``assert_eq
    requires at least 2 arguments``); it may collect surplus ones in ``*surplus``. ``guarded``: the rules that
    hold in the running task may refuse it (07 §8.1).
    """
    return _declare(signature, family, strict=strict, counted=counted, guarded=guarded)


def method(receiver: str, signature: str) -> Callable[[F], F]:
    """Declare a method ``(vm, self, *args)`` of the value type ``receiver``, e.g. ``"list"``."""
    return _declare(signature, receiver + " methods", receiver=receiver)


def _declare(
    signature: str,
    family: str,
    strict: bool = False,
    receiver: str | None = None,
    counted: bool = False,
    guarded: bool = False,
) -> Callable[[F], F]:
    def attach(function: F) -> F:
        declared = getattr(function, "declarations", ())
        declaration = Declaration(signature, family, function, strict, receiver, counted, guarded)
        function.declarations = (*declared, declaration)  # type: ignore[attr-defined]
        return function

    return attach


# Converting a builtin's arguments: leniently, and only here. Spec: 04 §0.1.
#
# A missing argument reads as its default or nil, extras are dropped, a `string` parameter takes the display
# form of anything (missing: ""), an `int` one reads as absent when it is given something else. A *strict*
# builtin throws ``<fn>: `x` must be a string`` instead (08 §1.2); ``x?`` also takes nil. Other types are
# documentation: the function itself checks its arguments.
#
# The conversions are Python text. Generated code has them in line, except where the type is known; a builtin
# that is used as a value gets a function made of the same text.


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
        return f"({variable} if {variable}.__class__ is {python}{also} else reject({message!r}))"
    if p.type == "string":
        spare = f"None if {variable} is None else " if p.optional else ""
        return f"({variable} if {variable}.__class__ is str else {spare}display({variable}))"
    if p.type == "int":
        return f"({variable} if {variable}.__class__ is int else {p.default!r})"
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


def _direct(declaration: Declaration) -> Callable[..., Any]:
    function = declaration.function
    if declaration.counted:
        return _waiting(function)
    if not _names_parameters(declaration):
        return declaration.bind().call
    defaults = tuple(default(p) for p in declaration.signature().parameters if not p.rest)
    # `types.FunctionType`, without loading `types` at every start.
    new: Any = type(_direct)
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


def _bound(declaration: Declaration) -> Builtin:
    parameters = declaration.signature().parameters
    if declaration.counted or (_names_parameters(declaration) and not _converts(declaration)):
        return Builtin(declaration.name, declaration.direct(), most_arguments(declaration))
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
    return Builtin(
        declaration.name, binder(text, space, "bound", declaration.name), most_arguments(declaration)
    )


def _converts(declaration: Declaration) -> bool:
    return any(converts(declaration, p) for p in declaration.signature().parameters if not p.rest)


def _waiting(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a coroutine function as one that suspends the calling task until the result is there."""
    if not function.__code__.co_flags & _COROUTINE:
        return function
    return lambda vm, *args: vm.tasks.await_coroutine(function(vm, *args))


# The builtins that the programs of one Vm see.


class BuiltinTable:
    """The builtins of one Vm: the catalog's, the embedder's, and which of them are denied.

    A guarded one is checked at every call against the context of the running task. A caller that knows
    the ``module`` of a builtin (`module_of`) names it: then the catalog need not look the name up.
    """

    def __init__(self, catalog: Catalog, vm: Vm, deny: frozenset[str], allow: frozenset[str] | None) -> None:
        self.catalog = catalog
        self.vm = vm
        self.deny = deny
        self.allow = allow
        self.registered: dict[str, Declaration] = {}
        self.preparation: Preparation | None = None
        """What is done to the tree of every file before its names are resolved."""
        self._bound: dict[str, Builtin] = {}

    def register(self, declaration: Declaration) -> None:
        """Add a builtin of the embedder; it hides one of the same name."""
        self.registered[declaration.name] = declaration
        self._bound.pop(declaration.name, None)

    def find(self, name: str, module: str = "") -> Declaration | None:
        return self.registered.get(name) or self.catalog.find(name, module)

    def module_of(self, name: str) -> str:
        """Return the path of the module that declares the builtin ``name``; "" for the embedder's."""
        return "" if name in self.registered else self.catalog.module_of(name)

    def is_builtin(self, name: str) -> bool:
        return name in self.registered or bool(self.catalog.module_of(name))

    def signature(self, name: str) -> str:
        """Return the signature of the builtin ``name``, "" for other names; imports no module."""
        own = self.registered.get(name)
        return self.catalog.signature(name) if own is None else own.signature_text

    def absence(self, name: str) -> str | None:
        """Return what to say of a builtin that the language has and this table has not."""
        return self.catalog.absence(name)

    def knowledge(self) -> Knowledge:
        """Return what checks are told of these builtins."""
        return self.catalog.knowledge(self)

    def is_global(self, name: str) -> bool:
        return name in self.vm.global_names()

    def names(self) -> list[str]:
        return [*self.catalog.names(), *self.registered]

    def declaration(self, name: str, module: str = "") -> Declaration:
        found = self.find(name, module)
        if found is None:
            raise LookupError(name)
        return found

    def bound(self, name: str, module: str = "") -> Builtin:
        """Return the builtin as a value; denied ones fail when called (09 §2)."""
        found = self._bound.get(name)
        if found is None:
            if self.denies(name):
                found = Builtin(name, _refusal(name), None)
            else:
                declaration = self.declaration(name, module)
                found = declaration.bind()
                call = self._checked(declaration, found.call)
                if call is not found.call:
                    found = Builtin(name, call, found.max_args)
            self._bound[name] = found
        return found

    def direct(self, name: str, module: str = "") -> Callable[..., Any]:
        """Return the builtin for code that converts the arguments itself."""
        if self.denies(name):
            return _refusal(name)
        declaration = self.declaration(name, module)
        return self._checked(declaration, declaration.direct())

    def global_value(self, name: str) -> Any:
        """Return the value of one of the catalog's globals."""
        return self.catalog.global_value(name, self.bound)

    def _checked(self, declaration: Declaration, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``function`` with what must happen around it; nothing for most builtins."""
        name = declaration.name
        if name not in self.registered and self.catalog.raises_faults(declaration.function.__module__):
            function = declaration.reporting_faults(function)
        return _guarded(name, function) if declaration.guarded else function

    def denies(self, name: str) -> bool:
        return name in self.deny or (self.allow is not None and name not in self.allow)

    def fingerprint(self) -> str:
        """Return a text that changes whenever compiled programs may mean something else."""
        declared = (declaration.signature_text for declaration in self.registered.values())
        extra = ",".join(sorted({*declared, *self.vm.global_names()}))
        return f"{self.catalog.fingerprint()};{extra}"


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function``, checked at every call against the rules of the running task."""

    def ask_first(vm: Vm, *args: Any) -> Any:
        context = vm.task_context
        reason = None if context is None else context.refuses(name)
        if reason is not None:
            raise CategorizedFault("tool_rejected", reason)
        return function(vm, *args)

    return ask_first


def _refusal(name: str) -> Callable[..., Any]:
    def refuse(vm: Vm, *args: Any) -> None:
        raise CategorizedFault("tool_rejected", f"Tool '{name}' is not permitted.")

    return refuse
