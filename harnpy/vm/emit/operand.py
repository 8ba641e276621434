"""Texts of values, and what may be done with them.

The text of an expression is a `str`: Python that computes the value where it stands. Some values need no
computing, and their text is an `Operand`, which says what it is. Spec: 02 §3.

Of `x + f(1)` the operands are ``Operand("x_1", SLOT)`` and the `str` ``"(t1 := f_2.call)(e, 1)"``. An
f-string puts both into a larger text, which is a `str` again.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from harnpy.vm.resolve.scopes import Variable

    Text: TypeAlias = "str | Operand"

#: A value written out.
CONSTANT = "constant"
#: A Python variable. An assignment in between may change what it holds.
SLOT = "slot"
#: A slot of the compiler's own: once it is read it is not assigned again.
TEMP = "temp"
#: An entry of the table of variables that functions share: any call in between may change what it holds.
ENTRY = "entry"


class Operand:
    """The text of a value that needs no computing, and its kind: one of the four above."""

    __slots__ = ("kind", "text")

    def __init__(self, text: str, kind: str) -> None:
        self.text = text
        self.kind = kind

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Operand({self.text!r}, {self.kind!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operand) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def is_slot(self) -> bool:
        """Whether it is a Python variable, which an assignment may stand for and a guard may ask about."""
        return self.kind == SLOT or self.kind == TEMP

    @property
    def is_fixed(self) -> bool:
        """Whether nothing that runs in between can change its value."""
        return self.kind == TEMP or self.kind == CONSTANT


NIL = Operand("None", CONSTANT)


def constant(value: object) -> Operand:
    """A value that Python writes as Harn means it."""
    return Operand(repr(value), CONSTANT)


def reading(variable: Variable) -> Operand:
    """What reads a variable of the program, and may be assigned."""
    return Operand(variable.python, ENTRY if variable.in_table else SLOT)


def at_hand(text: Text) -> bool:
    """Whether ``text`` may be written several times, or later, and computes nothing."""
    return isinstance(text, Operand) and text.kind != ENTRY


def is_fixed(text: Text) -> bool:
    return isinstance(text, Operand) and text.is_fixed


def joined(texts: Iterable[Text]) -> str:
    """Texts as the items of a Python display or the arguments of a call."""
    return ", ".join(map(str, texts))


def tuple_text(items: Iterable[Text]) -> str:
    """A Python tuple of ``items``."""
    given = list(items)
    return f"({joined(given)}{',' if len(given) == 1 else ''})"
