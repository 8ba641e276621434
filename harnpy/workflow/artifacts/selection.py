"""Selecting the artifacts that a stage sees, and rendering them. Spec: 08 §5.3, §5.4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.reading.strict import errors_after
from harnpy.session.resize.microcompact import microcompact
from harnpy.session.resize.summaries import byte_length
from harnpy.workflow.artifacts.artifact import BYTES_PER_TOKEN
from harnpy.workflow.artifacts.tags import rendered_artifact
from harnpy.workflow.graph.graph_shapes import CONTEXT_POLICY
from harnpy.workflow.shapes import only, read

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.workflow.artifacts.artifact_types import Artifact
    from harnpy.workflow.graph.graph_types import ContextPolicy


_FRESHNESS = {"fresh": 3, "live": 3, "recent": 2, "stale": 0}
_FRESH = 2
_LEAST_SHARE = 500
_LEAST_TEXT = 200


def read_context_policy(given: Any) -> ContextPolicy:
    """Return the policy with every key. Raise `MisuseError`."""
    with errors_after("context policy parse error: "):
        return read(CONTEXT_POLICY, {} if given is None else given)


def select(artifacts: Sequence[Artifact], policy: ContextPolicy) -> list[Artifact]:
    """Return the artifacts that a policy lets through, the most important first."""
    chosen: list[Artifact] = []
    budget, spent = _budget(policy), 0
    for artifact in sorted(filter(_filter(policy), artifacts), key=_rank(policy)):
        if policy["max_artifacts"] is not None and len(chosen) >= policy["max_artifacts"]:
            break
        tokens = artifact["estimated_tokens"] or 0
        if budget is None or spent + tokens <= budget:
            chosen.append(artifact)
            spent += tokens
    return chosen


def select_adaptive(artifacts: Sequence[Artifact], policy: ContextPolicy) -> list[Artifact]:
    """Select without outdated and repeated artifacts, and with long ones shortened."""
    current = _without_repeats(_without_outdated(artifacts))
    return select(_shortened(current, policy["max_tokens"]), policy)


def render(artifacts: Sequence[Artifact], style: str | None, to_json: Callable[[Any], str]) -> str:
    """Render the artifacts for a model; the style ``json`` is one JSON object each."""
    show = _json if style == "json" else _xml
    return "\n\n".join(show(artifact, to_json) for artifact in artifacts)


# Selecting.


def _filter(policy: ContextPolicy) -> Callable[[Artifact], bool]:
    included, stages = policy["include_kinds"], policy["include_stages"]
    excluded = policy["exclude_kinds"]

    def passes(artifact: Artifact) -> bool:
        kind = artifact["kind"]
        wanted = (not included or kind in included) and kind not in excluded
        return wanted and (not stages or artifact["stage"] in stages)

    return passes


def _rank(policy: ContextPolicy) -> Callable[[Artifact], Any]:
    """Return the sort key: the most important criterion first."""
    pinned, kinds = policy["pinned_ids"], policy["prioritize_kinds"]

    def key(artifact: Artifact) -> tuple[Any, ...]:
        tokens, relevance = artifact["estimated_tokens"], artifact["relevance"]
        return (
            artifact["id"] not in pinned,
            artifact["kind"] not in kinds,
            -artifact["priority"],
            -freshness(artifact) if policy["prefer_fresh"] else 0,
            _Descending(artifact["created_at"]) if policy["prefer_recent"] else _Descending(""),
            float("inf") if relevance is None else -relevance,
            float("inf") if tokens is None else tokens,
        )

    return key


class _Descending:
    """A text that sorts in descending order."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and self.text == other.text

    def __lt__(self, other: _Descending) -> bool:
        return other.text < self.text


def freshness(artifact: Artifact) -> int:
    return _FRESHNESS.get(artifact["freshness"] or "", 1)


def _budget(policy: ContextPolicy) -> int | None:
    limit = policy["max_tokens"]
    return None if limit is None else max(0, limit - (policy["reserve_tokens"] or 0))


# The first steps of `select_adaptive`.


def _without_outdated(artifacts: Sequence[Artifact]) -> list[Artifact]:
    """Leave out artifacts that rest on paths which a fresh artifact has changed."""
    fresh = (artifact for artifact in artifacts if freshness(artifact) >= _FRESH)
    changed = {path for artifact in fresh for path in _paths(artifact, "changed_paths")}
    return [
        artifact
        for artifact in artifacts
        if freshness(artifact) >= _FRESH or changed.isdisjoint(_paths(artifact, "evidence_paths"))
    ]


def _paths(artifact: Artifact, key: str) -> list[str]:
    paths = artifact["metadata"].get(key)
    return [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []


def _without_repeats(artifacts: Sequence[Artifact]) -> list[Artifact]:
    seen: set[str] = set()
    kept = []
    for artifact in artifacts:
        text = artifact["text"]
        if text and text in seen:
            continue
        seen.add(text or "")
        kept.append(artifact)
    return kept


def _shortened(artifacts: list[Artifact], max_tokens: int | None) -> list[Artifact]:
    if max_tokens is None or not artifacts:
        return artifacts
    share = min(max(max_tokens // len(artifacts), _LEAST_SHARE), max_tokens)
    return [_cut(artifact, share) for artifact in artifacts]


def _cut(artifact: Artifact, share: int) -> Artifact:
    """Shorten an artifact to its share of tokens, if it has more than twice that."""
    text, limit = artifact["text"] or "", share * BYTES_PER_TOKEN
    too_long = (artifact["estimated_tokens"] or 0) > 2 * share and byte_length(text) > limit
    if not too_long or limit < _LEAST_TEXT:
        return artifact
    return {**artifact, "text": microcompact(text, limit), "estimated_tokens": share}


# Rendering.


def _xml(artifact: Artifact, to_json: Callable[[Any], str]) -> str:
    fields = {
        "title": artifact["title"] or f"{artifact['kind']} {artifact['id']}",
        "kind": artifact["kind"],
        "source": artifact["source"] or "unknown",
        "freshness": artifact["freshness"] or "normal",
        "priority": artifact["priority"],
    }
    body = artifact["text"]
    if body is None:
        body = "" if artifact["data"] is None else to_json(artifact["data"])
    return rendered_artifact(fields, body)


def _json(artifact: Artifact, to_json: Callable[[Any], str]) -> str:
    return to_json(only(artifact, ("id", "kind", "title", "source", "freshness", "priority", "text")))
