"""``@counted``: a builtin that tells an argument that is missing from one that is nil.

`@builtin` reads a missing argument as nil. Where the reference answers the two differently
(``assert_eq requires at least 2 arguments``) the function is called with just the arguments that were
written, and its own Python defaults stand for the rest:

    @counted("iter(source: any) -> iter", family="collections")
    def lift(vm: Vm, source: Value = ABSENT) -> Iter: ...

Nothing is converted. Surplus arguments are dropped, unless the function collects them in ``*surplus``.
"""

from __future__ import annotations

from harnpy.vm.builtin import Declaration
from harnpy.vm.values import Builtin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])


class _Absent:
    __slots__ = ()


#: The default of a parameter whose absence matters.
ABSENT: Any = _Absent()

_COLLECTS_POSITIONALS = 0x04  # CO_VARARGS of the code object


class CountedDeclaration(Declaration):
    """A declaration whose function is called with exactly what was passed."""

    __slots__ = ()

    def bind(self) -> Builtin:
        takes_any_number = self.function.__code__.co_flags & _COLLECTS_POSITIONALS
        limit = None if takes_any_number else len(self.signature().parameters)
        return Builtin(self.name, self.function, limit)


def counted(signature: str, *, family: str) -> Callable[[F], F]:
    """Declare a builtin function ``(vm, *args)`` that is given its arguments as written."""

    def attach(function: F) -> F:
        declared = getattr(function, "declarations", ())
        declaration = CountedDeclaration(signature, family, function, False, None)
        function.declarations = (*declared, declaration)  # type: ignore[attr-defined]
        return function

    return attach
