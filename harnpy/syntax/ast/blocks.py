"""Expressions with blocks."""

from __future__ import annotations

from harnpy.syntax.ast.node import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.syntax.ast.node import Block


class If(Node):
    """``otherwise`` is a Block, another If (``else if``), or None."""

    cond: Node
    then: Block
    otherwise: Node | None


class Arm(Node):
    """``p1 | p2 if guard -> { body }``; patterns are expressions, given a meaning by 01 §7.7."""

    patterns: tuple[Node, ...]
    guard: Node | None
    body: Block


class Match(Node):
    value: Node
    arms: tuple[Arm, ...]


class Catch(Node):
    """``catch (name: type) { body }``; both are optional."""

    name: str | None
    type: Node | None
    body: Block


class Try(Node):
    body: Block
    catch: Catch | None
    finally_: Block | None


class TryStar(Node):
    value: Node


class Retry(Node):
    count: Node
    body: Block


class Deadline(Node):
    duration: Node
    body: Block


class Spawn(Node):
    body: Block


class Parallel(Node):
    """``kind``: ``"count"``, ``"each"`` or ``"settle"``; ``stream`` only with ``each``."""

    kind: str
    source: Node
    max_concurrent: Node | None
    param: str | None
    body: Block
    stream: bool
