"""The context pack that a group of friction events suggests. Spec: 08 §8.8 "candidate_manifest"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.workflow.friction.context_pack import normalised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.reading.dicts import Dict


_ASKING = ("repeated_query", "missing_context")
_DETERMINISTIC = "expensive_model_used_for_deterministic_step"
_SLOT = "primary_context"


def candidate_manifest(title: str, owner: str, hint: str, events: Sequence[Dict]) -> Dict:
    """Return the manifest that the events' metadata suggest; ``hint`` is what they have in common."""
    first, slots = events[0], sorted(set(map(_slot, events)))
    return normalised(
        {
            "name": title,
            "owner": owner,
            "description": first["redacted_summary"],
            "triggers": [{"kind": first["kind"], "source": first["source"], "match_hint": hint}],
            "included_queries": _queries(events),
            "included_docs": _docs(events),
            "included_tools": _tools(events),
            "secrets": _secrets(events),
            "capabilities": sorted(set(_texts(events, "capability"))),
            "output_slots": [{"name": slot, "artifact_kind": "context"} for slot in slots],
            "review": {"owner": owner, "approval_required": True},
        }
    )


def _queries(events: Sequence[Dict]) -> list[Dict]:
    found: dict[str, Dict] = {}
    for event in events:
        query = _text(event, "query", "deterministic_query")
        if query:
            found.setdefault(query, event)
    if not found and events[0]["kind"] in _ASKING:
        found[events[0]["redacted_summary"]] = events[0]
    return [
        {
            "id": f"query_{number}",
            "label": event["redacted_summary"],
            "provider": event["provider"],
            "query": query,
            "output_slot": _slot(event),
        }
        for number, (query, event) in enumerate(found.items(), 1)
    ]


def _docs(events: Sequence[Dict]) -> list[Dict]:
    found: dict[tuple[str | None, str | None], None] = {}
    for event in events:
        place = _text(event, "doc_url", "document_url"), _text(event, "doc_path", "document_path")
        if any(place):
            found.setdefault(place)
    return [
        {"id": f"doc_{number}", "title": url or path, "url": url, "path": path}
        for number, (url, path) in enumerate(found, 1)
    ]


def _tools(events: Sequence[Dict]) -> list[Dict]:
    found: dict[str, Dict] = {}
    for event in events:
        name = event["tool"] or _text(event, "tool")
        if name:
            found.setdefault(name, event)
    return [
        {
            "name": name,
            "capability": _text(event, "capability"),
            "purpose": event["redacted_summary"],
            "deterministic": event["kind"] == _DETERMINISTIC,
        }
        for name, event in found.items()
    ]


def _secrets(events: Sequence[Dict]) -> list[Dict]:
    names = dict.fromkeys(_texts(events, "secret_ref"))
    return [{"name": name, "capability": name, "required": True} for name in names]


def _slot(event: Dict) -> str:
    return _text(event, "output_slot") or _SLOT


def _texts(events: Sequence[Dict], key: str) -> list[str]:
    return [text for text in (_text(event, key) for event in events) if text]


def _text(event: Dict, *keys: str) -> str | None:
    """Return the first text among the metadata's ``keys``."""
    values = (event["metadata"].get(key) for key in keys)
    return next((value for value in values if isinstance(value, str) and value.strip()), None)
