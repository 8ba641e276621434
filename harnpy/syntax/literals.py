"""The inside of string literals: where they end, what they mean. Spec: 01 §4.3-§4.7.

The pieces of an interpolated string are its texts and, for each ``${…}``, the offsets (start, end) of
the source between the braces.
"""

from __future__ import annotations

import re

#: Open brackets, blocks and braces of one interpolation; deeper programs are refused, so that nothing
#: behind the parser has to defend its stack.
MAX_NESTING = 200

Piece = str | tuple[int, int]

# A `$` without brace is in an atomic group: before 3.11.5, CPython's possessive quantifiers go on from
# the wrong place when the last repetition fails in a lookahead (gh-106052).
_PLAIN = r'(?:[^"\\$\n]|\\[\s\S])*+'
#: What a string has up to its end or an interpolation.
TEXT = rf"{_PLAIN}(?>(?:\$(?!\{{){_PLAIN})*)"
_TEXT = re.compile(rf'({TEXT})(?:(")|\$\{{)?')
_TRIPLE_STOP = re.compile(r'"""|\$\{')
_BRACE = re.compile(r"[{}]")
_ESCAPE = re.compile(r'\\([nt\\"$])')
_ESCAPED = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "$": "$"}


class LexError(Exception):
    """``text`` (without position) is what is wrong at offset ``at``; it is a ``limit`` that was hit."""

    def __init__(self, text: str, at: int, limit: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.at = at
        self.limit = limit


def too_deep(at: int) -> LexError:
    return LexError(f"Nesting too deep (limit {MAX_NESTING} levels)", at, limit=True)


def unescape(text: str) -> str:
    """``text`` with its escapes replaced; an unknown escape keeps both characters."""
    return _ESCAPE.sub(lambda found: _ESCAPED[found[1]], text) if "\\" in text else text


def scan_string(source: str, at: int, end: int) -> tuple[list[Piece], int]:
    """The pieces of the ``"…"`` string that opens at ``at``, and the offset behind it."""
    pieces: list[Piece] = []
    begin = at + 1
    while True:
        found = _TEXT.match(source, begin, end)
        assert found is not None, "the pattern matches the empty text"
        pieces.append(unescape(found[1]))
        if found[2]:
            return pieces, found.end()
        begin = found.end()
        if begin == found.end(1):
            raise LexError("Unterminated string", at)
        close = _closing_brace(source, begin, end, at)
        if not source[begin:close].strip():
            raise LexError("Unexpected character '}'", close + 1)
        pieces.append((begin, close))
        begin = close + 1


def scan_triple(source: str, at: int, end: int) -> tuple[list[Piece], int]:
    """The same for a triple-quoted string, dedent done."""
    pieces: list[Piece] = []
    begin = at + 3 + source.startswith("\n", at + 3)
    while True:
        found = _TRIPLE_STOP.search(source, begin, end)
        if found is None:
            raise LexError("Unterminated string", at)
        pieces.append(source[begin : found.start()])
        if found[0] == '"""':
            return _dedent(pieces), found.end()
        close = _closing_brace(source, found.end(), end, at)
        pieces.append((found.end(), close))
        begin = close + 1


def _closing_brace(source: str, begin: int, end: int, opening: int) -> int:
    """Where the interpolation ends whose text begins at ``begin``: braces count, quotes don't."""
    depth = 1
    for found in _BRACE.finditer(source, begin, end):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return found.start()
        if depth > MAX_NESTING:
            raise too_deep(found.start())
    raise LexError("Unterminated string", opening)


def _dedent(pieces: list[Piece]) -> list[Piece]:
    texts = [piece for piece in pieces if isinstance(piece, str)]
    margin = _margin("".join(texts))
    if len(pieces) == 1:
        return [texts[0] if margin is None else _shift(texts[0], margin).removesuffix("\n")]
    if margin:
        return [
            _shift(piece, margin).removesuffix("\n") if isinstance(piece, str) else piece for piece in pieces
        ]
    if not texts[-1].strip():
        return pieces[:-1]
    return pieces


def _margin(text: str) -> int | None:
    """The least indentation of the lines that are not blank; None when all are."""
    return min((_indentation(line) for line in text.split("\n") if line.strip()), default=None)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _shift(text: str, margin: int) -> str:
    """Each line without up to ``margin`` blanks in front; a blank line becomes empty."""
    if margin == 0:
        return text
    return "\n".join(
        line[min(margin, _indentation(line)) :] if line.strip() else "" for line in text.split("\n")
    )
