"""Types of other languages in annotations: a mismatch with one says what it is called here. Spec: 03 §8.1."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.habits import type_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.types.names import Type
    from harnpy.check.walk.visitor import Walk


def hint(walk: Walk, expected: Type) -> str | None:
    """The help for a mismatch with ``expected``, when that names a type which only other languages have."""
    waiting: list[ast.Node] = [expected]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.TypeName) and walk.types.declared.generic(node.name) is None:
            word = type_for(node.name)
            if word is not None:
                return f"in Harn, the type is `{word}`"
        waiting += reversed(list(node.children()))
    return None
