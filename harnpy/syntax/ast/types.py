"""Types, as they are written."""

from __future__ import annotations

from harnpy.syntax.ast.node import Node


class TypeName(Node):
    """``int``, ``list<T>`` (also written ``[T]``), ``nil``; ``true`` and ``false`` read as ``bool``."""

    __slots__ = ("name", "args")
    name: str
    args: tuple[Node, ...]


class TypeUnion(Node):
    __slots__ = ("members",)
    members: tuple[Node, ...]


class TypeLiteral(Node):
    __slots__ = ("value",)
    value: str | int


class ShapeField(Node):
    __slots__ = ("name", "optional", "type")
    name: str
    optional: bool
    type: Node


class TypeShape(Node):
    __slots__ = ("fields",)
    fields: tuple[ShapeField, ...]


class TypeFn(Node):
    __slots__ = ("params", "returns")
    params: tuple[Node, ...]
    returns: Node
