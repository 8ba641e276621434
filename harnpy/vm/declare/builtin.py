"""``@builtin`` and ``@method``: a builtin is declared once, in the specification's notation.

    @builtin('split(s: string, sep: string = " ") -> list', family="strings")
    def split(vm: Vm, s: str, sep: str) -> list[str]:
        \"""The pieces of `s` between occurrences of `sep`. Spec: 04 §4.2.\"""

The line drives argument binding (`harnpy.vm.declare.arguments`), completion, help, `harnpy builtins` and
the docs. The decorators only attach a `Declaration`; `harnpy.builtins.catalog` gathers them.

A module whose builtins share their options states them once, `builtin = partial(declare, family="strings")`.
"""

from __future__ import annotations

from harnpy.syntax.signature import Signature
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
