"""Trees with parts exchanged."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.ast import Node


def is_expression(node: Node) -> bool:
    """Whether another expression could stand in the node's place."""
    return type(node).__module__ in (ast.Name.__module__, ast.If.__module__) and not isinstance(
        node, ast.Spread | ast.DictEntry | ast.Arm | ast.Catch
    )


def with_field(node: Node, field: str, value: object) -> Node:
    """A copy of a node with another value for one field."""
    values = [value if name == field else getattr(node, name) for name in node.__slots__]
    return type(node)(node.start, node.end, *values)
