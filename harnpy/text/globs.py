"""Patterns in which only ``*`` is special, in two dialects.

`glob_matches` takes any number of stars; `affix_matches`, for policies, one at an end: ``a*`` is a prefix,
``*a`` a suffix, and any other pattern is the text itself. Spec: 07 §8.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def glob_matches(pattern: str, text: str) -> bool:
    """Return whether the pattern matches the whole text."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    last = rest.pop()
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    position, end = len(first), len(text) - len(last)
    for segment in rest:
        found = text.find(segment, position, end)
        if found < 0:
            return False
        position = found + len(segment)
    return True


def affix_matches(pattern: str, text: str) -> bool:
    if pattern.endswith("*"):
        return text.startswith(pattern[:-1])
    if pattern.startswith("*"):
        return text.endswith(pattern[1:])
    return pattern == text


def first_match(patterns: Iterable[str], text: str) -> str | None:
    """Return the first of the affix patterns that ``text`` matches."""
    return next((pattern for pattern in patterns if affix_matches(pattern, text)), None)


def common(outer: Iterable[str], inner: Iterable[str]) -> tuple[str, ...]:
    """Return the affix patterns of each list that the other covers, inner ones first."""
    ours, theirs = list(inner), list(outer)
    narrower = [pattern for pattern in ours if first_match(theirs, pattern) is not None]
    narrower += [pattern for pattern in theirs if first_match(ours, pattern) is not None]
    return tuple(dict.fromkeys(narrower))
