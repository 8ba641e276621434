"""The sections of a bundle, taken from a run record, and the format that seals them. Pure. Spec: 08 §17.

Sections only read parts of the record that an import restores; so exporting an imported record gives the same
sections.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, Final, TypedDict

from harnpy.agent.people import APPROVAL, DUAL_CONTROL, QUESTION, requests_of
from harnpy.formats.dicts import as_dict, as_dicts, dicts_at
from harnpy.formats.json import compact_json
from harnpy.formats.shapes import fields_of, made, only, read
from harnpy.workflow.bundle.redactor import digest
from harnpy.workflow.records.observability import verdict_of
from harnpy.workflow.records.record_shapes import RunRecord, ToolRecording
from harnpy.world.clock import is_rfc3339, rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from harnpy.formats.dicts import Dict
    from harnpy.workflow.records.record_shapes import (
        ChildRun,
        ReplayFixture,
        StageRecord,
        TraceSpan,
        UsageRecord,
    )


class RunIdentity(TypedDict):
    """The run that a bundle is of."""

    id: str
    workflow_id: str
    workflow_name: str | None
    task: str
    status: str
    started_at: str
    finished_at: str | None
    parent_run_id: str | None
    root_run_id: str | None


class TranscriptSection(TypedDict):
    """A transcript and where it comes from: `run`, `stage:<id>` or `sidecar`."""

    section: str
    session_id: Any
    transcript: Any


class StageOutcome(TypedDict):
    """The end of a stage."""

    stage_id: str
    node_id: str
    status: str
    outcome: str
    branch: str | None
    artifact_kinds: list[str]
    verification_ok: bool | None


class Replay(TypedDict):
    fixture: ReplayFixture | None
    stages: list[StageOutcome]


class Sections(TypedDict):
    """The parts that a bundle takes from a run record."""

    run: RunIdentity
    transcripts: list[TranscriptSection]
    tool_calls: list[Dict]
    permissions: list[Dict]
    hitl: list[Dict]
    replay: Replay
    trace_spans: list[TraceSpan]
    usage: UsageRecord | None
    child_runs: list[ChildRun]


BUNDLE_TYPE = "harn_session_bundle"
BUNDLE_VERSION = 1
SANITIZED, LOCAL, REPLAY_ONLY = MODES = ("sanitized", "local", "replay_only")
#: Where an imported run remembers the bundle it came from, in its metadata.
ORIGIN = "session_bundle"

#: Keys about who made a document and when, not about the run.
_IDENTITY = ("bundle_id", "created_at", "producer")


def is_supported(document: Dict) -> bool:
    version = document.get("schema_version")
    return document.get("_type") == BUNDLE_TYPE and type(version) is int and version == BUNDLE_VERSION


def unsupported(document: Dict) -> str:
    """Return why a document is not a bundle that this version reads."""
    key = "schema_version" if document.get("_type") == BUNDLE_TYPE else "_type"
    value = document.get(key)
    return f"unsupported session bundle version: {'nil' if value is None else value}"


def sealed(document: Dict) -> Dict:
    """Return the document with its integrity digest, keys sorted."""
    ordered: Dict = json.loads(compact_json({**document, "integrity": _integrity(document)}))
    return ordered


def has_integrity(document: Dict) -> bool:
    """Return whether a document is unchanged since it was sealed."""
    return bool(document.get("integrity") == _integrity(document))


def content_digest(document: Dict) -> str:
    """Return the SHA-256 of a bundle's content about its run: equal content, equal digest."""
    return _digest_without(document, (*_IDENTITY, "integrity"))


def _integrity(document: Dict) -> Dict:
    return {"algorithm": "sha256", "digest": _digest_without(document, ("integrity",))}


def _digest_without(document: Dict, keys: tuple[str, ...]) -> str:
    return digest({key: value for key, value in document.items() if key not in keys})


# Who permitted or refused what: evidence of every decision in a run. Pure. Spec: 08 §17, `permissions`.
#
# The decisions of rules and attached clients are events of transcripts, those of people are in the record.


GRANTED, DENIED, ROUTED = "granted", "denied", "routed"

