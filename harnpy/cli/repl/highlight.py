"""Harn text as coloured pieces, for the REPL's input line and for shown code. Spec: 09 §5.

A lexer for display: it takes any text, even an incomplete program, and classifies pieces only as
far as colours need. `harnpy.syntax` knows what a program means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prompt_toolkit.document import Document
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.lexers import Lexer

_PIECE = re.compile(
    r"""
      (?P<comment>     //[^\n]* | /\*.*?(?:\*/|\Z) )
    | (?P<string>      \"{3}.*?\"{3} | r"[^"]*" | "(?!"")(?:\\.|[^"\\])*" )
    | (?P<open_string> r?"+.* )
    | (?P<number>      \d+(?:\.\d+)?(?:ms|[smhdw]\b)? )
    | (?P<name>        [^\W\d]\w* )
    | (?P<open>        [{(\[] )
    | (?P<close>       [})\]] )
    | (?P<other>       \s+ | . )
    """,
    re.VERBOSE | re.DOTALL,
)

_CONSTANTS = frozenset({"true", "false", "nil"})

#: Piece kind to prompt-toolkit style; what isn't here is plain.
STYLES = {
    "comment": "ansibrightblack",
    "string": "ansigreen",
    "open_string": "ansigreen",
    "number": "ansicyan",
    "constant": "ansiyellow",
    "word": "bold ansiblue",
}


def pieces(text: str, words: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """`text` cut into `(kind, piece)`; the names in `words` have the kind ``word``."""
    for match in _PIECE.finditer(text):
        kind, piece = match.lastgroup or "other", match.group()
        if kind == "name":
            kind = "constant" if piece in _CONSTANTS else "word" if piece in words else kind
        yield kind, piece


def is_unfinished(text: str) -> bool:
    """True while a string or a bracket is open; surplus closing brackets don't count."""
    depth = 0
    for kind, _ in pieces(text):
        if kind == "open_string":
            return True
        depth += (kind == "open") - (kind == "close")
    return depth > 0


def prompt_lexer(words: Collection[str]) -> Lexer:
    """`pieces` as a prompt-toolkit lexer."""
    from prompt_toolkit.lexers import Lexer

    class HarnLexer(Lexer):
        def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
            lines = _styled_lines(document.text, words)
            return lambda number: lines[number] if number < len(lines) else []

    return HarnLexer()


def _styled_lines(text: str, words: Collection[str]) -> list[StyleAndTextTuples]:
    """`text` as styled fragments, line by line."""
    lines: list[StyleAndTextTuples] = [[]]
    for kind, piece in pieces(text, words):
        first, *rest = piece.split("\n")
        style = STYLES.get(kind, "")
        lines[-1].append((style, first))
        lines += [[(style, line)] for line in rest]
    return lines
