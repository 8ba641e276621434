"""Comparisons that say less than they seem to. Spec: 03 §15."""

from __future__ import annotations

from collections.abc import Iterator

from harnpy.check.lint.rule import Remark, remark
from harnpy.check.lint.style.operands import around, as_operand, is_literal, may_comment, only_names
from harnpy.check.lint.subject import Subject
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Edit

#: Operators whose result is a bool whatever the operands are.
_GIVES_BOOL = frozenset(["==", "!=", "<", ">", "<=", ">=", "&&", "||", "in", "not in"])


def comparison_to_bool(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Binary):
        if node.op not in ("==", "!="):
            continue
        literal, value = (
            (node.right, node.left) if isinstance(node.right, ast.Bool) else (node.left, node.right)
        )
        if isinstance(literal, ast.Bool):
            word = "true" if literal.value else "false"
            text = f"comparison to `{word}` is redundant" if node.op == "==" else f"`!= {word}` is redundant"
            # Safe for a bool alone: `1 == true` is false, and 1 counts as true.
            yield remark(node, text, edits=_without_bool(subject, node, literal), safe=_is_bool(value))


def _without_bool(subject: Subject, node: ast.Binary, literal: ast.Bool) -> list[Edit]:
    """The other operand, or what it is not."""
    sides = around(subject, node.left, node.op, (node.start, node.end))
    if sides is None:
        return []
    extent, value = (sides[0], node.left) if literal is node.right else (sides[1], node.right)
    text = subject.source[slice(*extent)]
    if literal.value != (node.op == "=="):
        text = "!" + as_operand(subject, extent, value)
    return [] if _opens_struct(subject, text, node.end) else [Edit(node.start, node.end, text)]


def _is_bool(node: ast.Node) -> bool:
    if isinstance(node, ast.Binary):
        return node.op in _GIVES_BOOL
    return isinstance(node, ast.Bool) or (isinstance(node, ast.Unary) and node.op == "!")


def _opens_struct(subject: Subject, text: str, end: int) -> bool:
    """Whether a block behind ``text`` would read as the fields of a struct: `if Done { … }`."""
    name = text.lstrip("!")
    return name.isidentifier() and name[0].isupper() and subject.source[end:].lstrip().startswith("{")


def pointless_comparison(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Binary):
        if node.op in ("==", "!=") and node.left == node.right and only_names(node.left):
            result = Edit(node.start, node.end, "true" if node.op == "==" else "false")
            yield remark(
                node,
                f"expression is compared to itself with `{node.op}`",
                edits=[] if may_comment(subject, (node.start, node.end)) else [result],
                # A variable may hold NaN, which isn't equal to itself.
                safe=is_literal(node.left),
            )
    for branch in subject.each(ast.If):
        if isinstance(branch.cond, ast.Bool):
            yield remark(branch.cond, f"if condition is always `{'true' if branch.cond.value else 'false'}`")


def redundant_nil_ternary(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Ternary):
        test = node.cond
        if not isinstance(test, ast.Binary) or test.op not in ("==", "!="):
            continue
        nil, tested = (test.right, test.left) if isinstance(test.right, ast.Nil) else (test.left, test.right)
        value = node.then if test.op == "!=" else node.otherwise
        if isinstance(nil, ast.Nil) and value == tested and _is_path(value):
            name = subject.text(tested)
            yield remark(
                node,
                f"ternary nil check over `{name}` can be replaced with `{name} ?? <fallback>`",
                edits=_coalesced(subject, node, name, in_then=test.op == "=="),
            )


def _is_path(node: ast.Node) -> bool:
    while isinstance(node, ast.Member):
        node = node.object
    return isinstance(node, ast.Name)


def _coalesced(subject: Subject, node: ast.Ternary, name: str, *, in_then: bool) -> list[Edit]:
    """`name ?? fallback`, which looks at the fallback for nil alone, as the ternary does."""
    condition = around(subject, node.cond, "?", (node.start, node.end))
    branches = condition and around(subject, node.then, ":", condition[1])
    if condition is None or branches is None or may_comment(subject, condition[0]):
        return []
    extent, fallback = (branches[0], node.then) if in_then else (branches[1], node.otherwise)
    return [Edit(node.start, node.end, f"{name} ?? {as_operand(subject, extent, fallback)}")]
