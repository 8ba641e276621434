"""Statements."""

from __future__ import annotations

from harnpy.syntax.ast.node import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.syntax.ast.node import Block


class Let(Node):
    """``let`` (or ``var`` when ``mutable``) ``target: type = value``."""

    __slots__ = ("target", "type", "value", "mutable")
    target: Node
    type: Node | None
    value: Node
    mutable: bool


class Assign(Node):
    """``target op value``; ``op`` is ``=`` or a compound such as ``+=``; target: Name, Member, Index."""

    __slots__ = ("target", "op", "value")
    target: Node
    op: str
    value: Node


class For(Node):
    __slots__ = ("pattern", "iterable", "body")
    pattern: Node
    iterable: Node
    body: Block


class While(Node):
    __slots__ = ("cond", "body")
    cond: Node
    body: Block


class Return(Node):
    __slots__ = ("value",)
    value: Node | None


class Throw(Node):
    __slots__ = ("value",)
    value: Node


class Yield(Node):
    __slots__ = ("value",)
    value: Node | None


class Emit(Node):
    __slots__ = ("value",)
    value: Node


class Break(Node):
    __slots__ = ()


class Continue(Node):
    __slots__ = ()


class Guard(Node):
    __slots__ = ("cond", "otherwise")
    cond: Node
    otherwise: Block


class Require(Node):
    __slots__ = ("cond", "message")
    cond: Node
    message: Node | None


class Defer(Node):
    __slots__ = ("body",)
    body: Block


class Mutex(Node):
    __slots__ = ("body",)
    body: Block


class SelectCase(Node):
    """``kind`` is ``"receive"`` (``name from source``), ``"timeout"`` (``source``) or ``"default"``."""

    __slots__ = ("kind", "name", "source", "body")
    kind: str
    name: str | None
    source: Node | None
    body: Block


class Select(Node):
    __slots__ = ("cases",)
    cases: tuple[SelectCase, ...]
