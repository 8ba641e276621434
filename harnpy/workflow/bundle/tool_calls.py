"""The tool calls of a run: its recordings, combined with the transcripts of its stages. Pure.

A recording has the result, a transcript the arguments and the stage. Both have the tool's name and the call's
id; calls that share even those are matched in order. Spec: 08 §8.1, §17.
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
    """Return recorded calls in order, then those that only a transcript contains."""
    in_transcripts: dict[tuple[Any, Any], deque[Dict]] = defaultdict(deque)
    for call in _transcript_calls(run):
        in_transcripts[call["tool_name"], call["tool_use_id"]].append(call)
    calls = []
    for recording in run["tool_recordings"]:
        known = in_transcripts[recording["tool_name"], recording["tool_use_id"]]
        more = known.popleft() if known else {"stage_id": None}
        calls.append({**recording, **{key: more[key] for key in ("arguments", "stage_id") if key in more}})
    return calls + [_unrecorded(call) for left in in_transcripts.values() for call in left]


def _transcript_calls(run: RunRecord) -> Iterator[Dict]:
    """Yield the calls in transcripts; a call in several stages' transcripts belongs to the first."""
    sources = [(stage["id"], stage["transcript"]) for stage in run["stages"]]
    seen: set[str] = set()
    for stage_id, transcript in [*sources, (None, run["transcript"])]:
        found = list(_calls_in(transcript, stage_id))
        yield from (call for call in found if call["tool_use_id"] not in seen)
        seen |= {call["tool_use_id"] for call in found if call["tool_use_id"]}


def _calls_in(transcript: Any, stage_id: Any) -> Iterator[Dict]:
    """Yield the calls of a transcript. A call has an intent first; a rejected one only an execution."""
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
    """Return a call in the form of a recording, as far as its transcript goes."""
    known = {key: call[key] for key in RECORDING.fields if call.get(key) is not None}
    if "arguments" in call:
        known["args_hash"] = digest(call["arguments"])[:16]
    recording = made(RECORDING, known)
    return {**call, **recording}
