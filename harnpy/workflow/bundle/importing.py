"""Importing a bundle as a run record. Spec: 08 §17."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.reading.lenient import as_text, dicts_at
from harnpy.workflow.artifacts.artifact import HANDOFF, normal_kind, normalised
from harnpy.workflow.bundle.bundle_format import (
    ORIGIN,
    REPLAY_ONLY,
    SANITIZED,
    content_digest,
    has_integrity,
    is_supported,
    unsupported,
)
from harnpy.workflow.bundle.path_masking import paths_in
from harnpy.workflow.bundle.sections import outcomes_of, record_of
from harnpy.workflow.bundle.validation import validate_bundle
from harnpy.workflow.records.record_shapes import STAGE
from harnpy.workflow.shapes import made
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.reading.dicts import Dict
    from harnpy.workflow.artifacts.artifact_types import Artifact
    from harnpy.workflow.bundle.bundle_types import StageOutcome
    from harnpy.workflow.records.record_types import RunRecord, StageRecord


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
        STAGE,
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
    return normalised(given, World())
