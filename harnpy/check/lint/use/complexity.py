"""Functions with too many ways through them. Spec: 03 §15."""

from __future__ import annotations

from collections.abc import Iterator

from harnpy.check.lint.rule import Remark
from harnpy.check.lint.subject import Subject
from harnpy.syntax import ast

#: Each adds a way; closures belong to the function that they stand in, functions with a name don't.
_BRANCHES = (
    ast.If,
    ast.Guard,
    ast.For,
    ast.While,
    ast.Retry,
    ast.Match,
    ast.Try,
    ast.Ternary,
    ast.SelectCase,
)
_FUNCTIONS = (ast.FnDecl, ast.ToolDecl)


def cyclomatic_complexity(subject: Subject) -> Iterator[Remark]:
    limit = subject.settings.complexity
    for node in subject.each(ast.FnDecl, ast.ToolDecl):
        score = 1 + _branches(node.body)
        if score > limit and not _allowed(node):
            text = f"function `{node.name}` has cyclomatic complexity {score} (> {limit})"
            help_ = "split it, or mark it `@complexity(allow)`"
            yield Remark(*subject.name_span(node, node.name), text, help=help_)


def _branches(body: ast.Node) -> int:
    count = 0
    stack = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, _BRANCHES) or (isinstance(node, ast.Binary) and node.op in ("&&", "||")):
            count += 1
        if not isinstance(node, _FUNCTIONS):
            stack.extend(node.children())
    return count


def _allowed(node: ast.FnDecl | ast.ToolDecl) -> bool:
    return any(
        attr.name == "complexity" and any(_is_allow(arg.value) for arg in attr.args) for attr in node.attrs
    )


def _is_allow(value: ast.Node) -> bool:
    return isinstance(value, ast.Name) and value.name == "allow"
