"""Artifacts made of a part of the work: defaults for a kind, what the caller says instead, and where it
comes from. Spec: 08 §5.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.workflow.artifacts.artifact import KIND, normalised

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.artifacts.artifact_types import Artifact
    from harnpy.world.world import World


_OPTIONS = (
    "id", "title", "text", "source", "stage", "freshness", "priority", "relevance", "estimated_tokens",
    "lineage", "metadata", "data",
)  # fmt: skip


def made(kind: str, defaults: Dict, options: Any, world: World, target: Artifact | None = None) -> Artifact:
    """An artifact with ``defaults`` for what ``options`` don't say; dicts of both are merged.

    It descends from the artifact ``target``, if there is one. Raises `MisuseError`.
    """
    said = read_options(options)
    given = {key: said[key] for key in _OPTIONS if said.get(key) is not None}
    for key in ("data", "metadata"):
        if isinstance(given.get(key), dict):
            given[key] = {**defaults.get(key, {}), **given[key]}
    artifact = normalised({**defaults, **given, "kind": kind}, world)
    if target is not None:
        artifact["lineage"] = [*artifact["lineage"], *target["lineage"], target["id"]]
    return artifact


def derived(given: Any, kind: str | None, options: Any, world: World) -> Artifact:
    """A copy of an artifact, of another kind and maybe with another text. Raises `MisuseError`."""
    parent, text = normalised(given, world), read_options(options).get("text")
    changed = {
        "id": f"{parent['id']}_derived",
        "kind": kind or KIND,
        "lineage": [*parent["lineage"], parent["id"]],
        "text": parent["text"] if text is None else text,
    }
    return normalised({**given, **changed}, world)


def read_options(options: Any) -> Dict:
    """Options that may be nil. Raises `MisuseError`."""
    if options is None:
        return {}
    if not isinstance(options, dict):
        raise MisuseError("artifact helper options must be a dict or nil")
    return options


def name_of(artifact: Artifact) -> str:
    """What an artifact is called in the titles of others."""
    return str(artifact["title"] or artifact["id"])


def about(target: Artifact, **more: Any) -> Dict:
    """What an artifact says of the one that it is about."""
    return {"target_artifact_id": target["id"], "target_kind": target["kind"], **more}
