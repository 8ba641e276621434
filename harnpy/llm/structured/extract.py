"""Where in a text its JSON is. Spec: 04 §11.2, 07 §1.6."""

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
    """What should be JSON in ``text``: a fence's content, the first object, the first array, or all of it."""
    text = text.strip()
    found = (_fenced(text), _balanced(text, "{"), _balanced(text, "["))
    return next((part for part in found if part is not None), text)


def extract(text: str, parse: Parse) -> Any:
    """The JSON value that ``text`` is, or else holds; raises what ``parse`` does, a `ValueError`."""
    try:
        return parse(text.strip())
    except ValueError:
        return parse(json_part(text))


def is_json(text: str, parse: Parse) -> bool:
    """Whether nothing has to be lifted out of ``text``."""
    try:
        parse(text.strip())
    except ValueError:
        return False
    return True


def _fenced(text: str) -> str | None:
    """What stands between the line of the first fence and the next fence."""
    opening = text.find(_FENCE)
    line_end = text.find("\n", opening) if opening >= 0 else -1
    closing = text.find(_FENCE, line_end) if line_end >= 0 else -1
    return text[line_end + 1 : closing] if closing >= 0 else None


def _balanced(text: str, opening: str) -> str | None:
    """From the first ``opening`` bracket to the one that closes it."""
    start = text.find(opening)
    depth = 0
    for token in _TOKENS[opening].finditer(text, start) if start >= 0 else ():
        if token[0] == '"':  # nothing behind an open string is a bracket
            return None
        if len(token[0]) == 1:
            depth += 1 if token[0] == opening else -1
        if depth == 0:
            return text[start : token.end()]
    return None
