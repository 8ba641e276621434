"""Reducing the sections of a run to what a replay is compared by: hashes and lengths, no text.

The keys that stay are listed; everything else is removed. Spec: 08 §17, `replay_only`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.reading.lenient import dicts_at
from harnpy.workflow.bundle.redaction_manifest import digest, step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harnpy.reading.dicts import Dict
    from harnpy.workflow.bundle.bundle_types import Replay, Sections
    from harnpy.workflow.bundle.redaction_manifest import Manifest
    from harnpy.workflow.records.record_types import ReplayFixture

    #: ``reduce(value, pointer, manifest)`` returns the reduced value.
    Reducer = Callable[[Any, str, Manifest], Any]

EVENT = ("kind", "role", "visibility", "bytes")
ROW = ("type", "role", "iteration", "bytes")
PERMISSION = ("stage_id", *EVENT)
QUESTION = ("request_id", "agent", "trace_id", "asked_at", "stage_id", *EVENT)
CALL_TEXTS = ("arguments", "result")
CHILD_TEXTS = ("request", "provenance", "execution", "approval_policy")
ASSERTED_TEXTS = ("visible_text_contains",)
FIXTURE_TEXTS = ("clarifying_question",)


def reduced(sections: Sections, manifest: Manifest) -> Sections:
    """Return the sections without text; the manifest holds the hashes of what was removed."""
    transcripts = _each(sections["transcripts"], "/transcripts", _transcript, manifest)
    calls = _each(sections["tool_calls"], "/tool_calls", _call, manifest)
    return {
        **sections,
        "run": _task_hashed(sections["run"], "/run", manifest),
        "transcripts": transcripts,
        "tool_calls": calls,
        "permissions": _each(sections["permissions"], "/permissions", _permission, manifest),
        "hitl": _each(sections["hitl"], "/hitl", _question, manifest),
        "replay": _replay(sections["replay"], manifest),
        "trace_spans": _each(sections["trace_spans"], "/trace_spans", _span, manifest),
        "child_runs": _each(sections["child_runs"], "/child_runs", _child, manifest),
    }


def _each(items: Iterable[Any], place: str, reduce: Reducer, manifest: Manifest) -> list[Any]:
    return [reduce(item, step(place, at), manifest) for at, item in enumerate(items)]


def _task_hashed(value: Any, pointer: str, manifest: Manifest) -> Any:
    task, place = value.get("task"), step(pointer, "task")
    if not task or manifest.has(place, "replay_only"):
        return value
    manifest.add(place, "replay_only", "hashed", task)
    return {**value, "task": digest(task)}


def _transcript(section: Dict, pointer: str, manifest: Manifest) -> Dict:
    transcript, place = section["transcript"], step(pointer, "transcript")
    manifest.add(place, "replay_only", "removed", transcript)
    if section["section"] == "sidecar":
        rows = [_lengths(row, ROW, _content(row)) for row in transcript["rows"]]
        return {**section, "transcript": {"rows": rows}}
    events = [_event(event, EVENT) for event in dicts_at(transcript, "events")]
    return {**section, "transcript": {"events": events}}


def _event(event: Dict, keys: tuple[str, ...]) -> Dict:
    return _lengths(event, keys, event.get("text"))


def _lengths(item: Dict, keys: tuple[str, ...], text: Any) -> Dict:
    """Return those keys of ``item``, and the length of its text in bytes."""
    length = len(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else 0
    return {**{key: item[key] for key in keys if key in item}, "bytes": length}


def _content(row: Dict) -> Any:
    return next((row[key] for key in ("content", "text", "prose") if isinstance(row.get(key), str)), None)


def _call(call: Dict, pointer: str, manifest: Manifest) -> Dict:
    """Return a call without its texts; calls with the same arguments and results have the same hashes."""
    texts = {key: call[key] for key in CALL_TEXTS if key in call}
    if texts:
        manifest.add(pointer, "replay_only", "removed", texts)
    return {key: value for key, value in call.items() if key not in CALL_TEXTS}


def _permission(event: Dict, pointer: str, manifest: Manifest) -> Dict:
    manifest.add(pointer, "replay_only", "removed", event)
    return _event(event, PERMISSION)


def _question(question: Dict, pointer: str, manifest: Manifest) -> Dict:
    manifest.add(pointer, "replay_only", "removed", question)
    return _lengths(question, QUESTION, question.get("prompt", question.get("text")))


def _replay(replay: Replay, manifest: Manifest) -> Replay:
    fixture = replay["fixture"]
    if fixture is None:
        return replay
    place = "/replay/fixture/stage_assertions"
    assertions = [
        _emptied(assertion, ASSERTED_TEXTS, step(place, at), manifest)
        for at, assertion in enumerate(fixture["stage_assertions"])
    ]
    emptied: ReplayFixture = _emptied(fixture, FIXTURE_TEXTS, "/replay/fixture", manifest)
    return {**replay, "fixture": {**emptied, "stage_assertions": assertions}}


def _span(span: Dict, pointer: str, manifest: Manifest) -> Dict:
    """Return a span with only the numbers of its metadata."""
    metadata = span.get("metadata")
    if not isinstance(metadata, dict):
        return span
    numbers = {key: value for key, value in metadata.items() if isinstance(value, (int, float))}
    if numbers != metadata:
        manifest.add(step(pointer, "metadata"), "replay_only", "removed", metadata)
    return {**span, "metadata": numbers}


def _child(child: Any, pointer: str, manifest: Manifest) -> Any:
    return _emptied(_task_hashed(child, pointer, manifest), CHILD_TEXTS, pointer, manifest)


def _emptied(value: Any, keys: tuple[str, ...], pointer: str, manifest: Manifest) -> Any:
    full = [key for key in keys if value.get(key)]
    for key in full:
        manifest.add(step(pointer, key), "replay_only", "removed", value[key])
    return {**value, **dict.fromkeys(full)}
