"""Friction events: one obstacle each, without secrets. Spec: 08 §8.8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.reading.strict import read_fields
from harnpy.workflow.friction.event_redaction import redacted, redacted_metadata
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.world import World


KINDS = (
    "repeated_query",
    "repeated_clarification",
    "approval_stall",
    "missing_context",
    "manual_handoff",
    "tool_gap",
    "failed_assumption",
    "expensive_model_used_for_deterministic_step",
    "human_hypothesis",
)

_FIELDS = {
    "schema_version": "int", "id": "string", "kind": "string", "source": "string", "actor": "string",
    "tenant_id": "string", "task_id": "string", "run_id": "string", "workflow_id": "string", "tool": "string",
    "provider": "string", "redacted_summary": "string", "estimated_cost_usd": "number",
    "estimated_time_ms": "int", "recurrence_hints": "list of strings", "trace_id": "string",
    "span_id": "string", "links": "list", "human_hypothesis": "string", "metadata": "dict",
    "timestamp": "string",
}  # fmt: skip
_SUMMARIES = {"summary": "string", "message": "string"}
_WHAT = "friction_event"


def normalised(given: Any, world: World, path: str = "", top_level_keys: bool = False) -> Dict:
    """Return the event with every key. ``top_level_keys``: its metadata's own keys may name secrets, too.

    Raise `MisuseError`.
    """
    event = read_fields(given, _FIELDS, path, what=_WHAT)
    others = read_fields(given, _SUMMARIES, path, what=_WHAT)
    if event["redacted_summary"] is None:
        event["redacted_summary"] = others["message"] if others["summary"] is None else others["summary"]
    event["kind"] = _kind(event["kind"])
    event["redacted_summary"] = redacted(event["redacted_summary"] or "")
    if not event["redacted_summary"]:
        raise MisuseError("friction_event: missing redacted_summary")
    event["schema_version"] = 1
    event["id"] = event["id"] or f"friction_{world.ids.new()}"
    # Six digits: events within one millisecond keep their order.
    event["timestamp"] = event["timestamp"] or rfc3339(world.clock.now(), 6)
    event["recurrence_hints"] = event["recurrence_hints"] or []
    event["links"] = event["links"] or []
    event["metadata"] = redacted_metadata(event["metadata"] or {}, top_level_keys)
    return event


def read_events(given: Any, world: World) -> list[Dict]:
    """Return the events in a list, or in a dict that has one as ``events``. Raise `MisuseError`."""
    events = given.get("events") if isinstance(given, dict) else given
    if not isinstance(events, list):
        raise MisuseError("friction events fixture must be an array or {events: [...]}")
    return [normalised(event, world, f"[{index}]") for index, event in enumerate(events)]


def _kind(given: str | None) -> str:
    kind = (given or "").strip().lower()
    if not kind:
        raise MisuseError("friction_event: missing kind")
    if kind not in KINDS:
        expected = ", ".join(KINDS)
        raise MisuseError(f"friction_event: unsupported kind '{kind}' (expected one of {expected})")
    return kind
