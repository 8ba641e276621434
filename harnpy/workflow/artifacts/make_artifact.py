"""Making artifacts of a certain kind: defaults, the caller's options, and the lineage. Spec: 08 §5.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.workflow.artifacts.artifact import KIND, normalised

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.artifacts.artifact_types import Artifact
    from harnpy.world import World


_OPTIONS = (
    "id", "title", "text", "source", "stage", "freshness", "priority", "relevance", "estimated_tokens",
    "lineage", "metadata", "data",
)  # fmt: skip


def made(kind: str, defaults: Dict, options: Any, world: World, target: Artifact | None = None) -> Artifact:
    """Return an artifact with ``defaults`` for what ``options`` don't set; dicts of both are merged.

    Its lineage goes back to ``target``, if given. Raise `MisuseError`.
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
    """Return a copy of an artifact with another kind, and with another text if one is given.

    Raise `MisuseError`.
    """
    parent, text = normalised(given, world), read_options(options).get("text")
    changed = {
        "id": f"{parent['id']}_derived",
        "kind": kind or KIND,
        "lineage": [*parent["lineage"], parent["id"]],
        "text": parent["text"] if text is None else text,
    }
    return normalised({**given, **changed}, world)


def read_options(options: Any) -> Dict:
    """Return options that may be nil. Raise `MisuseError`."""
    if options is None:
        return {}
    if not isinstance(options, dict):
        raise MisuseError("artifact helper options must be a dict or nil")
    return options


def name_of(artifact: Artifact) -> str:
    """Return the name of an artifact for the titles of others."""
    return str(artifact["title"] or artifact["id"])


def about(target: Artifact, **more: Any) -> Dict:
    """Return the data of an artifact about another one."""
    return {"target_artifact_id": target["id"], "target_kind": target["kind"], **more}
