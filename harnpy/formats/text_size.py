"""The size of texts: their length in UTF-8, splitting by it, and the one estimate of tokens.

Lone surrogates count as three bytes, like other characters of their range. On the start-up path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from harnpy.faults import paced

BYTES_PER_TOKEN = 4


def byte_length(text: str) -> int:
    """Return the length of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def fits(text: str, limit: int) -> bool:
    """Return True if a text has at most ``limit`` bytes; a short one isn't encoded for that."""
    return len(text) * 4 <= limit or byte_length(text) <= limit


def cut_bytes(text: str, limit: int) -> str:
    """Return as much of the beginning as fits into ``limit`` bytes."""
    if text.isascii():
        return text[:limit]
    return text.encode("utf-8", "surrogatepass")[:limit].decode("utf-8", "ignore")


def tokens_of(size: int, *, whole: bool = False) -> int:
    """Estimate the tokens in ``size`` bytes: a quarter of them, rounded up.

    ``whole`` counts whole tokens only, as for conversations (08 §4.1).
    """
    return size // BYTES_PER_TOKEN if whole else -(-size // BYTES_PER_TOKEN)


def text_tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    return tokens_of(byte_length(text))


def json_tokens(value: Any) -> int:
    """Estimate the tokens of JSON: those of each string, keys included, and one for every other scalar."""
    if isinstance(value, str):
        return text_tokens(value)
    if isinstance(value, dict):
        return sum(text_tokens(key) + json_tokens(item) for key, item in paced([*value.items()]))
    if isinstance(value, list):
        return sum(map(json_tokens, paced(value)))
    return 1


#: Where a text may be split, the best places first, and what joins the pieces again.
_PARAGRAPHS, _LINES = (re.compile(r"\n{2,}"), "\n\n"), (re.compile(r"\n"), "\n")


def split_text(text: str, limit: int) -> list[str]:
    """Split a text into pieces of at most ``limit`` bytes: at paragraphs, else at lines, else anywhere."""
    return [piece for piece in _split(text, limit, (_PARAGRAPHS, _LINES)) if not piece.isspace()]


def _split(text: str, limit: int, places: Sequence[tuple[re.Pattern[str], str]]) -> Iterator[str]:
    if byte_length(text) <= limit:
        yield text
        return
    if not places:
        yield from _characters(text, limit)
        return
    (pattern, joint), *finer = places
    packed: list[str] = []
    size = 0
    for part in filter(None, pattern.split(text)):
        length = byte_length(part)
        if packed and size + len(joint) + length > limit:
            yield joint.join(packed)
            packed, size = [], 0
        if length > limit:
            yield from _split(part, limit, finer)
            continue
        size += length + (len(joint) if packed else 0)
        packed.append(part)
    if packed:
        yield joint.join(packed)


def _characters(text: str, limit: int) -> Iterator[str]:
    data = text.encode("utf-8", "surrogatepass")
    start = 0
    while start < len(data):
        end = start + limit
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        yield data[start:end].decode("utf-8", "surrogatepass")
        start = end
