"""What a value is called in a message, whoever made it."""

from __future__ import annotations

from typing import Any

_NAMES = {
    type(None): "nil",
    bool: "bool",
    int: "int",
    float: "float",
    str: "string",
    list: "list",
    dict: "dict",
}


def type_word(value: Any) -> str:
    """The script's name for the type of ``value``; a value that has a name of its own says so itself."""
    known = _NAMES.get(type(value))
    if known is not None:
        return known
    named = getattr(value, "type_name", None)
    if isinstance(named, str):
        return named
    return "closure" if callable(value) else type(value).__name__
