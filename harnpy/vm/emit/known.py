"""What is known of the int variables of a function at the place being written: their bounds."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from harnpy.vm.resolve import Variable

    Bounds: TypeAlias = "tuple[int, int]"

LEAST, MOST = -(1 << 63), (1 << 63) - 1
ANY = (LEAST, MOST)


class Known:
    """The bounds of a function's int variables, a scope for each block that is being written."""

    __slots__ = ("_scopes",)

    def __init__(self) -> None:
        self._scopes: list[dict[Variable, Bounds]] = [{}]

    def enter(self) -> None:
        self._scopes.append({})

    def leave(self) -> None:
        self._scopes.pop()

    def of(self, variable: Variable) -> Bounds:
        for scope in reversed(self._scopes):
            if variable in scope:
                return scope[variable]
        return ANY

    def learn(self, variable: Variable, bounds: Bounds) -> None:
        """From here on to the end of the block, ``variable`` is within ``bounds``, too."""
        if not (variable.in_table or variable.late):
            low, high = self.of(variable)
            self._scopes[-1][variable] = max(low, bounds[0]), min(high, bounds[1])

    def forget(self, variable: Variable) -> None:
        for scope in self._scopes:
            scope.pop(variable, None)
