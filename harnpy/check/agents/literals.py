"""Literals as values: what is written out, as a builtin would get it, and where each part of it stands.

What is no literal stays the node that it is: a closure, a call, a name of something unknown.
"""

from __future__ import annotations

from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    #: What a name stands for, if it is bound once, by a `let`, to what is returned.
    Lookup = Callable[[str], ast.Node | None]

#: The key under which a dict that isn't written out whole has the node that adds to it.
REST = "..."

#: Names of names that are followed, and literals within literals: more nobody writes.
DEPTH = 32


def value_of(node: ast.Node, lookup: Lookup, depth: int = 0) -> Any:
    """Return the value of a literal, or the node itself. Names stand for what they are bound to."""
    node = written(node, lookup)
    kind = type(node)
    if kind in _PLAIN:
        return node.value  # type: ignore[attr-defined]
    if kind is ast.Nil:
        return None
    if kind is ast.Unary:
        return _negative(node)
    if depth == DEPTH:
        return node
    if kind is ast.List:
        return [value_of(item, lookup, depth + 1) for item in node.items]  # type: ignore[attr-defined]
    if kind is ast.Dict:
        return _dict(node, lookup, depth)
    return node


def written(node: ast.Node, lookup: Lookup) -> ast.Node:
    """Return what a name is bound to, as far as that is known; another node is itself."""
    for _ in range(DEPTH):
        if type(node) is not ast.Name:
            return node
        found = lookup(node.name)
        if found is None:
            return node
        node = found
    return node


def place_of(
    node: ast.Node, path: tuple[str | int, ...], lookup: Lookup, of_key: bool = False
) -> tuple[ast.Node, ast.Node | None]:
    """Return the node at ``path`` within a literal, or the innermost one on the way there.

    ``of_key``: the entry with the last key instead of what stands under it. The second node is the first name
    on the way, if there is one: what it is bound to stands elsewhere.
    """
    name = None
    for at, step in enumerate(path):
        inside = written(node, lookup)
        found: ast.Node | None = None
        if type(inside) is ast.List and type(step) is int and step < len(inside.items):
            found = inside.items[step]
        elif type(inside) is ast.Dict:
            entry = entry_of(inside, str(step))
            if entry is not None:
                found = entry if of_key and at == len(path) - 1 else entry.value
        if found is None:
            break
        if inside is not node:
            name = name or node
        node = found
    return node, name


def entry_of(node: ast.Dict, key: str) -> ast.DictEntry | None:
    """Return the entry of a dict literal that counts for a key: the last one."""
    found = None
    for entry in node.entries:
        if type(entry) is ast.DictEntry and type(entry.key) is ast.Str and entry.key.value == key:
            found = entry
    return found


def _dict(node: ast.Node, lookup: Lookup, depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for entry in node.entries:  # type: ignore[attr-defined]
        if type(entry) is ast.DictEntry and type(entry.key) is ast.Str:
            value[entry.key.value] = value_of(entry.value, lookup, depth + 1)
            continue
        spread = value_of(entry.value, lookup, depth + 1) if type(entry) is ast.Spread else None
        if type(spread) is dict:
            value.update(spread)
        else:
            # What is spread here may replace the values before it, but their keys stay.
            value = {**dict.fromkeys(value, entry), REST: entry}
    return value


def _negative(node: ast.Node) -> Any:
    assert type(node) is ast.Unary
    operand = node.operand
    if node.op == "-" and type(operand) in (ast.Int, ast.Float):
        return -operand.value  # type: ignore[attr-defined]
    return node


_PLAIN = frozenset([ast.Int, ast.Float, ast.Str, ast.Bool])
