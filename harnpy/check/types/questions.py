"""What the rules about types ask of each other: satisfying an interface is a matter of fitting, and back.

`Types` answers; the modules with the rules know this much of it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence, Set
    from typing import Protocol

    from harnpy.check.types.aliases import Aliases
    from harnpy.check.types.declared import Declared
    from harnpy.check.types.names import Type
    from harnpy.syntax import ast

    class Questions(Protocol):
        """See `Types`, which has all of these."""

        declared: Declared
        aliases: Aliases

        def fits(self, actual: Type, expected: Type, params: Set[str] = ..., /) -> bool: ...
        def unfolded(self, type: Type, /) -> Type: ...
        def members(self, type: Type, /) -> tuple[Type, ...]: ...
        def variances(self, name: str, count: int, /) -> tuple[str, ...]: ...
        def shape_of(self, type: ast.TypeName, /) -> ast.TypeShape | None: ...
        def unsatisfied(self, type: Type, interface: str, args: Sequence[Type] = ..., /) -> str | None: ...
