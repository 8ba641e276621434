"""Arithmetic that certainly fails. Spec: 02 §4.1, 03 §8.1, §15."""

from __future__ import annotations

from collections.abc import Iterator

from harnpy.check.lint.rule import Remark, remark
from harnpy.check.lint.subject import Subject
from harnpy.check.walk.interpolating import interpolation
from harnpy.syntax import ast

_OPERATORS = frozenset("+-*/%")


def invalid_binary_op_literal(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Binary):
        sides = (node.left, node.right)
        if node.op in _OPERATORS and any(isinstance(side, ast.Bool | ast.Nil) for side in sides):
            fix = interpolation(node, subject.source) if node.op == "+" else None
            yield remark(
                node,
                f"operator '{node.op}' used with boolean or nil literal — this will cause a runtime error",
                # Safe: a program that has it fails before it runs.
                edits=fix.edits if fix else (),
            )
