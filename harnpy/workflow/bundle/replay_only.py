"""Reducing the sections of a run to what a replay is compared by: hashes and lengths, no text.

The keys that stay are listed; everything else is removed. The counterpart finds text that a replay-only
bundle must not contain. Spec: 08 §17, `replay_only`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from harnpy.formats.dicts import as_dict, dicts_at
from harnpy.formats.json import compact_json
from harnpy.formats.text_size import byte_length
from harnpy.workflow.bundle.redactor import digest, pointer_step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harnpy.formats.dicts import Dict
    from harnpy.workflow.bundle.redactor import Manifest
    from harnpy.workflow.bundle.sections import Replay, Sections
    from harnpy.workflow.records.record_shapes import ReplayFixture

    #: ``reduce(value, pointer, manifest)`` returns the reduced value.
    Reducer = Callable[[Any, str, Manifest], Any]

EVENT = ("kind", "role", "visibility", "bytes")
ROW = ("type", "role", "iteration", "bytes")
LIVE = "live_session"
PERMISSION = ("kind", "at", "stage_id", "decision", "by", "request_id", "signatures")
PERMISSION_TEXTS = ("arguments", "reason")
REQUEST = ("request_id", "kind", "agent", "trace_id", "requested_at", "status")
REQUEST_TEXTS = ("prompt", "payload")
RESPONSE = ("reviewer", "approved", "accepted", "responded_at", "signature")
RESPONSE_TEXTS = ("answer", "reason")
#: What stays of a text: its length, and its hash.
TRACE = ("bytes", "sha256")
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
        "hitl": _each(sections["hitl"], "/hitl", _request, manifest),
        "replay": _replay(sections["replay"], manifest),
        "trace_spans": _each(sections["trace_spans"], "/trace_spans", _span, manifest),
        "child_runs": _each(sections["child_runs"], "/child_runs", _child, manifest),
    }


def _each(items: Iterable[Any], place: str, reduce: Reducer, manifest: Manifest) -> list[Any]:
    return [reduce(item, pointer_step(place, at), manifest) for at, item in enumerate(items)]


def _task_hashed(value: Any, pointer: str, manifest: Manifest) -> Any:
    task, place = value.get("task"), pointer_step(pointer, "task")
    if not task or manifest.has(place, "replay_only"):
        return value
    manifest.add(place, "replay_only", "hashed", task)
    return {**value, "task": digest(task)}


def _transcript(section: Dict, pointer: str, manifest: Manifest) -> Dict:
    transcript, place = section["transcript"], pointer_step(pointer, "transcript")
    manifest.add(place, "replay_only", "removed", transcript)
    if section["section"] == "sidecar":
        rows = [_lengths(row, ROW, _content(row)) for row in transcript["rows"]]
        return {**section, "transcript": {"rows": rows}}
    events = [_event(event) for event in dicts_at(transcript, "events")]
    return {**section, "transcript": {"events": events}}


def _event(event: Dict) -> Dict:
    """Return what stays of an event, with the client that typed it."""
    reduced = _lengths(event, EVENT, event.get("text"))
    live = as_dict(as_dict(event.get("metadata")).get(LIVE))
    return {**reduced, LIVE: {"client_id": live["client_id"]}} if "client_id" in live else reduced


def _lengths(item: Dict, keys: tuple[str, ...], text: Any) -> Dict:
    """Return those keys of ``item``, and the length of its text in bytes."""
    length = byte_length(text) if isinstance(text, str) else 0
    return {**{key: item[key] for key in keys if key in item}, "bytes": length}


def _content(row: Dict) -> Any:
    return next((row[key] for key in ("content", "text", "prose") if isinstance(row.get(key), str)), None)


def _call(call: Dict, pointer: str, manifest: Manifest) -> Dict:
    """Return a call without its texts; calls with the same arguments and results have the same hashes."""
    texts = {key: call[key] for key in CALL_TEXTS if key in call}
    if texts:
        manifest.add(pointer, "replay_only", "removed", texts)
    return {key: value for key, value in call.items() if key not in CALL_TEXTS}


def _permission(decision: Dict, pointer: str, manifest: Manifest) -> Dict:
    manifest.add(pointer, "replay_only", "removed", decision)
    return _traced(decision, PERMISSION, PERMISSION_TEXTS)


def _request(request: Dict, pointer: str, manifest: Manifest) -> Dict:
    manifest.add(pointer, "replay_only", "removed", request)
    responses = [_traced(each, RESPONSE, RESPONSE_TEXTS) for each in dicts_at(request, "responses")]
    return {**_traced(request, REQUEST, REQUEST_TEXTS), "responses": responses}


def _traced(value: Dict, kept: tuple[str, ...], texts: tuple[str, ...]) -> Dict:
    """Return those keys of ``value`` that are kept, and the length and the hash of its texts."""
    reduced = {key: value[key] for key in kept if key in value}
    return reduced | {key: _trace(value[key]) for key in texts if value.get(key) is not None}


def _trace(text: Any) -> Dict:
    if isinstance(text, dict) and set(text) == set(TRACE):
        return text  # of a bundle that was replay-only before
    shown = text if isinstance(text, str) else compact_json(text)
    return {"bytes": byte_length(shown), "sha256": digest(text)}


def _replay(replay: Replay, manifest: Manifest) -> Replay:
    fixture = replay["fixture"]
    if fixture is None:
        return replay
    place = "/replay/fixture/stage_assertions"
    assertions = [
        _emptied(assertion, ASSERTED_TEXTS, pointer_step(place, at), manifest)
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
        manifest.add(pointer_step(pointer, "metadata"), "replay_only", "removed", metadata)
    return {**span, "metadata": numbers}


def _child(child: Any, pointer: str, manifest: Manifest) -> Any:
    return _emptied(_task_hashed(child, pointer, manifest), CHILD_TEXTS, pointer, manifest)


def _emptied(value: Any, keys: tuple[str, ...], pointer: str, manifest: Manifest) -> Any:
    full = [key for key in keys if value.get(key)]
    for key in full:
        manifest.add(pointer_step(pointer, key), "replay_only", "removed", value[key])
    return {**value, **dict.fromkeys(full)}


_EVENT = (*EVENT, LIVE)
_SHA256 = re.compile("[0-9a-f]{64}")


def texts_left(bundle: Dict) -> Iterator[str]:
    """Report every place with such a text."""
    for place, value, allowed in _reduced(bundle):
        if not isinstance(value, dict) or not set(value) <= set(allowed):
            yield f"text is left in a replay-only bundle at {place}"
    for place, holder, keys in _holders_in(bundle):
        yield from (
            f"text is left in a replay-only bundle at {pointer_step(place, key)}"
            for key in keys
            if holder.get(key)
        )
    for place, holder in [("/run", bundle["run"]), *_at("/child_runs", bundle["child_runs"])]:
        task = holder.get("task")
        if task and not (isinstance(task, str) and _SHA256.fullmatch(task)):
            yield f"text is left in a replay-only bundle at {place}/task"


def _reduced(bundle: Dict) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    """Yield values that may have only certain keys."""
    for place, section in _at("/transcripts", bundle["transcripts"]):
        is_sidecar = section["section"] == "sidecar"
        part, keys = ("rows", ROW) if is_sidecar else ("events", _EVENT)
        yield f"{place}/transcript", section["transcript"], (part,)
        for inner, item in _at(f"{place}/transcript/{part}", section["transcript"].get(part, [])):
            yield inner, item, keys
            if isinstance(item, dict) and LIVE in item:
                yield pointer_step(inner, LIVE), item[LIVE], ("client_id",)
    for place, decision in _at("/permissions", bundle["permissions"]):
        yield from _traces_in(place, decision, PERMISSION, PERMISSION_TEXTS)
    for place, request in _at("/hitl", bundle["hitl"]):
        kept = (*REQUEST, "responses")
        yield from _traces_in(place, request, kept, REQUEST_TEXTS)
        for inner, response in _at(pointer_step(place, "responses"), dicts_at(request, "responses")):
            yield from _traces_in(inner, response, RESPONSE, RESPONSE_TEXTS)


def _traces_in(
    place: str, value: Dict, kept: tuple[str, ...], texts: tuple[str, ...]
) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    yield place, value, (*kept, *texts)
    for key in texts:
        if key in value:
            yield pointer_step(place, key), value[key], TRACE


def _holders_in(bundle: Dict) -> Iterator[tuple[str, Dict, tuple[str, ...]]]:
    """Yield values that must have nothing under certain keys."""
    for place, call in _at("/tool_calls", bundle["tool_calls"]):
        yield place, call, CALL_TEXTS
    for place, child in _at("/child_runs", bundle["child_runs"]):
        yield place, child, CHILD_TEXTS
    for place, span in _at("/trace_spans", bundle["trace_spans"]):
        metadata = span.get("metadata")
        if isinstance(metadata, dict):
            texts = tuple(key for key, item in metadata.items() if not isinstance(item, (int, float)))
            yield f"{place}/metadata", metadata, texts
    fixture = bundle["replay"]["fixture"]
    if fixture is not None:
        yield "/replay/fixture", fixture, FIXTURE_TEXTS
        assertions = fixture.get("stage_assertions")
        for place, assertion in _at("/replay/fixture/stage_assertions", assertions or []):
            yield place, assertion, ASSERTED_TEXTS


def _at(place: str, items: Any) -> Iterator[tuple[str, Any]]:
    return ((pointer_step(place, at), item) for at, item in enumerate(items))
