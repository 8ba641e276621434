"""Harn for Pygments: what colours programs in Sphinx, MkDocs, Jupyter, `rich` and the REPL. Spec: 09 §5.

Pygments finds it by the entry point `pygments.lexers` of this package.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from pygments.lexer import Lexer
from pygments.token import (
    Comment,
    Error,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
    _TokenType,
)

from harnpy.builtins import catalog
from harnpy.syntax.pieces import Kind, pieces

#: What Pygments calls each kind of piece.
TOKENS: dict[Kind, _TokenType] = {
    "blank": Whitespace,
    "shebang": Comment.Hashbang,
    "comment": Comment,
    "doc": String.Doc,
    "word": Keyword,
    "constant": Keyword.Constant,
    "name": Name,
    "function": Name.Function,
    "type": Name.Class,
    "attribute": Name.Decorator,
    "member": Name,
    "int": Number.Integer,
    "float": Number.Float,
    "duration": Number,
    "string": String,
    "escape": String.Escape,
    "interpolation": String.Interpol,
    "raw": String,
    "open string": String,
    "bracket": Punctuation,
    "operator": Operator,
    "error": Error,
}


class HarnLexer(Lexer):
    """The tokens of any text, also of a program half written or wrong."""

    name = "Harn"
    aliases: ClassVar[list[str]] = ["harn"]
    filenames: ClassVar[list[str]] = ["*.harn"]
    mimetypes: ClassVar[list[str]] = ["text/x-harn"]

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, _TokenType, str]]:
        builtins: Any = catalog.names()
        for kind, start, end in pieces(text):
            piece = text[start:end]
            known = kind == "name" and piece in builtins
            yield start, Name.Builtin if known else TOKENS[kind], piece
