"""Conformance programs with a few changes: they use more of the language than generated programs do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from harnpy.syntax import ast
from harnpy.syntax.ast import Block, Node
from harnpy.syntax.diagnostic import SourceFault
from harnpy.syntax.parser import parse
from harnpy.syntax.printer import print_program
from tests.vm.differential.choices import Choices
from tests.vm.differential.outcomes import Program
from tests.vm.differential.trees import is_expression, with_field

ROOT = Path(__file__).parents[3] / "conformance"
#: The areas whose programs touch nothing outside, and sleep at most.
AREAS = (
    "access", "assignment", "channels", "control", "destructuring", "display", "enums", "errors", "functions",
    "generators", "iterators", "match", "names", "operators", "params", "pipelines", "ranges", "regression",
    "structs", "syntax", "tasks", "values",
)  # fmt: skip

_LEFT_OUT = ("import", "addr_of", "agent", "uuid", "random", "llm", "workflow", "session")

_LITERALS: tuple[Callable[[], Node], ...] = (
    lambda: ast.Nil(0, 0),
    lambda: ast.Int(0, 0, 2),
    lambda: ast.Float(0, 0, 1.5),
    lambda: ast.Str(0, 0, "a", False),
    lambda: ast.List(0, 0, ()),
    lambda: ast.Bool(0, 0, True),
)


def variation_of(seed: int) -> Program:
    """A conformance program that the seed chooses and changes."""
    choices = Choices(seed)
    while True:
        tree = choices.pick(_corpus())
        for _ in range(1 + choices.below(3)):
            tree = _changed(tree, choices)
        try:
            return Program(print_program(tree))
        except (AttributeError, AssertionError, KeyError, TypeError):
            continue


@cache
def _corpus() -> tuple[ast.Program, ...]:
    paths = [path for area in AREAS for path in sorted((ROOT / area).rglob("*.harn"))]
    return tuple(tree for path in paths if (tree := _parsed(path.read_text(encoding="utf-8"))))


def _parsed(text: str) -> ast.Program | None:
    """The tree of a program; None for one that is no syntax, needs files, or shows ids."""
    if any(word in text for word in _LEFT_OUT):
        return None
    try:
        return parse(text)
    except SourceFault:
        return None


def _changed(tree: ast.Program, choices: Choices) -> ast.Program:
    """One expression has become another one, or the statements of a block have changed."""
    nodes = list(_below(tree))
    expressions = [node for node in nodes if is_expression(node)]
    blocks: list[Node] = [node for node in nodes if isinstance(node, Block)]
    if blocks and choices.chance(30):
        block = choices.pick(blocks)
        return _replaced(tree, block, _rearranged(block, choices))
    if not expressions:
        return tree
    other = choices.pick(expressions) if choices.chance(70) else choices.pick(_LITERALS)()
    return _replaced(tree, choices.pick(expressions), other)


def _rearranged(block: Node, choices: Choices) -> Node:
    statements = list(block.statements)  # type: ignore[attr-defined]
    if not statements:
        return block
    at, to = choices.below(len(statements)), choices.below(len(statements))
    match choices.below(3):
        case 0:
            del statements[at]
        case 1:
            statements.insert(to, statements[at])
        case 2:
            statements.insert(to, statements.pop(at))
    return with_field(block, "statements", tuple(statements))


def _below(node: Node) -> Iterator[Node]:
    for child in node.children():
        yield child
        yield from _below(child)


def _replaced(node: Any, old: Node, new: Node) -> Any:
    """``node`` with ``new`` where ``old`` is."""
    if node is old:
        return new
    for field in node.__slots__:
        value = getattr(node, field)
        if isinstance(value, Node):
            changed: object = _replaced(value, old, new)
        elif isinstance(value, tuple):
            items = tuple(_replaced(item, old, new) if isinstance(item, Node) else item for item in value)
            changed = items if any(a is not b for a, b in zip(items, value, strict=True)) else value
        else:
            continue
        if changed is not value:
            return with_field(node, field, changed)
    return node
