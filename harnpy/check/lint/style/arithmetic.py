"""Arithmetic that certainly fails. Spec: 02 §4.1, 03 §15."""

from __future__ import annotations

from collections.abc import Iterator

from harnpy.check.lint.rule import Remark, remark
from harnpy.check.lint.style.operands import around
from harnpy.check.lint.subject import Subject
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Edit

_OPERATORS = frozenset("+-*/%")


def invalid_binary_op_literal(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Binary):
        sides = (node.left, node.right)
        if node.op in _OPERATORS and any(isinstance(side, ast.Bool | ast.Nil) for side in sides):
            yield remark(
                node,
                f"operator '{node.op}' used with boolean or nil literal — this will cause a runtime error",
                edits=_interpolated(subject, node),
            )


def _interpolated(subject: Subject, node: ast.Binary) -> list[Edit]:
    """`"done: " + true` as `"done: ${true}"`. Safe: a program that has it fails before it runs (03 §8.1)."""
    if node.op != "+" or around(subject, node.left, "+", (node.start, node.end)) is None:
        return []
    left, right = subject.text(node.left), subject.text(node.right)
    if _is_plain(subject, node.left):
        return [Edit(node.start, node.end, f'{left[:-1]}${{{right}}}"')]
    if _is_plain(subject, node.right):
        return [Edit(node.start, node.end, f'"${{{left}}}{right[1:]}')]
    return []


def _is_plain(subject: Subject, node: ast.Node) -> bool:
    """Whether the node is a `"…"` literal, neither raw nor over several lines."""
    return isinstance(node, ast.Str) and not node.raw and not subject.source.startswith('"""', node.start)
