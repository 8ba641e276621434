"""Finding the JSON in a text. The language's JSON builtins use it: it loads nothing.

Spec: 04 §11.2, 07 §1.6.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Parse = Callable[[str], Any]

_FENCE = "```"

#: What counts between brackets: whole strings, a string that never ends, and the brackets themselves.
_TOKENS = {
    "{": re.compile(r'"(?:[^"\\]|\\.)*+"|["{}]', re.DOTALL),
    "[": re.compile(r'"(?:[^"\\]|\\.)*+"|["\[\]]', re.DOTALL),
}


def json_part(text: str) -> str:
    """The part of ``text`` that should be JSON: a fence's content, the first object or array, or all."""
    text = text.strip()
    found = (_fenced(text), _balanced(text, "{"), _balanced(text, "["))
    return next((part for part in found if part is not None), text)


def extract(text: str, parse: Parse) -> Any:
    """Parse ``text`` as JSON, or else the JSON in it. Raises the `ValueError` of ``parse``."""
    try:
        return parse(text.strip())
    except ValueError:
        return parse(json_part(text))


def is_json(text: str, parse: Parse) -> bool:
    """Return True if ``text`` is JSON as a whole."""
    try:
        parse(text.strip())
    except ValueError:
        return False
    return True


def _fenced(text: str) -> str | None:
    """The text between the line of the first fence and the next fence."""
    opening = text.find(_FENCE)
    line_end = text.find("\n", opening) if opening >= 0 else -1
    closing = text.find(_FENCE, line_end) if line_end >= 0 else -1
    return text[line_end + 1 : closing] if closing >= 0 else None


def _balanced(text: str, opening: str) -> str | None:
    """From the first ``opening`` bracket to the one that closes it."""
    start = text.find(opening)
    depth = 0
    for token in _TOKENS[opening].finditer(text, start) if start >= 0 else ():
        if token[0] == '"':  # no bracket follows an open string
            return None
        if len(token[0]) == 1:
            depth += 1 if token[0] == opening else -1
        if depth == 0:
            return text[start : token.end()]
    return None
