"""Sequences, blocks and the program."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.ast import Block, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


Maybe = list[Node] | None


def first(start: int, end: int, item: Any) -> list[Any]:
    return [item]


def more(start: int, end: int, items: list[Any], item: Any) -> list[Any]:
    # In place: there is no other holder yet, and a copy each time would make long lists quadratic.
    items.append(item)
    return items


def two(start: int, end: int, left: Any, right: Any) -> list[Any]:
    return [left, right]


def pair(start: int, end: int, left: Any, right: Any) -> tuple[Any, Any]:
    return left, right


def sequence(start: int, end: int, items: list[Any] | None) -> tuple[Any, ...]:
    return tuple(items or ())


def present(start: int, end: int, mark: Any = None) -> bool:
    return True


def program(start: int, end: int, items: Maybe) -> ast.Program:
    return ast.Program(start, end, tuple(items or ()))


def block(start: int, end: int, statements: Maybe) -> Block:
    return Block(start, end, tuple(statements or ()))
