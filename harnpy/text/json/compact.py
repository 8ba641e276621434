"""JSON in one line with sorted keys: the form that is compared, hashed and sent to models."""

from __future__ import annotations

import json
from typing import Any

from harnpy.text.display import display


def compact_json(value: Any) -> str:
    """Return ``value`` as JSON; what JSON can't express becomes its text, NaN and the infinities null."""
    try:
        return _ENCODER.encode(value)
    except ValueError:
        return _ENCODER.encode(_finite(value))


_ENCODER = json.JSONEncoder(
    separators=(",", ":"), sort_keys=True, ensure_ascii=False, default=display, allow_nan=False
)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value
