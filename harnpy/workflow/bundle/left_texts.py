"""Finding text that a replay-only bundle must not contain. Spec: 08 §17, `replay_only`.

The counterpart of `replay_only`, which names what stays. For bundles whose sections have their shapes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from harnpy.workflow.bundle import replay_only
from harnpy.workflow.bundle.redaction_manifest import step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.reading.dicts import Dict


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
        part, keys = ("rows", replay_only.ROW) if is_sidecar else ("events", replay_only.EVENT)
        yield f"{place}/transcript", section["transcript"], (part,)
        for inner, item in _at(f"{place}/transcript/{part}", section["transcript"].get(part, [])):
            yield inner, item, keys
    for place, event in _at("/permissions", bundle["permissions"]):
        yield place, event, replay_only.PERMISSION
    for place, question in _at("/hitl", bundle["hitl"]):
        yield place, question, replay_only.QUESTION


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
