"""Importing a bundle as a run record, after validating it. Spec: 08 §17, 09 §9.

Validation lists the problems in sentences and never raises, for any value.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.formats.dicts import as_text, dicts_at
from harnpy.formats.shapes import made
from harnpy.workflow.artifacts import HANDOFF, normal_kind, normalised_artifact
from harnpy.workflow.bundle.redactor import ACTIONS, REASONS, Manifest, Redactor, paths_in, points_into
from harnpy.workflow.bundle.replay_only import texts_left
from harnpy.workflow.bundle.sections import (
    BUNDLE_TYPE,
    IDENTITY,
    MODES,
    ORIGIN,
    REPLAY_ONLY,
    SANITIZED,
    content_digest,
    has_integrity,
    is_supported,
    outcomes_of,
    record_of,
    unsupported,
)
from harnpy.workflow.records.record_shapes import StageRecord
from harnpy.world import World
from harnpy.world.clock import is_rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harnpy.formats.dicts import Dict
    from harnpy.workflow.artifacts import Artifact
    from harnpy.workflow.bundle.sections import StageOutcome
    from harnpy.workflow.records.record_shapes import RunRecord

_LISTS = ("transcripts", "tool_calls", "permissions", "hitl", "trace_spans", "child_runs")
_CALL_KEYS = ("tool_name", "tool_use_id", "args_hash", "is_rejected", "stage_id")
_OUTCOME_KEYS = ("stage_id", "node_id", "status", "outcome", "branch", "artifact_kinds", "verification_ok")


def validate_bundle(bundle: Any) -> list[str]:
    """Return the problems of a bundle, none for a good one. Never raises, for any JSON value."""
    if not isinstance(bundle, dict):
        return ["not a session bundle: not an object"]
    if bundle.get("_type") != BUNDLE_TYPE:
        return [f"not a session bundle: `_type` is not {BUNDLE_TYPE!r}"]
    if not is_supported(bundle):
        return [unsupported(bundle)]
    problems = [*_envelope(bundle), *_sections(bundle)]
    problems = problems or [*_values(bundle)]
    if not problems:
        problems += [*_manifest(bundle), *_secrets(bundle)]
        problems += texts_left(bundle) if bundle["mode"] == REPLAY_ONLY else []
    return problems if has_integrity(bundle) else ["session bundle integrity check failed", *problems]


def _envelope(bundle: Dict) -> Iterator[str]:
    if bundle.get("mode") not in MODES:
        yield f"`mode` is none of {', '.join(MODES)}"
    id = bundle.get("bundle_id")
    if not isinstance(id, str) or not id.startswith("bundle_"):
        yield "`bundle_id` is not the id of a bundle"
    created = bundle.get("created_at")
    if not isinstance(created, str) or not is_rfc3339(created):
        yield "`created_at` is not an RFC 3339 time"
    producer = bundle.get("producer")
    if not isinstance(producer, dict) or not all(
        isinstance(producer.get(key), str) for key in ("name", "version")
    ):
        yield "`producer` has no name and version"


def _sections(bundle: Dict) -> Iterator[str]:
    run = bundle.get("run")
    yield from _lacking("run", run, IDENTITY)
    for name in _LISTS:
        items = bundle.get(name)
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            yield f"`{name}` is not a list of objects"
        elif name == "transcripts":
            yield from _each(items, name, ("section", "session_id", "transcript"))
            yield from _sources(items)
        elif name == "tool_calls":
            yield from _each(items, name, _CALL_KEYS)
    if "usage" not in bundle or not isinstance(bundle["usage"], (dict, type(None))):
        yield "`usage` is not an object"
    replay = bundle.get("replay")
    if not isinstance(replay, dict) or not isinstance(replay.get("stages"), list) or "fixture" not in replay:
        yield "`replay` has no fixture and stages"
    else:
        yield from _each(replay["stages"], "replay/stages", _OUTCOME_KEYS)
        if not isinstance(replay["fixture"], (dict, type(None))):
            yield "`replay/fixture` is not an object"
        tape = replay.get("tape", [])
        if not isinstance(tape, list) or not all(isinstance(line, str) for line in tape):
            yield "`replay/tape` is not a list of lines"
    if not isinstance(bundle.get("redactions"), list):
        yield "`redactions` is not a list"


def _each(items: Iterable[Any], name: str, keys: Iterable[str]) -> Iterator[str]:
    for at, item in enumerate(items):
        yield from _lacking(f"{name}/{at}", item, keys)


def _lacking(name: str, value: Any, keys: Iterable[str]) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"`{name}` is not an object"
        return
    lacking = [key for key in keys if key not in value]
    if lacking:
        yield f"`{name}` lacks {', '.join(lacking)}"


def _sources(transcripts: Iterable[Dict]) -> Iterator[str]:
    for at, section in enumerate(transcripts):
        name, transcript = section.get("section"), section.get("transcript")
        known = isinstance(name, str) and (name in ("run", "sidecar") or name.startswith("stage:"))
        part = "rows" if name == "sidecar" else "events"
        if not known:
            yield f"`transcripts/{at}/section` is none of run, stage:<id>, sidecar"
        elif not isinstance(transcript, dict) or not isinstance(transcript.get(part, []), list):
            yield f"`transcripts/{at}/transcript` has no list of {part}"
        elif part == "rows":
            yield from _each(transcript.get(part, []), f"transcripts/{at}/transcript/rows", ())


def _values(bundle: Dict) -> Iterator[str]:
    """Report values that a run record could not take over."""
    try:
        outcomes_of(bundle)
        record_of(bundle)
    except MisuseError as error:
        # By the value's place: the report must not repeat a secret.
        yield error.message.partition(" | payload=")[0]


def _manifest(bundle: Dict) -> Iterator[str]:
    paths = []
    for at, entry in enumerate(bundle["redactions"]):
        if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
            yield f"redaction {at} has no path"
            continue
        paths.append(entry["path"])
        if entry.get("reason") not in REASONS or entry.get("action") not in ACTIONS:
            yield f"redaction {at} has an unknown reason or action"
        if not points_into(bundle, entry["path"]):
            yield f"redaction {at} points to nothing: {entry['path']}"
    if paths != sorted(set(paths)):
        yield "redactions are not sorted by path, one to a value"


def _secrets(bundle: Dict) -> Iterator[str]:
    """Report places where another export would still mask something."""
    found = Manifest()
    Redactor(found).value(bundle, "")
    # By the value's place: the report must not repeat a secret.
    for pointer in found.pointers():
        yield f"a secret is left at {pointer}"


class BundleError(ValueError):
    """A document that can't be imported; ``str()`` is the reason."""


