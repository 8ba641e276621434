"""Where operands stand, and which expressions do nothing but name a value. Spec: 01 §5."""

from __future__ import annotations

import re

from harnpy.check.lint.subject import Subject
from harnpy.syntax import ast

#: Start and end in the source.
Extent = tuple[int, int]

_GAP = re.compile(r"[\s)\\]*")
_BLANKS = re.compile(r"[\s\\]*")
_LITERALS = (ast.Int, ast.Float, ast.Str, ast.Bool, ast.Nil, ast.Duration)
_CONNECTIVES = frozenset(["==", "!=", "&&", "||", "??"])
#: What stands as an operand of any operator without parentheses.
_TIGHT = (
    *_LITERALS,
    ast.Name,
    ast.Interp,
    ast.List,
    ast.Call,
    ast.MethodCall,
    ast.Member,
    ast.Index,
    ast.Slice,
)


def around(subject: Subject, left: ast.Node, mark: str, extent: Extent) -> tuple[Extent, Extent] | None:
    """What stands on the two sides of ``mark``, the first one behind ``left``, within ``extent``.

    With the parentheses, which are no part of the nodes. None where a comment is in the way.
    """
    start, end = extent
    gap = _GAP.match(subject.source, left.end)
    assert gap is not None, "the pattern matches the empty text"
    if not subject.source.startswith(mark, gap.end()):
        return None
    blanks = _BLANKS.match(subject.source, gap.end() + len(mark))
    assert blanks is not None, "the pattern matches the empty text"
    if subject.source.startswith(("//", "/*"), blanks.end()):
        return None
    return (start, left.end + len(gap[0].rstrip(" \t\r\n\\"))), (blanks.end(), end)


def as_operand(subject: Subject, extent: Extent, node: ast.Node) -> str:
    """The text of ``node``, which has ``extent`` with its parentheses, as an operand of any operator."""
    text = subject.source[slice(*extent)]
    return text if isinstance(node, _TIGHT) or extent[0] < node.start else f"({text})"


def may_comment(subject: Subject, *extents: Extent) -> bool:
    """Whether a comment could be in what is taken away; a string that looks like one counts as well."""
    return any(mark in subject.source[slice(*extent)] for extent in extents for mark in ("//", "/*"))


def is_literal(node: ast.Node) -> bool:
    return isinstance(node, _LITERALS)


def only_names(node: ast.Node) -> bool:
    """Whether the node only names a value: names, literals, their fields and elements."""
    while isinstance(node, ast.Member | ast.Index):
        if isinstance(node, ast.Index) and not only_names(node.index):
            return False
        node = node.object
    return isinstance(node, ast.Name) or is_literal(node)


def cannot_fail(node: ast.Node) -> bool:
    """Whether evaluating the node does and raises nothing: names and literals, compared and connected."""
    if isinstance(node, ast.Binary):
        return node.op in _CONNECTIVES and cannot_fail(node.left) and cannot_fail(node.right)
    if isinstance(node, ast.Unary):
        return node.op == "!" and cannot_fail(node.operand)
    return isinstance(node, ast.Name) or is_literal(node)