_BY_RULES = {"PermissionGrant": GRANTED, "PermissionDeny": DENIED, "PermissionEscalation": ROUTED}
_BY_CLIENT = "live_session_permission_route"
_BY_COMMAND_POLICY = "command_policy"
#: The statuses of commands that weren't run.
_NOT_RUN = ("blocked", "dry_run", "explain_only")
#: By the ``approval`` of a call's end: what was decided, and by whom.
_APPROVALS = {
    "auto_denied": (DENIED, "policy"),
    "host_denied": (DENIED, "host"),
    "host_granted": (GRANTED, "host"),
}
_BY_PEOPLE = {"approved": GRANTED, "denied": DENIED}


def decisions(events: Iterable[Dict], requests: Iterable[Dict]) -> list[Dict]:
    """Return the decisions in order: ``{kind, at, stage_id, tool_name, arguments?, decision, reason, by}``.

    ``events`` are those of transcripts, with their ``stage_id``; ``requests`` those of `metadata.hitl`. A
    person's decision also has ``request_id`` and ``signatures``.
    """
    found = [*map(_of_event, events), *map(_of_request, requests)]
    return sorted(filter(None, found), key=lambda decision: decision["at"] or "")


def _of_event(event: Dict) -> Dict | None:
    kind, metadata = event["kind"], as_dict(event.get("metadata"))
    made = {"kind": kind, "at": _time_of(event.get("id")), "stage_id": event["stage_id"]}
    if kind in _BY_RULES:
        known = {"decision": _BY_RULES[kind], "reason": metadata.get("reason", event.get("text")), "by": None}
        return made | _call(metadata.get("tool_name"), metadata.get("arguments")) | known
    if kind == _BY_CLIENT:
        request, at = as_dict(metadata.get("request")), metadata.get("routed_at")
        made["at"] = _time(at) or made["at"]
        known = {"decision": ROUTED, "reason": request.get("reason"), "by": metadata.get("client_id")}
        return made | _call(request.get("tool"), request.get("args")) | known
    if kind == _BY_COMMAND_POLICY:
        last = (as_dicts(metadata.get("decisions")) or [{}])[-1]
        decision = DENIED if metadata.get("status") in _NOT_RUN else GRANTED
        known = {"decision": decision, "reason": last.get("reason"), "by": last.get("source")}
        return made | _call(None, {"command": metadata.get("command")}) | known
    if kind == "tool_execution" and metadata.get("approval") in _APPROVALS:
        decision, by = _APPROVALS[metadata["approval"]]
        known = {"decision": decision, "reason": event.get("text"), "by": by}
        return made | _call(metadata.get("tool_name"), metadata.get("arguments")) | known
    return None


def _of_request(request: Dict) -> Dict | None:
    decision = _BY_PEOPLE.get(str(request.get("status")))
    if request.get("kind") not in (APPROVAL, DUAL_CONTROL) or decision is None:
        return None
    responses = as_dicts(request.get("responses"))
    last = responses[-1] if responses else {}
    made = {"kind": request["kind"], "at": _time(last.get("responded_at")), "stage_id": None}
    made |= _call(None, as_dict(request.get("payload")).get("args"))
    made |= {"decision": decision, "reason": last.get("reason")}
    made["by"] = [response.get("reviewer") for response in responses]
    made["request_id"] = request.get("request_id")
    signatures = [response["signature"] for response in responses if response.get("signature")]
    return {**made, "signatures": signatures} if signatures else made


def _call(tool: Any, arguments: Any) -> Dict:
    return {"tool_name": tool} if arguments is None else {"tool_name": tool, "arguments": arguments}


def _time(value: Any) -> str | None:
    return value if isinstance(value, str) and is_rfc3339(value) else None


def _time_of(id: Any) -> str | None:
    """Return the time in an event's id, a UUIDv7."""
    if not isinstance(id, str) or len(id) != 36 or id[14] != "7":
        return None
    try:
        return rfc3339(int(id[:8] + id[9:13], 16) / 1000)
    except ValueError:
        return None


# The tool calls of a run: its recordings, combined with the transcripts of its stages. Pure.
#
# A recording has the result, a transcript the arguments and the stage. Both have the tool's name and the
# call's id; calls that share even those are matched in order. Spec: 08 §8.1, §17.


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
    known = {key: call[key] for key in fields_of(ToolRecording).always if call.get(key) is not None}
    if "arguments" in call:
        known["args_hash"] = digest(call["arguments"])[:16]
    recording = made(ToolRecording, known)
    return {**call, **recording}


