"""Literals and keys as source text. Spec: 01 §4, §12."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

from harnpy.syntax.layout import MEMBER_WORDS
from harnpy.syntax.lexer import RESERVED

#: A line break inside a literal that is copied as it is, until all indentation is done. A lone surrogate:
#: no file has one.
HELD_BREAK = "\ud8ff"
_IDENTIFIER = re.compile(r"(?:_|[^\W\d])\w*")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
_UNSPOKEN = dict.fromkeys(map(ord, " \t(),"))
_UNITS = (("h", 3_600_000), ("m", 60_000), ("s", 1_000))


def quoted(text: str) -> str:
    """A ``"…"`` string of that text."""
    return f'"{escaped(text)}"'


def escaped(text: str) -> str:
    for plain, escape in _ESCAPES.items():
        text = text.replace(plain, escape)
    return text.replace("${", "\\${")


def indented(text: str) -> str:
    """Every line two columns further right."""
    return "  " + text.replace("\n", "\n  ")


def spans_lines(text: str) -> bool:
    return "\n" in text or HELD_BREAK in text


def widest(text: str) -> int:
    """The length of the longest line."""
    return max(map(len, text.replace(HELD_BREAK, "\n").split("\n")))


def same_code(text: str, other: str) -> bool:
    """Whether two texts differ in blanks, parentheses and commas only."""
    return text.translate(_UNSPOKEN) == other.translate(_UNSPOKEN)


def braces(lines: Iterable[str]) -> str:
    """The lines of a block between braces."""
    inside = "\n".join(lines)
    return f"{{\n{indented(inside)}\n}}" if inside else "{\n}"


def float_text(value: float) -> str:
    """All digits, always with a fraction: there are no exponents."""
    if value == float("inf"):
        return "9" * 400 + ".0"
    text = format(Decimal(repr(value)), "f")
    return text if "." in text else text + ".0"


def duration_text(ms: int) -> str:
    """In the largest of h, m, s, ms that divides evenly."""
    return next((f"{ms // size}{unit}" for unit, size in _UNITS if ms and ms % size == 0), f"{ms}ms")


def is_identifier(text: str) -> bool:
    return bool(_IDENTIFIER.fullmatch(text)) and (text[0] == "_" or text[0].isalpha())


def is_bare_key(text: str) -> bool:
    """Whether a dict key can stand without quotes."""
    return is_identifier(text) and (text not in RESERVED or text in MEMBER_WORDS)
