"""What each production of the grammar builds. Spec: 01 §6, §7.

A builder gets the offsets of its production and the values of its parts, in the order of the grammar.
Productions whose parts are just the fields of a node have none: `builder` finds the class. Rules of
syntax that a grammar cannot express are checked here, at the token where the specification reports them.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.nodes import declarations, expressions, lists, statements, types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


_ROOMS = (lists, declarations, statements, expressions, types)


def builder(name: str) -> Callable[..., Any]:
    """The builder of that name: a function of one of the modules here, or the node class it spells."""
    for room in _ROOMS:
        found = vars(room).get(name)
        if found is not None and found.__module__ == room.__name__:
            function: Callable[..., Any] = found
            return function
    node_class: Callable[..., Any] = vars(ast)["".join(part.title() for part in name.split("_"))]
    return node_class
