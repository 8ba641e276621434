"""Data of others, taken for what it should be: whatever is something else counts as absent.

For what a record keeps as it came, such as a stage's metadata, a worker's handle or a transcript. What must
have its type is read by `fields` instead, which says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict


def as_text(value: Any) -> str | None:
    """A text that isn't empty."""
    return value if isinstance(value, str) and value else None


def as_dict(value: Any) -> Dict:
    return value if isinstance(value, dict) else {}


def as_dicts(value: Any) -> list[Dict]:
    """The dicts in a list, in order."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def events_of(transcript: Any) -> list[Dict]:
    return as_dicts(as_dict(transcript).get("events"))
