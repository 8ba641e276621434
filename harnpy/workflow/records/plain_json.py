"""Plain JSON values, and their text in a record. Spec: 08 §8.1, §6.1.

Functions are left out: they don't outlast a program.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

from harnpy.faults import MisuseError
from harnpy.text.json.writer import as_data

#: The error for a value whose text could not be read again.
TOO_DEEP = "recursion limit exceeded"

_LEFT_OUT = object()
_INDENT = 2


def plain(value: Any) -> Any:
    """Return ``value`` as it would be read back from its JSON text; itself if nothing changes.

    Identity matters: results computed from a value are remembered by its identity.
    """
    made = _plain(value)
    return None if made is _LEFT_OUT else made


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _text(value)
    if kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return value if isfinite(value) else None
    if isinstance(value, dict):
        made = {key: _plain(item) for key, item in value.items()}
        same = kind is dict and all(made[key] is item for key, item in value.items())
        if same and all(key.isascii() or _text(key) is key for key in value):
            return value
        return {_text(key): item for key, item in made.items() if item is not _LEFT_OUT}
    if kind is list:
        items = [_plain(item) for item in value]
        same = all(new is item for new, item in zip(items, value, strict=True))
        return value if same else [item for item in items if item is not _LEFT_OUT]
    if callable(value):
        return _LEFT_OUT
    return _plain(as_data(value))


def _text(text: str) -> str:
    """Return the text with lone surrogates, which no file can hold, joined or replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def pretty(value: Any) -> str:
    """Return the JSON text of a plain value: sorted keys, two spaces per level.

    Raise `MisuseError` for a value that is nested too deeply for CPython 3.12 or newer.
    """
    from msgspec import json

    try:
        return json.format(json.encode(value, order="sorted"), indent=_INDENT).decode()
    except RecursionError as error:
        raise MisuseError(f"failed to persist run record: {TOO_DEEP}") from error


def indented(text: str, levels: int) -> str:
    """Indent a text of `pretty` by some levels. Line ends occur only between values."""
    return text.replace("\n", "\n" + " " * (_INDENT * levels))
