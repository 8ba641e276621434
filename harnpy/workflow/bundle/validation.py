"""Validating a bundle: its problems, in sentences. Never raises, for any value. Spec: 08 §17, 09 §9."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.workflow.bundle.bundle_format import (
    MODES,
    REPLAY_ONLY,
    TYPE,
    has_integrity,
    is_supported,
    unsupported,
)
from harnpy.workflow.bundle.left_texts import texts_left
from harnpy.workflow.bundle.redaction_manifest import ACTIONS, REASONS, Manifest, points_into
from harnpy.workflow.bundle.redactor import Redactor
from harnpy.workflow.bundle.sections import IDENTITY, outcomes_of, record_of
from harnpy.world.clock import is_rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harnpy.reading.dicts import Dict


_LISTS = ("transcripts", "tool_calls", "permissions", "hitl", "trace_spans", "child_runs")
_CALL_KEYS = ("tool_name", "tool_use_id", "args_hash", "is_rejected", "stage_id")
_OUTCOME_KEYS = ("stage_id", "node_id", "status", "outcome", "branch", "artifact_kinds", "verification_ok")


def validate_bundle(bundle: Any) -> list[str]:
    """Return the problems of a bundle, none for a good one. Never raises, for any JSON value."""
    if not isinstance(bundle, dict):
        return ["not a session bundle: not an object"]
    if bundle.get("_type") != TYPE:
        return [f"not a session bundle: `_type` is not {TYPE!r}"]
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
