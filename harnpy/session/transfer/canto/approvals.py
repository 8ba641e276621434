"""Approvals have keys of another spelling in Canto's logs. Spec: 10 §A1.2."""

from __future__ import annotations

from typing import Any

from harnpy.session.events import APPROVAL_REQUESTED

_SPELLINGS = {
    "id": "ID",
    "session_id": "SessionID",
    "tool": "Tool",
    "args": "Args",
    "category": "Category",
    "operation": "Operation",
    "resource": "Resource",
    "metadata": "Metadata",
}
_OURS = {theirs: ours for ours, theirs in _SPELLINGS.items()}


def to_canto(type: str, data: Any) -> Any:
    """Return an event's data in Canto's spelling."""
    return _renamed(data, _SPELLINGS) if type == APPROVAL_REQUESTED else data


def from_canto(type: str, data: Any) -> Any:
    """Return an event's data in ours."""
    return _renamed(data, _OURS) if type == APPROVAL_REQUESTED else data


def _renamed(data: Any, names: dict[str, str]) -> Any:
    return {names.get(key, key): value for key, value in data.items()} if isinstance(data, dict) else data
