"""Exporting a run record as a bundle. Spec: 08 §17."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.formats.shapes import read
from harnpy.version import __version__
from harnpy.workflow.artifacts import normal_kind
from harnpy.workflow.bundle import redactor
from harnpy.workflow.bundle.redactor import (
    SECRETS,
    Environment,
    Manifest,
    Places,
    Redactor,
    pointer_step,
    secret_variables,
)
from harnpy.workflow.bundle.replay_only import reduced
from harnpy.workflow.bundle.sections import (
    BUNDLE_TYPE,
    BUNDLE_VERSION,
    LOCAL,
    MODES,
    ORIGIN,
    REPLAY_ONLY,
    SANITIZED,
    SECTIONS,
    content_digest,
    sealed,
    sections,
)
from harnpy.workflow.records.record_shapes import RunRecord, plain_json
from harnpy.workflow.records.replay_fixture import fixture_of
from harnpy.world import World
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harnpy.formats.dicts import Dict
    from harnpy.workflow.bundle.sections import Replay
    from harnpy.workflow.records.record_shapes import StageRecord


_PLACES = ("cwd", "source_dir", "repo_path", "worktree_path")


def export_run(
    run: Mapping[str, Any],
    mode: str = SANITIZED,
    *,
    sidecar: Sequence[Dict] = (),
    workspaces: Sequence[str] = (),
    home: str | None = None,
    env: Mapping[str, str] | None = None,
    world: World | None = None,
    tape: Sequence[str] | None = None,
    masked: Mapping[int, tuple[str, str]] | None = None,
) -> Dict:
    """Return the bundle of a run record, ready for JSON, with sorted keys.

    ``mode`` is ``"sanitized"`` (for support and sharing), ``"local"`` (verbatim except for secrets) or
    ``"replay_only"`` (hashes and lengths). ``sidecar`` are the rows of the run's `llm_transcript.jsonl`.

    Values of secret variables of ``env`` and ``run.execution.env`` are secrets, in any encoding.
    `sanitized` keeps absolute paths inside ``workspaces`` and the directories of ``run.execution``. It
    removes values of ``run.execution.env``, of its child runs' and of ``env`` from all texts. Home
    directories are recognised; ``home`` is for one that doesn't look like one.

    ``tape`` are the lines of the run's tape, masked as the mode wants (`harnpy.tape.bundles`); ``masked`` has
    the reason and the action for those lines, by index, in which something was.

    Raise ValueError for an unknown mode, `MisuseError` for a field of the record that has a wrong type.
    """
    mode = mode.replace("-", "_")
    if mode not in MODES:
        raise ValueError(f"unknown session bundle mode: {mode} (expected one of: {', '.join(MODES)})")
    world = World() if world is None else world
    record = _known(run)
    origin = _origin(record)
    manifest = Manifest(origin.get("redactions") or ())
    fixture = record["replay_fixture"] or fixture_of(record, world)
    taken = sections(record, fixture, [*sidecar] or origin.get("sidecar") or [])
    redactor = _redactor(mode, manifest, record, [*workspaces, *(origin.get("workspaces") or ())], home, env)
    if mode == REPLAY_ONLY:
        taken = reduced(taken, manifest)
    elif taken["replay"]["fixture"]:
        taken["replay"] = _with_whole_snippets(taken["replay"], record["stages"], redactor, manifest)
    content = {name: redactor.value(taken[name], pointer_step("", name)) for name in SECTIONS}
    if tape is not None:
        content["replay"]["tape"] = list(tape)
        for line, why in (masked or {}).items():
            manifest.add(f"/replay/tape/{line}", *why)
    content["redactions"] = manifest.entries(content)
    document = {"_type": BUNDLE_TYPE, "schema_version": BUNDLE_VERSION, "mode": mode, **content}
    document |= _identity(content_digest(document), origin, world)
    return sealed(document)


def _origin(run: RunRecord) -> Dict:
    """Return what the record remembers of its bundle; anything else under that key is ignored."""
    origin = run["metadata"].get(ORIGIN)
    parts = ("redactions", "sidecar", "workspaces")
    if not isinstance(origin, dict) or not all(isinstance(origin.get(part), list) for part in parts):
        return {}
    entries = [*origin["redactions"], *origin["sidecar"]]
    if not all(isinstance(entry, dict) for entry in entries):
        return {}
    return origin if all(isinstance(entry.get("path"), str) for entry in origin["redactions"]) else {}


def _known(run: Mapping[str, Any]) -> RunRecord:
    """Return the record with every key; of the stages' artifacts only the kinds."""
    record = read(RunRecord, plain_json(run))
    for stage in record["stages"]:
        stage["artifacts"] = list(_kinds(stage["artifacts"]))
    return record


def _kinds(artifacts: Sequence[Any]) -> Iterator[Any]:
    for artifact in artifacts:
        if isinstance(artifact, dict):
            kind = artifact.get("kind")
            yield {"kind": normal_kind(kind if isinstance(kind, str) else None)}


def _identity(content: str, origin: Dict, world: World) -> Dict:
    """Return who made the bundle and when: an imported run that is unchanged is still the same bundle."""
    if origin.get("content_digest") == content:
        return {key: origin[key] for key in ("bundle_id", "created_at", "producer")}
    return {
        "bundle_id": f"bundle_{world.ids.new()}",
        "created_at": rfc3339(world.clock.now()),
        "producer": {"name": "harnpy", "version": __version__},
    }


def _redactor(
    mode: str,
    manifest: Manifest,
    run: RunRecord,
    workspaces: Sequence[str],
    home: str | None,
    env: Mapping[str, str] | None,
) -> Redactor:
    executions = list(_executions(run))
    environments = [env or {}, *(given for given in (each.get("env") for each in executions) if given)]
    if mode == LOCAL:
        return Redactor(manifest, (SECRETS, secret_variables(environments)))
    directories = [execution.get(key) for execution in executions for key in _PLACES]
    known = [directory for directory in [*workspaces, *directories] if isinstance(directory, str)]
    places = Places(known, home or (env or {}).get("HOME"))
    rules = redactor.text_rules(places, Environment(environments))
    return Redactor(manifest, rules, redactor.shape_rules)


def _with_whole_snippets(
    replay: Replay, stages: Sequence[StageRecord], redactor: Redactor, manifest: Manifest
) -> Replay:
    """Mask the beginnings of texts that the fixture expects, where one ends within a secret.

    No rule would recognise half a secret.
    """
    fixture = replay["fixture"]
    assert fixture is not None
    texts = {stage["node_id"]: stage["visible_text"] or "" for stage in stages}
    assertions = []
    for at, assertion in enumerate(fixture["stage_assertions"]):
        snippet = assertion["visible_text_contains"] or ""
        text = texts.get(assertion["node_id"], "")
        shown, rule = redactor.altered(text) if text.startswith(snippet) else (text, None)
        if rule is not None and not shown.startswith(redactor.altered(snippet)[0]):
            place = f"/replay/fixture/stage_assertions/{at}/visible_text_contains"
            manifest.add(place, rule.reason, rule.action)
            assertion = {**assertion, "visible_text_contains": shown[: len(snippet)]}
        assertions.append(assertion)
    return {**replay, "fixture": {**fixture, "stage_assertions": assertions}}


def _executions(run: RunRecord) -> Iterator[Dict]:
    """Yield where the run and its children worked, and with which environment."""
    holders = [run, run.get("metadata"), *(run.get("child_runs") or [])]
    for holder in holders:
        execution = holder.get("execution") if isinstance(holder, dict) else None
        if isinstance(execution, dict):
            yield execution
