"""``@builtin`` and ``@method``: a builtin is declared once, in the specification's notation.

    @builtin('split(s: string, sep: string = " ") -> list', family="strings")
    def split(vm: Vm, s: str, sep: str) -> list[str]:
        \"""The pieces of `s` between occurrences of `sep`. Spec: 04 §4.2.\"""

The line drives argument binding (`harnpy.vm.declare.arguments`), completion, help, `harnpy builtins` and
the docs. It is read by hand: a warm start must not load the parser to call `println`. The decorators only
attach a `Declaration`; `harnpy.builtins.catalog` gathers them.

A module whose builtins share their options states them once, `builtin = partial(declare, family="strings")`.
"""

from __future__ import annotations

from harnpy.vm.errors import RuntimeFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from harnpy.vm.values.objects import Builtin

    F = TypeVar("F", bound=Callable[..., Any])


class Absent:
    """The type of `ABSENT`."""

    __slots__ = ()


#: In a ``counted`` builtin, the Python default of a parameter whose absence is not the same as nil.
ABSENT: Any = Absent()


def require(message: str, *arguments: Any) -> None:
    """Raise a runtime error when one of a ``counted`` builtin's arguments was not written."""
    if ABSENT in arguments:
        raise RuntimeFault(message)


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
    """A callable's name, parameters and result type; ``text`` is the notation as written."""

    __slots__ = ("name", "parameters", "returns", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        head, _, tail = text.partition("(")
        inside, _, after = tail.rpartition(")")
        self.name = head.strip()
        self.returns = after.partition("->")[2].strip() or "any"
        self.parameters = tuple(_parameter(part) for part in _split(inside))

    @property
    def rest(self) -> bool:
        return bool(self.parameters) and self.parameters[-1].rest


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


class Declaration:
    """A builtin function, or a method when ``receiver`` names a value type."""

    __slots__ = ("counted", "family", "function", "guarded", "receiver", "signature_text", "strict")

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
        self.family = family
        self.function = function
        self.strict = strict
        self.receiver = receiver
        self.counted = counted
        self.guarded = guarded

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
        """Return the builtin as a value, which takes any arguments."""
        from harnpy.vm.declare.arguments import bind

        return bind(self)


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
