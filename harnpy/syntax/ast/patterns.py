"""Patterns of `let`, `var` and `for`."""

from __future__ import annotations

from harnpy.syntax.ast.node import Node


class NamePattern(Node):
    """A plain target; ``_`` discards."""

    __slots__ = ("name",)
    name: str


class PatternEntry(Node):
    """One entry of a dict pattern (``key: name = default``) or list pattern (``key`` is None)."""

    __slots__ = ("key", "name", "default")
    key: str | None
    name: str
    default: Node | None


class DictPattern(Node):
    __slots__ = ("entries", "rest")
    entries: tuple[PatternEntry, ...]
    rest: str | None


class ListPattern(Node):
    __slots__ = ("entries", "rest")
    entries: tuple[PatternEntry, ...]
    rest: str | None


class PairPattern(Node):
    """``(first, second)``, only in a ``for`` header."""

    __slots__ = ("first", "second")
    first: str
    second: str