def import_bundle(bundle: Dict, *, needs_transcripts: bool = True) -> RunRecord:
    """Return the run record in a bundle, with every key of 08 §8.1.

    Artifacts come back as their kinds only, texts of stages as far as transcripts and the replay fixture
    contain them. ``needs_transcripts=False`` also accepts replay-only bundles.

    Raise `BundleError`: ``unsupported session bundle version: …``, ``session bundle integrity check failed``,
    ``session bundle has no transcript content (mode replay_only)``, or ``invalid session bundle: …`` with the
    problems of `validate_bundle`.
    """
    if not isinstance(bundle, dict) or not is_supported(bundle):
        raise BundleError(unsupported(bundle if isinstance(bundle, dict) else {}))
    if not has_integrity(bundle):
        raise BundleError("session bundle integrity check failed")
    if needs_transcripts and bundle.get("mode") == REPLAY_ONLY:
        raise BundleError("session bundle has no transcript content (mode replay_only)")
    problems = validate_bundle(bundle)
    if problems:
        raise BundleError(f"invalid session bundle: {'; '.join(problems)}")
    try:
        return _run(bundle)
    except MisuseError as error:
        raise BundleError(f"invalid session bundle: {error.message}") from error


def _run(bundle: Dict) -> RunRecord:
    transcripts = {section["section"]: section for section in bundle["transcripts"]}
    stages = [_stage(outcome, transcripts, bundle) for outcome in outcomes_of(bundle)]
    record = record_of(bundle)
    return {
        **record,
        "stages": stages,
        "completed_nodes": sorted({stage["node_id"] for stage in stages}),
        "transcript": _transcript(transcripts, "run"),
        "metadata": {**record["metadata"], ORIGIN: _origin(bundle, transcripts)},
    }


