"""`Dict`: a dict with text keys, which is what JSON objects and Harn's dicts are in Python."""

from __future__ import annotations

from typing import Any

Dict = dict[str, Any]


def detached(value: Any) -> Any:
    """Return a copy that shares no list and no dict with ``value``: a program's values must never change."""
    if type(value) is dict:
        return {key: item if type(item) is str else detached(item) for key, item in value.items()}
    if type(value) is list:
        return [item if type(item) is str else detached(item) for item in value]
    return value


def read_toml(text: str) -> Dict:
    """Return a TOML text as JSON would hold it: dates and times become texts. Raises ValueError."""
    from harnpy.text.toml.reader import parse_toml

    return {key: _as_json(value) for key, value in parse_toml(text).items()}


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else value
