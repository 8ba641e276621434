"""The patterns that policies name tools with. Spec: 07 §8."""

from __future__ import annotations


def glob_matches(pattern: str, text: str) -> bool:
    """``*`` matches all; at the end it is for any rest, at the start for any beginning; else equality."""
    if pattern == "*":
        return True
    if pattern.endswith("*"):
        return text.startswith(pattern[:-1])
    if pattern.startswith("*"):
        return text.endswith(pattern[1:])
    return text == pattern
