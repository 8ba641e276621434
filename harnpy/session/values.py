"""Copies of plain values, for the border between a program's immutable values and Python's mutable ones."""

from __future__ import annotations

from typing import Any


def detached(value: Any) -> Any:
    """A copy that shares no list and no dict with ``value``; everything else is taken as it is."""
    if type(value) is dict:
        return {key: item if type(item) is str else detached(item) for key, item in value.items()}
    if type(value) is list:
        return [item if type(item) is str else detached(item) for item in value]
    return value
