"""The safety net of the formatter: its output is the same program, with the same comments. Spec: 01 §12."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any

from harnpy.syntax import ast
from harnpy.syntax.ast import Node
from harnpy.syntax.comments import Comment, comments_between
from harnpy.syntax.errors import SyntaxFault
from harnpy.syntax.lexer import RESERVED, Tokens, lex, shebang_end
from harnpy.syntax.parser import parse
from harnpy.syntax.print_types import canonical_name
from harnpy.syntax.span import Lines
from harnpy.syntax.written import Written

_SAYING = RESERVED | {"IDENT", "STRING", "RAW_STRING", "INT", "FLOAT", "DURATION"}
#: Types with two names, and the word of an empty list of options.
_RENAMED = frozenset(["generator", "stream", "true", "false", "with"])
#: Marks of comments and dashes of bars, which formatting may change.
_MARKS = re.compile(r"[-*/\s]+")


class NotKept(Exception):
    """Formatting would change the program or lose a comment: a mistake of the formatter."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(
            f"internal error: formatting would change {what} at line {line}; the text stays as it is"
        )
        self.line = line


def check_kept(written: Written, program: ast.Program, text: str) -> None:
    """Raises `NotKept` unless ``text`` is ``program`` again, with all words and comments of its source."""
    source, comments = written.source, written.all_comments
    lines = Lines(source)
    try:
        printed = parse(text)
    except SyntaxFault as fault:
        raise NotKept(1, "the syntax") from fault
    differs = _difference(program, _in_order(program), _in_order(printed))
    if differs is not None:
        raise NotKept(lines.line(differs.start), "the program")
    tokens = lex(text, 0, len(text))
    dropped = _said(written.tokens) - _said(tokens) - _unsaid(written.tokens)
    if dropped:
        at = next(at for at, value in enumerate(written.tokens.values) if value in dropped)
        raise NotKept(lines.line(written.tokens.starts[at]), "what is said")
    before, after = _words(source, comments), _words(text, comments_between(tokens, shebang_end(text)))
    if before != after:
        changed = (before - after) + (after - before)
        places = (comment.start for comment in comments if changed.keys() & _words(source, [comment]).keys())
        raise NotKept(lines.line(next(places, 0)), "a comment")


def leading_imports(program: ast.Program) -> int:
    """How many items at the beginning are imports."""
    return len(list(takewhile(lambda item: isinstance(item, ast.Import), program.items)))


def import_order(node: ast.Node | None) -> tuple[bool, str, bool]:
    """The modules that come with harnpy first, then by path; all of a module before names of it."""
    assert isinstance(node, ast.Import)
    return not node.path.startswith("std/"), node.path, node.names is not None


def _in_order(program: ast.Program) -> tuple[Node, ...]:
    """The items, the leading imports as they are printed."""
    count = leading_imports(program)
    return (*sorted(program.items[:count], key=import_order), *program.items[count:])


def _difference(program: Node, left: Any, right: Any) -> Node | None:
    """The innermost node of ``left`` that is not the same in ``right``. Without recursion: trees are deep."""
    pairs: list[tuple[Any, Any, Node]] = [(left, right, program)]
    while pairs:
        mine, other, around = pairs.pop()
        if isinstance(mine, Node):
            if type(mine) is not type(other):
                return mine
            pairs += ((*parts, mine) for parts in zip(_fields(mine), _fields(other), strict=True))
        elif isinstance(mine, tuple) and isinstance(other, tuple) and len(mine) == len(other):
            pairs += ((*parts, around) for parts in zip(mine, other, strict=True))
        elif mine != other:
            return around
    return None


def _fields(node: Node) -> Iterator[Any]:
    if isinstance(node, ast.TypeName):
        yield canonical_name(node.name)
        yield node.args
    elif isinstance(node, ast.Import):
        yield from (node.path, node.pub, None if node.names is None else tuple(sorted(node.names)))
    else:
        yield from (getattr(node, name) for name in node.__slots__)


def _said(tokens: Tokens) -> Counter[object]:
    """The names, words and literals of a text; the tree alone would not miss a case that another replaces."""
    return Counter(
        value
        for kind, value in zip(tokens.kinds, tokens.values, strict=True)
        if kind in _SAYING or kind[0] == "~"
    )


def _unsaid(tokens: Tokens) -> Counter[object]:
    """What need not be said again: the second name of ``{a: a}`` in patterns, other names of types."""
    names = zip(tokens.values, tokens.values[1:], tokens.values[2:], strict=False)
    again = Counter(name for name, colon, other in names if colon == ":" and name == other)
    said = _said(tokens)
    return again + Counter({word: said[word] for word in _RENAMED})


def _words(source: str, comments: Iterable[Comment]) -> Counter[str]:
    return Counter(
        word for comment in comments for word in _MARKS.split(source[comment.start : comment.end]) if word
    )
