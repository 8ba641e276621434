"""Finding text that a replay-only bundle must not contain. Spec: 08 §17, `replay_only`.

The counterpart of `replay_only`, which names what stays. For bundles whose sections have their shapes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from harnpy.reading.lenient import dicts_at
from harnpy.workflow.bundle import replay_only
from harnpy.workflow.bundle.redaction_manifest import step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.reading.dicts import Dict


_EVENT = (*replay_only.EVENT, replay_only.LIVE)
_SHA256 = re.compile("[0-9a-f]{64}")


def texts_left(bundle: Dict) -> Iterator[str]:
    """Report every place with such a text."""
    for place, value, allowed in _reduced(bundle):
        if not isinstance(value, dict) or not set(value) <= set(allowed):
            yield f"text is left in a replay-only bundle at {place}"
    for place, holder, keys in _emptied(bundle):
        yield from (
            f"text is left in a replay-only bundle at {step(place, key)}" for key in keys if holder.get(key)
        )
    for place, holder in [("/run", bundle["run"]), *_at("/child_runs", bundle["child_runs"])]:
        task = holder.get("task")
        if task and not (isinstance(task, str) and _SHA256.fullmatch(task)):
            yield f"text is left in a replay-only bundle at {place}/task"


def _reduced(bundle: Dict) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    """Yield values that may have only certain keys."""
    for place, section in _at("/transcripts", bundle["transcripts"]):
        is_sidecar = section["section"] == "sidecar"
        part, keys = ("rows", replay_only.ROW) if is_sidecar else ("events", _EVENT)
        yield f"{place}/transcript", section["transcript"], (part,)
        for inner, item in _at(f"{place}/transcript/{part}", section["transcript"].get(part, [])):
            yield inner, item, keys
            if isinstance(item, dict) and replay_only.LIVE in item:
                yield step(inner, replay_only.LIVE), item[replay_only.LIVE], ("client_id",)
    for place, decision in _at("/permissions", bundle["permissions"]):
        yield from _traced(place, decision, replay_only.PERMISSION, replay_only.PERMISSION_TEXTS)
    for place, request in _at("/hitl", bundle["hitl"]):
        kept = (*replay_only.REQUEST, "responses")
        yield from _traced(place, request, kept, replay_only.REQUEST_TEXTS)
        for inner, response in _at(step(place, "responses"), dicts_at(request, "responses")):
            yield from _traced(inner, response, replay_only.RESPONSE, replay_only.RESPONSE_TEXTS)


def _traced(
    place: str, value: Dict, kept: tuple[str, ...], texts: tuple[str, ...]
) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    yield place, value, (*kept, *texts)
    for key in texts:
        if key in value:
            yield step(place, key), value[key], replay_only.TRACE


def _emptied(bundle: Dict) -> Iterator[tuple[str, Dict, tuple[str, ...]]]:
    """Yield values that must have nothing under certain keys."""
    for place, call in _at("/tool_calls", bundle["tool_calls"]):
        yield place, call, replay_only.CALL_TEXTS
    for place, child in _at("/child_runs", bundle["child_runs"]):
        yield place, child, replay_only.CHILD_TEXTS
    for place, span in _at("/trace_spans", bundle["trace_spans"]):
        metadata = span.get("metadata")
        if isinstance(metadata, dict):
            texts = tuple(key for key, item in metadata.items() if not isinstance(item, (int, float)))
            yield f"{place}/metadata", metadata, texts
    fixture = bundle["replay"]["fixture"]
    if fixture is not None:
        yield "/replay/fixture", fixture, replay_only.FIXTURE_TEXTS
        assertions = fixture.get("stage_assertions")
        for place, assertion in _at("/replay/fixture/stage_assertions", assertions or []):
            yield place, assertion, replay_only.ASSERTED_TEXTS


def _at(place: str, items: Any) -> Iterator[tuple[str, Any]]:
    return ((step(place, at), item) for at, item in enumerate(items))
