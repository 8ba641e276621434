"""Statements."""

from __future__ import annotations

from harnpy.syntax.ast.node import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.syntax.ast.node import Block


class Let(Node):
    """``let`` (or ``var`` when ``mutable``) ``target: type = value``."""

    target: Node
    type: Node | None
    value: Node
    mutable: bool


class Assign(Node):
    """``target op value``; ``op`` is ``=`` or a compound such as ``+=``; target: Name, Member, Index."""

    target: Node
    op: str
    value: Node


class For(Node):
    pattern: Node
    iterable: Node
    body: Block


class While(Node):
    cond: Node
    body: Block


class Return(Node):
    value: Node | None


class Throw(Node):
    value: Node


class Yield(Node):
    value: Node | None


class Emit(Node):
    value: Node


class Break(Node):
    """``break``."""


class Continue(Node):
    """``continue``."""


class Guard(Node):
    cond: Node
    otherwise: Block


class Require(Node):
    cond: Node
    message: Node | None


class Defer(Node):
    body: Block


class Mutex(Node):
    body: Block


class SelectCase(Node):
    """``kind`` is ``"receive"`` (``name from source``), ``"timeout"`` (``source``) or ``"default"``."""

    kind: str
    name: str | None
    source: Node | None
    body: Block


class Select(Node):
    cases: tuple[SelectCase, ...]
