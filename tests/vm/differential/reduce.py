"""Make a program smaller while it stays interesting: parts of its tree are left out, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from harnpy.syntax import ast
from harnpy.syntax.ast import Block, Node
from harnpy.syntax.parser import parse
from harnpy.syntax.printer import print_program
from tests.vm.differential.outcomes import Program
from tests.vm.differential.trees import is_expression, with_field

Interesting = Callable[[Program], bool]
#: Programs that are tried at most.
TRIES = 4000


def reduced(program: Program, interesting: Interesting, tries: int = TRIES) -> Program:
    """The smallest interesting program that was found."""
    for field in ("text", "module"):
        if not getattr(program, field):
            continue
        if field == "module" and interesting(without := replace(program, module="")):
            return without
        left, before = tries, ""
        while left > 0 and before != getattr(program, field):
            before = getattr(program, field)
            program, left = _one_round(program, field, interesting, left)
    return program


def _one_round(program: Program, field: str, interesting: Interesting, tries: int) -> tuple[Program, int]:
    """Try every part once; what comes before the last success is not tried again in this round."""
    skipped = 0
    while tries > 0:
        for variant in islice(_variants(parse(getattr(program, field))), skipped, None):
            tries -= 1
            candidate = _printed(program, field, variant)
            if candidate and interesting(candidate):
                program = candidate
                break
            skipped += 1
            if tries <= 0:
                break
        else:
            break
    return program, tries


def _printed(program: Program, field: str, tree: Node) -> Program | None:
    """The program with that tree; None when no text has it."""
    try:
        text = print_program(tree)  # type: ignore[arg-type]
    except (AttributeError, AssertionError, KeyError, TypeError):
        return None
    return replace(program, **{field: text})


def _variants(node: Node) -> Iterator[Node]:
    """The trees that are one step simpler, from the top down."""
    if is_expression(node):
        yield from _replacements(node)
    for field in node.__slots__:
        value = getattr(node, field)
        if isinstance(value, Node):
            yield with_field(node, field, None)
            for variant in _variants(value):
                yield with_field(node, field, variant)
        elif isinstance(value, tuple):
            for items in _shorter(value):
                yield with_field(node, field, items)
            for i, item in enumerate(value):
                if not isinstance(item, Node):
                    continue
                for inner in _blocks(item):
                    yield with_field(node, field, value[:i] + inner.statements + value[i + 1 :])
                for variant in _variants(item):
                    yield with_field(node, field, (*value[:i], variant, *value[i + 1 :]))


def _shorter(items: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Without halves, quarters … and at last without single items, from the end."""
    size = len(items)
    while size > 0:
        for start in range(len(items) - size, -1, -size):
            yield items[:start] + items[start + size :]
        size //= 2


def _replacements(node: Node) -> Iterator[Node]:
    """What may stand for an expression: a literal, or a part of it."""
    if not isinstance(node, ast.Nil | ast.Int | ast.Bool | ast.Name):
        yield ast.Nil(0, 0)
        yield ast.Int(0, 0, 1)
    for child in node.children():
        if isinstance(child, Block):
            if len(child.statements) == 1 and is_expression(child.statements[0]):
                yield child.statements[0]
        elif is_expression(child):
            yield child


def _blocks(statement: Node) -> list[Block]:
    """The blocks that may take their statement's place."""
    return [child for child in statement.children() if isinstance(child, Block)]