IDENTITY = (
    "id", "workflow_id", "workflow_name", "task", "status", "started_at", "finished_at", "parent_run_id",
    "root_run_id",
)  # fmt: skip
_QUESTION = ("request_id", "prompt", "agent", "trace_id", "asked_at")
SECTIONS: Final = (
    "run", "transcripts", "tool_calls", "permissions", "hitl", "replay", "trace_spans", "usage", "child_runs"
)  # fmt: skip


def sections(run: RunRecord, fixture: ReplayFixture | None, sidecar: Sequence[Dict]) -> Sections:
    """Return the sections of a record that has all its keys.

    ``sidecar`` are the rows of the run's `llm_transcript.jsonl`.
    """
    requests = requests_of(run["metadata"].get("hitl"), run["hitl_questions"])
    identity: Any = only(run, IDENTITY)
    return {
        "run": identity,
        "transcripts": list(_transcripts(run, sidecar)),
        "tool_calls": tool_calls(run),
        "permissions": decisions(_events(run), requests),
        "hitl": requests,
        "replay": {"fixture": fixture, "stages": [_outcome(stage) for stage in run["stages"]]},
        "trace_spans": run["trace_spans"],
        "usage": run["usage"],
        "child_runs": run["child_runs"],
    }


def record_of(bundle: Dict) -> RunRecord:
    """Return the record in a bundle's sections, without its stages and transcripts. Raise `MisuseError`."""
    return read(
        RunRecord,
        {
            **{key: bundle["run"][key] for key in IDENTITY},
            "tool_recordings": bundle["tool_calls"],
            "hitl_questions": [_question(each) for each in bundle["hitl"] if each.get("kind") == QUESTION],
            "metadata": {"hitl": bundle["hitl"]} if bundle["hitl"] else {},
            "replay_fixture": bundle["replay"]["fixture"],
            **{key: bundle[key] for key in ("trace_spans", "usage", "child_runs")},
        },
    )


def outcomes_of(bundle: Dict) -> list[StageOutcome]:
    """Return how the stages ended. Raise `MisuseError`."""
    stages = enumerate(bundle["replay"]["stages"])
    return [read(StageOutcome, stage, f"replay.stages[{at}]") for at, stage in stages]


def _transcripts(run: RunRecord, sidecar: Sequence[Dict]) -> Iterator[TranscriptSection]:
    if run["transcript"] is not None:
        yield _section("run", run["transcript"])
    for stage in run["stages"]:
        if stage["transcript"] is not None:
            yield _section(f"stage:{stage['id']}", stage["transcript"])
    if sidecar:
        session = next((row["session_id"] for row in sidecar if row.get("session_id")), None)
        yield {"section": "sidecar", "session_id": session, "transcript": {"rows": list(sidecar)}}


def _section(name: str, transcript: Any) -> TranscriptSection:
    return {"section": name, "session_id": as_dict(transcript).get("id"), "transcript": transcript}


def _events(run: RunRecord) -> Iterator[Dict]:
    """Yield the events of all transcripts, with the id of the stage; a shared event once."""
    seen: set[str] = set()
    sources = [(stage["id"], stage["transcript"]) for stage in run["stages"]]
    for stage_id, transcript in [*sources, (None, run["transcript"])]:
        for event in dicts_at(transcript, "events"):
            if not isinstance(event.get("kind"), str):
                continue
            id = event.get("id")
            if not isinstance(id, str) or id not in seen:
                yield {"stage_id": stage_id, **event}
            if isinstance(id, str):
                seen.add(id)


def _question(request: Dict) -> Dict:
    """Return the question of a request as `hitl_questions` has it; its prompt may have been removed."""
    known = {**request, "asked_at": request.get("requested_at")}
    if not isinstance(known.get("prompt"), str):
        known["prompt"] = ""
    return {key: known[key] for key in _QUESTION if known.get(key) is not None}


def _outcome(stage: StageRecord) -> StageOutcome:
    return {
        "stage_id": stage["id"],
        "node_id": stage["node_id"],
        "status": stage["status"],
        "outcome": stage["outcome"],
        "branch": stage["branch"],
        "artifact_kinds": [artifact["kind"] for artifact in stage["artifacts"]],
        "verification_ok": verdict_of(stage["verification"]),
    }
