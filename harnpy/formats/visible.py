"""Text that a terminal shows as it is: nothing in it moves the cursor, hides, or turns the line around.

What comes from a source file, a program or a file name is shown this way in diagnostics. Spec: 09 §1.4.
"""

from __future__ import annotations

import re
from unicodedata import category, east_asian_width

#: Controls without tab and line feed, controls of direction, what has no width, tags, lone surrogates.
_HIDDEN = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff"
    "\\ud800-\\udfff\\U000e0000-\\U000e007f]"
)
_WITHOUT_WIDTH = frozenset(["Mn", "Me", "Cf"])


def visible(text: str) -> str:
    """``text`` with what can't be seen written as ``\\x1b``, ``\\u202e``; tabs and line feeds stay."""
    return _HIDDEN.sub(_escape, text)


def on_one_line(text: str) -> str:
    """The same with line feeds as ``\\n``, too."""
    return visible(text).replace("\n", "\\n")


def cells(text: str) -> int:
    """Return how many columns of a terminal ``text`` takes: East Asian letters two, combining marks none."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def blank(text: str) -> str:
    """Blanks as wide as ``text``: its tabs stay, wherever the terminal has its stops."""
    return "".join("\t" if letter == "\t" else " " * cells(letter) for letter in text)


def marked(text: str, column: int, length: int, mark: str = "^") -> tuple[str, str]:
    """A source line as it is shown, and what stands below: a mark under the characters from ``column`` on.

    Columns count from 1. There is one mark for each column of the terminal, one at least.
    """
    before, inside = text[: column - 1], text[column - 1 : column - 1 + max(length, 0)]
    return visible(text), blank(visible(before)) + mark * max(1, cells(visible(inside)))


def cut(text: str, width: int) -> str:
    """Return a text, or as much of it as takes ``width`` columns, with `…` in the end."""
    if cells(text) <= width:
        return text
    taken = 0
    for at, letter in enumerate(text):
        taken += _cells_of(letter)
        if taken > width - 1:
            return f"{text[:at]}…"
    return text


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _cells_of(letter: str) -> int:
    if category(letter) in _WITHOUT_WIDTH:
        return 0
    return 2 if east_asian_width(letter) in "WF" else 1
