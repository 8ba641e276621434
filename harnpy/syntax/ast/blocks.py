"""Expressions with blocks."""

from __future__ import annotations

from harnpy.syntax.ast.node import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.syntax.ast.node import Block


class If(Node):
    """``otherwise`` is a Block, another If (``else if``), or None."""

    __slots__ = ("cond", "then", "otherwise")
    cond: Node
    then: Block
    otherwise: Node | None


class Arm(Node):
    """``p1 | p2 if guard -> { body }``; patterns are expressions, given a meaning by 01 §7.7."""

    __slots__ = ("patterns", "guard", "body")
    patterns: tuple[Node, ...]
    guard: Node | None
    body: Block


class Match(Node):
    __slots__ = ("value", "arms")
    value: Node
    arms: tuple[Arm, ...]


class Catch(Node):
    """``catch (name: type) { body }``; both are optional."""

    __slots__ = ("name", "type", "body")
    name: str | None
    type: Node | None
    body: Block


class Try(Node):
    __slots__ = ("body", "catch", "finally_")
    body: Block
    catch: Catch | None
    finally_: Block | None


class TryStar(Node):
    __slots__ = ("value",)
    value: Node


class Retry(Node):
    __slots__ = ("count", "body")
    count: Node
    body: Block


class Deadline(Node):
    __slots__ = ("duration", "body")
    duration: Node
    body: Block


class Spawn(Node):
    __slots__ = ("body",)
    body: Block


class Parallel(Node):
    """``kind``: ``"count"``, ``"each"`` or ``"settle"``; ``stream`` only with ``each``."""

    __slots__ = ("kind", "source", "max_concurrent", "param", "body", "stream")
    kind: str
    source: Node
    max_concurrent: Node | None
    param: str | None
    body: Block
    stream: bool
