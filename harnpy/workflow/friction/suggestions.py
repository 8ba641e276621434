"""Suggesting context packs for recorded friction. Spec: 08 §8.8 "Suggestions"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from harnpy.reading.strict import read_fields
from harnpy.workflow.friction.candidate import candidate_manifest
from harnpy.workflow.friction.context_pack import CONTEXT_PACK
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.reading.dicts import Dict
    from harnpy.world import World

    Key = tuple[str, ...]

_OPTIONS = {"min_occurrences": "int", "owner": "string"}
_GROUPED_BY = ("kind", "source", "tool", "provider")
_LEAST = 2
_WORKFLOW = ("approval_stall", "manual_handoff")
_BOTH = ("tool_gap", "failed_assumption", "expensive_model_used_for_deterministic_step")
_CONFIDENCE = {2: 0.62, 3: 0.74, 4: 0.82}
_HIGHEST_CONFIDENCE = 0.9
_TITLE_WORDS = 6
_EXAMPLES = 3
TEAM = "team"


def suggestions(events: Sequence[Dict], options: Any, world: World) -> list[Dict]:
    """Return what the events, in normal form, suggest. Raise `MisuseError` for wrong options."""
    settings = read_fields(
        {} if options is None else options, _OPTIONS, "options", what="context_pack_suggestions"
    )
    needed = max(settings["min_occurrences"] or 0, _LEAST)
    groups: dict[Key, list[Dict]] = {}
    for event in events:
        groups.setdefault(_key(event), []).append(event)
    return [
        _suggestion(sorted(groups[key], key=_moment), settings["owner"], world)
        for key in sorted(groups)
        if len(groups[key]) >= needed
    ]


def _suggestion(events: list[Dict], owner: str | None, world: World) -> Dict:
    first = events[0]
    title = f"{first['source'] or TEAM} {_hint(first, _TITLE_WORDS)} context pack"
    manifest = candidate_manifest(title, owner or first["actor"] or TEAM, _hint(first), events)
    return {
        "_type": "context_pack_suggestion",
        "id": f"context_pack_suggestion_{world.ids.new()}",
        "title": title,
        "recommended_artifact": _artifact(first["kind"]),
        "confidence": _CONFIDENCE.get(len(events), _HIGHEST_CONFIDENCE),
        "candidate_manifest": manifest,
        "evidence": [_evidence(event) for event in events],
        "examples": sorted({event["redacted_summary"] for event in events})[:_EXAMPLES],
        "estimated_savings": _savings(events),
        "risk_privacy_notes": _notes(manifest),
        "source_event_ids": [event["id"] for event in events],
        "created_at": rfc3339(world.clock.now()),
        "metadata": {key: first[key] for key in ("kind", "source", "tool", "provider")}
        | {"hint": _hint(first)},
    }


def _key(event: Dict) -> Key:
    return (*(event[key] or "" for key in _GROUPED_BY), _hint(event))


def _moment(event: Dict) -> Key:
    return event["timestamp"], event["id"]


def _hint(event: Dict, words: int | None = None) -> str:
    """Return what recurs: the event's hint, else the first ``words`` words of its summary."""
    hints = event["recurrence_hints"]
    if hints and hints[0].strip():
        return str(hints[0])
    found = re.findall(r"[^\W_]+", event["redacted_summary"].lower())
    return " ".join(found[:words])


def _artifact(kind: str) -> str:
    if kind in _WORKFLOW:
        return "workflow"
    return "both" if kind in _BOTH else CONTEXT_PACK


def _evidence(event: Dict) -> Dict:
    return {
        "event_id": event["id"],
        "timestamp": event["timestamp"],
        "summary": event["redacted_summary"],
        "links": event["links"],
    }


def _savings(events: Sequence[Dict]) -> Dict:
    """Return what would be saved: everything but the first occurrence."""
    again = events[1:]
    return {
        "occurrences": len(events),
        "estimated_time_saved_ms": sum(event["estimated_time_ms"] or 0 for event in again),
        "estimated_cost_saved_usd": sum((event["estimated_cost_usd"] or 0.0 for event in again), 0.0),
    }


def _notes(manifest: Dict) -> list[str]:
    notes = ["The examples are redacted summaries; review them before the pack is shared."]
    if manifest["secrets"]:
        notes.append("The pack names secrets by capability; it must never hold their values.")
    return notes
