"""Texts of values, and what may be done with them.

The text of an expression is a `str`: Python that computes the value where it stands. Some values are at hand,
and their text is an `Operand`: it may be written several times, or later, and computes nothing. Putting
operands together gives a plain `str` again. Spec: 02 §3.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.vm.resolve.scopes import Variable


class Operand(str):
    """The text of a value that is at hand."""

    __slots__ = ()


class Constant(Operand):
    """A value written out."""

    __slots__ = ()


class Slot(Operand):
    """A Python variable. An assignment in between may change what it holds."""

    __slots__ = ()


class Temp(Slot):
    """A slot of the compiler's own: once it is read it is not assigned again."""

    __slots__ = ()


NIL = Constant("None")


def reading(variable: Variable) -> str:
    """What reads a variable of the program: a slot, or an entry of the table that functions share."""
    return variable.python if variable.in_table else Slot(variable.python)


def is_fixed(text: str) -> bool:
    """Whether nothing that runs in between can change the value of ``text``."""
    return isinstance(text, Temp | Constant)


def tuple_text(items: Iterable[str]) -> str:
    """A Python tuple of ``items``."""
    given = list(items)
    return f"({', '.join(given)}{',' if len(given) == 1 else ''})"
