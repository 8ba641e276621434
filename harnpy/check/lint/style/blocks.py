"""Blocks without content, and arms that can't be reached. Spec: 03 §15."""

from __future__ import annotations

from collections.abc import Iterator

from harnpy.check.findings import Place
from harnpy.check.lint.rule import Remark, remark
from harnpy.check.lint.style.operands import Extent, cannot_fail, is_literal, may_comment
from harnpy.check.lint.subject import Subject
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Edit


def empty_block(subject: Subject) -> Iterator[Remark]:
    """A block that has a comment isn't empty: it says why there is nothing to do."""
    for node, body, name in _bodies(subject):
        if not body.statements and not subject.source[body.start + 1 : body.end - 1].strip():
            yield remark(node, f"{name} has an empty body", edits=_removal(subject, node))


def _bodies(subject: Subject) -> Iterator[tuple[ast.Node, ast.Block, str]]:
    yield from ((node, node.then, "if block") for node in subject.each(ast.If))
    yield from ((node, node.body, "for loop") for node in subject.each(ast.For))
    yield from ((node, node.body, "while loop") for node in subject.each(ast.While))
    yield from ((node, node.body, "try block") for node in subject.each(ast.Try))


def _removal(subject: Subject, node: ast.Node) -> list[Edit]:
    """Take the statement away with its lines, where neither its head nor its value matters."""
    if isinstance(node, ast.If):
        idle = node.otherwise is None and cannot_fail(node.cond)
    else:
        idle = isinstance(node, ast.For) and _is_constant(node.iterable)
    first = subject.source.rfind("\n", 0, node.start) + 1
    last = subject.source.find("\n", node.end) + 1 or len(subject.source)
    alone = not (subject.source[first : node.start] + subject.source[node.end : last]).strip()
    if idle and alone and _has_no_use(subject, node) and not may_comment(subject, (node.start, node.end)):
        return [Edit(first, last, "")]
    return []


def _is_constant(node: ast.Node) -> bool:
    """Whether going through the items has no effect: they are written down, no iterator's."""
    if isinstance(node, ast.RangeTo):
        return isinstance(node.first, ast.Int) and isinstance(node.last, ast.Int)
    return isinstance(node, ast.List) and all(map(is_literal, node.items))


def _has_no_use(subject: Subject, node: ast.Node) -> bool:
    """Whether nobody can ask for the statement's value: only the last one of a block has one."""
    parent = subject.parent(node)
    if isinstance(parent, ast.Block):
        return any(statement is node for statement in parent.statements[:-1])
    return isinstance(parent, ast.Program)


def duplicate_match_arm(subject: Subject) -> Iterator[Remark]:
    for match in subject.each(ast.Match):
        seen: dict[tuple[tuple[ast.Node, ...], ast.Node | None], ast.Arm] = {}
        for arm in match.arms:
            first = seen.setdefault((arm.patterns, arm.guard), arm)
            if first is not arm:
                place = Place("the first arm with this pattern", *_pattern_extent(first))
                yield Remark(*_pattern_extent(arm), "duplicate match arm pattern", places=[place])


def _pattern_extent(arm: ast.Arm) -> Extent:
    return arm.start, (arm.guard or arm.patterns[-1]).end
