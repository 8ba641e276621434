"""Patterns of `let`, `var` and `for`."""

from __future__ import annotations

from harnpy.syntax.ast.node import Node


class NamePattern(Node):
    """A plain target; ``_`` discards."""

    name: str


class PatternEntry(Node):
    """One entry of a dict pattern (``key: name = default``) or list pattern (``key`` is None)."""

    key: str | None
    name: str
    default: Node | None


class DictPattern(Node):
    entries: tuple[PatternEntry, ...]
    rest: str | None


class ListPattern(Node):
    entries: tuple[PatternEntry, ...]
    rest: str | None


class PairPattern(Node):
    """``(first, second)``, only in a ``for`` header."""

    first: str
    second: str
