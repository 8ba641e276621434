"""Artifacts: what stages make and work with. Spec: 08 §5.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.handoffs import handoff_context, name_of, normalise
from harnpy.faults import MisuseError
from harnpy.session.resize.summaries import byte_length
from harnpy.workflow.shapes import Field, Shape, all_of, read
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.artifacts.artifact_types import Artifact
    from harnpy.world import World


KIND, HANDOFF = "artifact", "handoff"
BYTES_PER_TOKEN = 4
_ALIASES = {
    "file": "workspace_file",
    "transcript": "transcript_summary",
    "verification": "verification_result",
    "test": "test_result",
}
_PRIORITY_GROUPS = {
    100: "verification_result test_result",
    95: "verification_bundle",
    92: "handoff",
    90: "diff git_diff patch patch_set patch_proposal diff_review review_decision apply_intent",
    80: "plan",
    70: "workspace_file workspace_snapshot editor_selection resource",
    60: "summary transcript_summary",
    50: "command_result",
}
_PRIORITIES = {kind: priority for priority, kinds in _PRIORITY_GROUPS.items() for kind in kinds.split()}
_PRIORITY = 40

#: Fields that `normalised` fills in have no default here.
ARTIFACT: Shape[Artifact] = Shape(
    {
        **all_of(Field("string"), "_type id kind title text"),
        "data": Field("any"),
        **all_of(Field("string"), "source created_at freshness"),
        "priority": Field("int"),
        "lineage": Field("list of strings", []),
        "relevance": Field("number"),
        "estimated_tokens": Field("int"),
        "stage": Field("string"),
        "metadata": Field("dict", {}),
    }
)


def normalised(given: Any, world: World, path: str = "", run_id: str | None = None) -> Artifact:
    """Return the artifact with every key. Raise `MisuseError`.

    ``path`` is its place, for messages; ``run_id`` is the run of a handoff that names none.
    """
    artifact: Any = read(ARTIFACT, given, path)
    artifact["kind"] = normal_kind(artifact["kind"])
    if artifact["kind"] == HANDOFF:
        artifact |= _handed_off(given, world, run_id)
    artifact["_type"] = artifact["_type"] or "artifact"
    artifact["id"] = artifact["id"] or f"artifact_{world.ids.new()}"
    artifact["created_at"] = artifact["created_at"] or rfc3339(world.clock.now())
    if artifact["estimated_tokens"] is None and artifact["text"] is not None:
        artifact["estimated_tokens"] = tokens_of(artifact["text"])
    if artifact["priority"] is None:
        artifact["priority"] = _PRIORITIES.get(artifact["kind"], _PRIORITY)
    complete: Artifact = artifact
    return complete


def tokens_of(text: str) -> int:
    """Estimate the tokens of a text."""
    return -(-byte_length(text) // BYTES_PER_TOKEN)


def normal_kind(kind: str | None) -> str:
    """Return the normal name of a kind of artifact; any name is a kind."""
    name = (kind or "").strip()
    return _ALIASES.get(name, name) or KIND


def _handed_off(given: Any, world: World, run_id: str | None) -> Dict:
    """Return the fields that a handoff sets in the artifact that holds it (08 §12)."""
    try:
        handoff = normalise(given, f"handoff_{world.ids.new()}", rfc3339(world.clock.now()), run_id)
    except MisuseError as error:
        raise MisuseError("artifact handoff data must contain a valid handoff payload") from error
    target = handoff["target_persona_or_human"]
    label, confidence = name_of(target), handoff["confidence"]
    return {
        "title": f"Handoff to {label}",
        "text": handoff_context(handoff),
        "data": handoff,
        "relevance": 1.0 if confidence is None else confidence,
        "metadata": {"handoff_id": handoff["id"], "target_kind": target["kind"], "target_label": label},
    }


def read_artifacts(given: Any, world: World) -> list[Artifact]:
    """Return a list of artifacts in normal form. Raise `MisuseError`."""
    if given is None:
        return []
    if not isinstance(given, list):
        raise MisuseError("expected artifact list or nil")
    return [normalised(item, world, f"[{index}]") for index, item in enumerate(given)]
