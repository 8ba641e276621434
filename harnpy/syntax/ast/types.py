"""Types, as they are written."""

from __future__ import annotations

from harnpy.syntax.ast.node import Node


class TypeName(Node):
    """``int``, ``list<T>`` (also written ``[T]``), ``nil``; ``true`` and ``false`` read as ``bool``."""

    name: str
    args: tuple[Node, ...]


class TypeUnion(Node):
    members: tuple[Node, ...]


class TypeLiteral(Node):
    value: str | int


class ShapeField(Node):
    name: str
    optional: bool
    type: Node


class TypeShape(Node):
    fields: tuple[ShapeField, ...]


class TypeFn(Node):
    params: tuple[Node, ...]
    returns: Node
