"""The word that a message uses for the type of a value. Spec: 02 §1."""

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
    """Return the language's name for the type of ``value``, which may bring its own as ``type_name``."""
    known = _NAMES.get(type(value))
    if known is not None:
        return known
    named = getattr(value, "type_name", None)
    if isinstance(named, str):
        return named
    return "closure" if callable(value) else type(value).__name__
