"""The tool calls of a run: its recordings, with what the transcripts of its stages know beside. Pure.

A recording says what came back, a transcript what the tool was called with and in which stage. Both know
the tool's name and the call's id; calls that share even those belong together in order. Spec: 08 §8.1, §17.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

from harnpy.reading.lenient import dicts_at
from harnpy.workflow.bundle.redaction_manifest import digest
from harnpy.workflow.records.record_shapes import RECORDING
from harnpy.workflow.shapes import made

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.reading.dicts import Dict
    from harnpy.workflow.records.record_types import RunRecord


def tool_calls(run: RunRecord) -> list[Dict]:
    """Recorded calls in the order of recording, then those that only a transcript tells of."""
    told: dict[tuple[Any, Any], deque[Dict]] = defaultdict(deque)
    for call in _told(run):
        told[call["tool_name"], call["tool_use_id"]].append(call)
    calls = []
    for recording in run["tool_recordings"]:
        known = told[recording["tool_name"], recording["tool_use_id"]]
        more = known.popleft() if known else {"stage_id": None}
        calls.append({**recording, **{key: more[key] for key in ("arguments", "stage_id") if key in more}})
    return calls + [_unrecorded(call) for left in told.values() for call in left]


def _told(run: RunRecord) -> Iterator[Dict]:
    """Calls by their events; one that the transcripts of several stages share belongs to the first."""
    sources = [(stage["id"], stage["transcript"]) for stage in run["stages"]]
    seen: set[str] = set()
    for stage_id, transcript in [*sources, (None, run["transcript"])]:
        found = list(_calls_in(transcript, stage_id))
        yield from (call for call in found if call["tool_use_id"] not in seen)
        seen |= {call["tool_use_id"] for call in found if call["tool_use_id"]}


def _calls_in(transcript: Any, stage_id: Any) -> Iterator[Dict]:
    """A call begins with its intent; one that was rejected has none, and its execution tells all."""
    begun: dict[tuple[Any, Any], deque[Dict]] = defaultdict(deque)
    calls: list[Dict] = []
    for event in dicts_at(transcript, "events"):
        metadata = event.get("metadata")
        if not isinstance(metadata, dict):
            continue
        id = _text(metadata.get("tool_use_id")) or ""
        if event.get("kind") == "tool_intent":
            call = {"tool_name": _text(event.get("text")), "tool_use_id": id, "stage_id": stage_id}
            call["arguments"] = metadata.get("arguments")
            begun[call["tool_name"], id].append(call)
            calls.append(call)
        elif event.get("kind") == "tool_execution":
            name = _text(metadata.get("tool_name"))
            waiting = begun[name, id]
            if not waiting:
                calls.append({"tool_name": name, "tool_use_id": id, "stage_id": stage_id})
            call = waiting.popleft() if waiting else calls[-1]
            call["result"] = event.get("text")
            call["is_rejected"] = bool(metadata.get("rejected"))
            if "arguments" in metadata:
                call.setdefault("arguments", metadata["arguments"])
    yield from calls


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _unrecorded(call: Dict) -> Dict:
    """A call as a recording would have it, as far as its transcript knows."""
    known = {key: call[key] for key in RECORDING.fields if call.get(key) is not None}
    if "arguments" in call:
        known["args_hash"] = digest(call["arguments"])[:16]
    recording = made(RECORDING, known)
    return {**call, **recording}
