"""Passing over the parts of a log that can't hold what is looked for, without decoding them.

A test looks at the bytes of some lines. It may be wrong in letting them pass, never in refusing them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Test = Callable[[bytes], bool]

#: What JSON writes as it is, and case folding changes in one way only.
_PLAIN = re.compile(r"[a-z0-9_.-]+")
#: Folded, these become some of the plain characters: text with one of them isn't judged by its bytes.
_ODD = re.compile(rb"\\u|\xc4\xb0|\xc5\xbf|\xe2\x84\xaa|\xef\xac|\xc5\x89|\xc7\xb0|\xe1\xba|\xc3\x9f")


def naming(names: Iterable[str]) -> Test:
    """Lines that hold one of these names as a JSON string."""
    needles = [f'"{name}"'.encode() for name in names]
    return lambda data: any(needle in data for needle in needles)


def holding(text: str) -> Test:
    """Lines that hold this text, in this case."""
    needle = _longest(re.findall(r"[A-Za-z0-9_.-]+", text)).encode()
    return lambda data: needle in data or b"\\u" in data


def mentioning(terms: Sequence[str]) -> Test:
    """Lines that hold all of these folded terms, in any case."""
    needles = [_longest(_PLAIN.findall(term)).encode() for term in terms]

    def test(data: bytes) -> bool:
        lower = data.lower()
        return all(needle in lower for needle in needles) or _ODD.search(data) is not None

    return test


def _longest(parts: list[str]) -> str:
    return max(parts, key=len, default="")
