"""Patterns in which only ``*`` is special."""

from __future__ import annotations


def glob_matches(pattern: str, text: str) -> bool:
    """Whether the pattern describes the whole text."""
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
