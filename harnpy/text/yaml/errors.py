"""What is wrong with a YAML text, in our own words, whatever parser refuses it. Spec: 04 §11.5.

Of what a parser raises, only the places count, which hardly differ between the releases of PyYAML, with and
without libyaml. The texts do.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import yaml
    from yaml._yaml import Mark as LibyamlMark

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

#: Characters of the source that a message quotes.
_QUOTED = 40
_OPENED = {"[": "list", "{": "dict", "'": "string", '"': "string"}


class Place(NamedTuple):
    """Counted from 0, as a parser's marks are."""

    line: int
    column: int


class YamlError(ValueError):
    """``<detail> at line L column C``."""

    def __init__(self, detail: str, place: Place | yaml.Mark | LibyamlMark | None = None) -> None:
        where = "" if place is None else f" at line {place.line + 1} column {place.column + 1}"
        super().__init__(f"{detail}{where}")


class KeyTypeError(YamlError):
    """A key is no string."""


def refuse_characters(text: str) -> None:
    """Raise YamlError for a character that may stand in no YAML text."""
    found = _FORBIDDEN.search(text)
    if found:
        raise YamlError(f"the character U+{ord(found[0]):04X} is not allowed", _place(text, found.start()))


def syntax_error(text: str, error: yaml.YAMLError, openers: list[int]) -> YamlError:
    """Return what a parser refuses; ``openers``: where what is open begins, the innermost last."""
    index = index_of(error, "problem_mark")
    if index is None:
        return YamlError("this is no YAML")
    if index < len(text):
        return YamlError(f"unexpected {_near(text, index)}", _place(text, index))
    quote = index_of(error, "context_mark")
    if quote is not None and text[quote : quote + 1] in ("'", '"'):
        return _unclosed(text, quote)
    for opener in reversed(openers):
        if opener >= 0 and text[opener] in "[{":
            return _unclosed(text, opener)
    return YamlError("unexpected end of text", _place(text, index))


def _unclosed(text: str, index: int) -> YamlError:
    return YamlError(f"the {_OPENED[text[index]]} is never closed", _place(text, index))


def index_of(error: yaml.YAMLError, mark: str) -> int | None:
    """Return where in the text a mark of a parser's error stands."""
    found: Any = getattr(error, mark, None)
    return None if found is None else found.index


def _near(text: str, index: int) -> str:
    if text[index] == "\t":
        return "tab"
    rest = _BREAK.split(text[index : index + _QUOTED], maxsplit=1)[0].rstrip()
    return f"input near '{rest}'" if rest else "end of line"


def _place(text: str, index: int) -> Place:
    breaks = list(_BREAK.finditer(text, 0, index))
    return Place(len(breaks), index - (breaks[-1].end() if breaks else 0))
