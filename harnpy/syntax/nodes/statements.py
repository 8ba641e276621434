"""Statements and the patterns of `let`, `var` and `for`. Spec: 01 §7.5, §7.6."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.ast import Block, Node
from harnpy.syntax.refusal import SEPARATOR, Reject


def expression_statement(start: int, end: int, value: Node) -> Node:
    """At the beginning of a statement `fn` is a declaration, which needs a name."""
    leftmost: Node | None = value
    while leftmost is not None and leftmost.start == start:
        if isinstance(leftmost, ast.FnExpr):
            raise Reject("function name", start, skip=1)
        leftmost = next(leftmost.children(), None)
    return value


def target(start: int, end: int, value: Node) -> Node:
    if isinstance(value, ast.Name) or (isinstance(value, ast.Member | ast.Index) and not value.optional):
        return value
    raise Reject(SEPARATOR)


def let(start: int, end: int, binding: tuple[Node, Node | None], value: Node) -> ast.Let:
    return ast.Let(start, end, *binding, value, False)


def var(start: int, end: int, binding: tuple[Node, Node | None], value: Node) -> ast.Let:
    return ast.Let(start, end, *binding, value, True)


def untyped(start: int, end: int, name: str) -> tuple[Node, Node | None]:
    return ast.NamePattern(start, end, name), None


def typed(start: int, end: int, name: str, type: Node) -> tuple[Node, Node | None]:
    return ast.NamePattern(start, start + len(name), name), type


def bind_pattern(start: int, end: int, pattern: Node) -> tuple[Node, Node | None]:
    return pattern, None


def name_pattern(start: int, end: int, name: str) -> ast.NamePattern:
    return ast.NamePattern(start, end, name)


_Names = tuple[tuple[ast.PatternEntry, ...], str | None]


def dict_pattern(start: int, end: int, names: _Names | None) -> ast.DictPattern:
    return ast.DictPattern(start, end, *(names or ((), None)))


def list_pattern(start: int, end: int, names: _Names | None) -> ast.ListPattern:
    return ast.ListPattern(start, end, *(names or ((), None)))


def pattern_names(start: int, end: int, names: list[ast.PatternEntry]) -> _Names:
    return tuple(names), None


def pattern_names_rest(start: int, end: int, names: list[ast.PatternEntry], rest: str) -> _Names:
    return tuple(names), rest


def pattern_rest(start: int, end: int, rest: str) -> _Names:
    return (), rest


def dict_name(start: int, end: int, key: str, alias: str | None, default: Node | None) -> ast.PatternEntry:
    return ast.PatternEntry(start, end, key, alias or key, default)


def list_name(start: int, end: int, name: str, default: Node | None) -> ast.PatternEntry:
    return ast.PatternEntry(start, end, None, name, default)


def select(start: int, end: int, cases: list[ast.SelectCase] | None) -> ast.Select:
    """A later ``timeout`` or ``default`` replaces an earlier one (01 §7.6)."""
    if not cases:
        raise Reject("at least one select case")
    last = {case.kind: case for case in cases if case.kind != "receive"}
    if len(last) == 2:
        raise Reject("select cannot have both timeout and default")
    kept = (case for case in cases if case.kind == "receive" or case is last[case.kind])
    return ast.Select(start, end, tuple(kept))


def receive(start: int, end: int, name: str, source: Node, body: Block) -> ast.SelectCase:
    return ast.SelectCase(start, end, "receive", name, source, body)


def timeout(start: int, end: int, source: Node, body: Block) -> ast.SelectCase:
    return ast.SelectCase(start, end, "timeout", None, source, body)


def default(start: int, end: int, body: Block) -> ast.SelectCase:
    return ast.SelectCase(start, end, "default", None, None, body)
