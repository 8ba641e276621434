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


def bound_names(pattern: Node) -> list[str]:
    """The names that a `let` or `for` pattern binds, in order; `_` binds nothing."""
    match pattern:
        case NamePattern(name=name):
            names = [name]
        case PairPattern(first=first, second=second):
            names = [first, second]
        case DictPattern(entries=entries, rest=rest) | ListPattern(entries=entries, rest=rest):
            names = [entry.name for entry in entries] + ([rest] if rest else [])
        case _:
            names = []
    return [name for name in names if name != "_"]
