"""The patterns of policies: ``*`` is anything, ``a*`` a prefix, ``*a`` a suffix, else the text itself.

Spec: 07 §8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def matches(pattern: str, text: str) -> bool:
    if pattern.endswith("*"):
        return text.startswith(pattern[:-1])
    if pattern.startswith("*"):
        return text.endswith(pattern[1:])
    return pattern == text


def first_match(patterns: Iterable[str], text: str) -> str | None:
    """The first of the patterns that ``text`` matches."""
    return next((pattern for pattern in patterns if matches(pattern, text)), None)


def common(outer: Iterable[str], inner: Iterable[str]) -> tuple[str, ...]:
    """What both lists of patterns let through: the ones of each that the other covers, inner ones first."""
    ours, theirs = list(inner), list(outer)
    narrower = [pattern for pattern in ours if first_match(theirs, pattern) is not None]
    narrower += [pattern for pattern in theirs if first_match(ours, pattern) is not None]
    return tuple(dict.fromkeys(narrower))
