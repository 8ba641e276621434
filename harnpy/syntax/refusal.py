"""What stops a parser; `harnpy.syntax.explain` finds the reason. Spec: 01 §8, §9.2."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Reject(Exception):
    """The production is well-formed, but refused: ``expected``, in the words of 01 §9.2.

    Reported at the current token, or at the token at offset ``at``, or ``skip`` tokens after that one;
    ``got`` is what to call it, when not by its own name.
    """

    def __init__(self, expected: str, at: int | None = None, got: str = "", skip: int = 0) -> None:
        super().__init__(expected)
        self.expected = expected
        self.at = at
        self.got = got
        self.skip = skip


#: The `Reject` of what can only be a new statement: "statement separator" or one of its kin.
SEPARATOR = "separator"


class Failure(Exception):
    """The parser cannot take token ``at``; or a builder rejected what stands before it.

    ``states`` is the parser's stack; ``values`` and ``begins`` hold what has been parsed, an entry for each
    state but the first, and where in the source that begins.
    """

    def __init__(
        self,
        at: int,
        states: list[int],
        values: list[Any],
        begins: list[int],
        reject: Reject | None = None,
    ) -> None:
        super().__init__(at)
        self.at = at
        self.states = states
        self.values = values
        self.begins = begins
        self.reject = reject