def _origin(bundle: Dict, transcripts: Dict) -> Dict:
    """Return what a later export of the run needs to know of its bundle."""
    sidecar = _transcript(transcripts, "sidecar") or {}
    return {
        **{key: bundle[key] for key in ("bundle_id", "mode", "created_at", "producer", "redactions")},
        "content_digest": content_digest(bundle),
        "sidecar": sidecar.get("rows", []),
        "workspaces": sorted(set(_kept_paths(bundle))) if bundle["mode"] == SANITIZED else [],
    }


def _kept_paths(value: Any) -> Iterator[str]:
    """Yield the paths that sanitizing has kept: all are in workspaces that only the exporter knows."""
    if isinstance(value, str):
        yield from paths_in(value)
    elif isinstance(value, (dict, list)):
        yield from chain.from_iterable(map(_kept_paths, value))
        yield from chain.from_iterable(map(_kept_paths, value.values() if isinstance(value, dict) else ()))


def _transcript(transcripts: Dict, section: str) -> Any:
    return transcripts.get(section, {}).get("transcript")


def _stage(outcome: StageOutcome, transcripts: Dict, bundle: Dict) -> StageRecord:
    id = outcome["stage_id"]
    transcript = _transcript(transcripts, f"stage:{id}")
    ok = outcome["verification_ok"]
    artifacts = [
        _artifact(kind, f"{id}:artifact:{at}", outcome, bundle)
        for at, kind in enumerate(outcome["artifact_kinds"], 1)
    ]
    return made(
        StageRecord,
        {
            "id": id,
            **{key: outcome[key] for key in ("node_id", "status", "outcome", "branch")},
            "visible_text": _visible_text(transcript, outcome["node_id"], bundle["replay"]["fixture"]),
            "transcript": transcript,
            "verification": None if ok is None else {"ok": ok},
            "artifacts": artifacts,
            "produced_artifact_ids": [artifact["id"] for artifact in artifacts],
        },
    )


def _visible_text(transcript: Any, node_id: str, fixture: Dict | None) -> str | None:
    """Return the last text of a stage, or the fixture's snippet of it if the transcript lacks it."""
    said = list(_said(transcript))
    assertions = (fixture or {}).get("stage_assertions") or []
    snippets = [item.get("visible_text_contains") for item in assertions if item.get("node_id") == node_id]
    snippet = snippets[-1] if snippets else None
    if said and (snippet or "") in said[-1]:
        return said[-1]
    return snippet


def _said(transcript: Any) -> Iterator[str]:
    """Yield the texts of the assistant's messages."""
    for event in dicts_at(transcript, "events"):
        text = as_text(event.get("text"))
        if text and (event.get("kind"), event.get("role")) == ("message", "assistant"):
            yield text


def _artifact(kind: str, id: str, outcome: StageOutcome, bundle: Dict) -> Artifact:
    """Return an artifact of which only the kind is known."""
    given = {"id": id, "kind": kind, "created_at": bundle["created_at"], "stage": outcome["node_id"]}
    if normal_kind(kind) == HANDOFF:  # a record accepts only complete handoffs
        unknown = "not part of the session bundle"
        target = {"label": unknown}
        said = {"source_persona": outcome["node_id"] or unknown, "task": unknown, "reason": unknown}
        given["data"] = {"_type": "handoff_artifact", "id": f"{id}:handoff", **said}
        given["data"] |= {"target_persona_or_human": target, "created_at": bundle["created_at"]}
    return normalised_artifact(given, World())
