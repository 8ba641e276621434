"""Artifacts: what stages make and work with, which of them a stage sees, and their text for models.

Spec: 08 §5.1–5.4.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from heapq import merge
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from harnpy.agent.handoffs import handoff_context, name_of, normalise
from harnpy.faults import MisuseError
from harnpy.formats.dicts import Dict, as_texts, errors_after
from harnpy.formats.shapes import made, only, read, read_strictly
from harnpy.formats.text_size import BYTES_PER_TOKEN, byte_length, text_tokens
from harnpy.session.strategies import microcompact
from harnpy.workflow.graph_shapes import ContextPolicy
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from harnpy.world import World


class Artifact(TypedDict):
    _type: str
    id: str
    kind: str
    title: str | None
    text: str | None
    data: Any
    source: str | None
    created_at: str
    freshness: str | None
    priority: Annotated[int, None]  # by its kind
    lineage: list[str]
    relevance: float | None
    estimated_tokens: int | None
    stage: str | None
    metadata: Dict


class Chunk(TypedDict):
    """A piece of an artifact's text."""

    id: str
    artifact_id: str
    artifact_kind: str
    title: str | None
    source: str | None
    text: str
    estimated_tokens: int
    chunk_index: int
    chunk_count: int
    score: float


class Dropped(TypedDict):
    """A chunk or an artifact that the context leaves out."""

    artifact_id: str
    chunk_id: str | None
    reason: str
    detail: str | None


class Included(TypedDict):
    """The part of an artifact that is in the context."""

    artifact_id: str
    artifact_kind: str
    chunks_included: int
    chunks_total: int
    tokens_included: int


class Reason(TypedDict):
    """The reason why a chunk is in the context, or isn't."""

    chunk_id: str
    artifact_id: str
    strategy: str
    score: float
    included: bool
    reason: str


class AssembledContext(TypedDict):
    chunks: list[Chunk]
    included: list[Included]
    dropped: list[Dropped]
    reasons: list[Reason]
    total_tokens: int
    budget_tokens: int
    strategy: str
    dedup: str


KIND, HANDOFF = "artifact", "handoff"
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


def normalised_artifact(given: Any, world: World, path: str = "", run_id: str | None = None) -> Artifact:
    """Return the artifact with every key. Raise `MisuseError`.

    ``path`` is its place, for messages; ``run_id`` is the run of a handoff that names none.
    """
    artifact: Any = read(Artifact, given, path)
    artifact["kind"] = normal_kind(artifact["kind"])
    if artifact["kind"] == HANDOFF:
        artifact |= _handed_off(given, world, run_id)
    return _completed(artifact, world)


def new_artifact(fields: Mapping[str, Any], world: World) -> Artifact:
    """Return an artifact with these fields, which are known to be of the right types. Raise `MisuseError`."""
    artifact: Any = made(Artifact, fields)
    artifact["kind"] = normal_kind(artifact["kind"])
    return normalised_artifact(fields, world) if artifact["kind"] == HANDOFF else _completed(artifact, world)


def _completed(artifact: Any, world: World) -> Artifact:
    artifact["_type"] = artifact["_type"] or "artifact"
    artifact["id"] = artifact["id"] or f"artifact_{world.ids.new()}"
    artifact["created_at"] = artifact["created_at"] or rfc3339(world.clock.now())
    if artifact["estimated_tokens"] is None and artifact["text"] is not None:
        artifact["estimated_tokens"] = text_tokens(artifact["text"])
    if artifact["priority"] is None:
        artifact["priority"] = _PRIORITIES.get(artifact["kind"], _PRIORITY)
    complete: Artifact = artifact
    return complete


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
    return [normalised_artifact(item, world, f"[{index}]") for index, item in enumerate(given)]


_OPTIONS = (
    "id", "title", "text", "source", "stage", "freshness", "priority", "relevance", "estimated_tokens",
    "lineage", "metadata", "data",
)  # fmt: skip


def made_artifact(
    kind: str, defaults: Dict, options: Any, world: World, target: Artifact | None = None
) -> Artifact:
    """Return an artifact with ``defaults`` for what ``options`` don't set; dicts of both are merged.

    Its lineage goes back to ``target``, if given. Raise `MisuseError`.
    """
    said = read_artifact_options(options)
    given = {key: said[key] for key in _OPTIONS if said.get(key) is not None}
    for key in ("data", "metadata"):
        if isinstance(given.get(key), dict):
            given[key] = {**defaults.get(key, {}), **given[key]}
    artifact = normalised_artifact({**defaults, **given, "kind": kind}, world)
    if target is not None:
        artifact["lineage"] = [*artifact["lineage"], *target["lineage"], target["id"]]
    return artifact


def derived_artifact(given: Any, kind: str | None, options: Any, world: World) -> Artifact:
    """Return a copy of an artifact with another kind, and with another text if one is given.

    Raise `MisuseError`.
    """
    parent, text = normalised_artifact(given, world), read_artifact_options(options).get("text")
    changed = {
        "id": f"{parent['id']}_derived",
        "kind": kind or KIND,
        "lineage": [*parent["lineage"], parent["id"]],
        "text": parent["text"] if text is None else text,
    }
    return normalised_artifact({**given, **changed}, world)


def read_artifact_options(options: Any) -> Dict:
    """Return options that may be nil. Raise `MisuseError`."""
    if options is None:
        return {}
    if not isinstance(options, dict):
        raise MisuseError("artifact helper options must be a dict or nil")
    return options


def artifact_name(artifact: Artifact) -> str:
    """Return the name of an artifact for the titles of others."""
    return str(artifact["title"] or artifact["id"])


def about_artifact(target: Artifact, **more: Any) -> Dict:
    """Return the data of an artifact about another one."""
    return {"target_artifact_id": target["id"], "target_kind": target["kind"], **more}


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def tagged(name: str, body: str) -> str:
    """Put ``body`` on lines of its own between two tags; it may contain tags itself."""
    return f"<{name}>\n{body}\n</{name}>"


def lines_of(fields: Mapping[str, Any]) -> list[str]:
    """Return a line for each field, its value escaped."""
    return [f"<{key}>{escaped(str(value))}</{key}>" for key, value in fields.items()]


def rendered_artifact(fields: Mapping[str, Any], body: str) -> str:
    """Render an artifact: its fields, then its body, which isn't escaped."""
    return tagged("artifact", "\n".join([*lines_of(fields), tagged("body", body)]))


_FRESHNESS = {"fresh": 3, "live": 3, "recent": 2, "stale": 0}
_FRESH = 2
_LEAST_SHARE = 500
_LEAST_TEXT = 200


def read_context_policy(given: Any) -> ContextPolicy:
    """Return the policy with every key. Raise `MisuseError`."""
    with errors_after("context policy parse error: "):
        return read_strictly(ContextPolicy, {} if given is None else given)


def select_artifacts(artifacts: Sequence[Artifact], policy: ContextPolicy) -> list[Artifact]:
    """Return the artifacts that a policy lets through, the most important first."""
    if isinstance(artifacts, ArtifactIndex):
        return artifacts.select(policy)
    return _taken(sorted(filter(_filter(policy), artifacts), key=_rank(policy)), policy)


def select_artifacts_adaptive(artifacts: Sequence[Artifact], policy: ContextPolicy) -> list[Artifact]:
    """Select without outdated and repeated artifacts, and with long ones shortened."""
    if isinstance(artifacts, ArtifactIndex):
        return artifacts.select_adaptive(policy)
    current = _without_repeats(_without_outdated(artifacts))
    return select_artifacts(_shortened(current, policy["max_tokens"]), policy)


def _taken(ordered: Iterable[Artifact], policy: ContextPolicy, least: int = 0) -> list[Artifact]:
    """Return what the policy has room for; no artifact has fewer than ``least`` tokens."""
    chosen: list[Artifact] = []
    most, budget, spent = policy["max_artifacts"], _budget(policy), 0
    for artifact in ordered:
        full = budget is not None and spent + least > budget
        if full or (most is not None and len(chosen) >= most):
            break
        tokens = artifact["estimated_tokens"] or 0
        if budget is None or spent + tokens <= budget:
            chosen.append(artifact)
            spent += tokens
    return chosen


def render_artifacts(artifacts: Sequence[Artifact], style: str | None, to_json: Callable[[Any], str]) -> str:
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
    return as_texts(artifact["metadata"].get(key))


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
    share = _share(len(artifacts), max_tokens)
    return [_cut(artifact, share) for artifact in artifacts]


def _share(count: int, max_tokens: int) -> int:
    return min(max(max_tokens // max(count, 1), _LEAST_SHARE), max_tokens)


def _cut(artifact: Artifact, share: int) -> Artifact:
    """Shorten an artifact to its share of tokens, if it has more than twice that."""
    text, limit = artifact["text"] or "", share * BYTES_PER_TOKEN
    too_long = (artifact["estimated_tokens"] or 0) > 2 * share and byte_length(text) > limit
    if not too_long or limit < _LEAST_TEXT:
        return artifact
    return {**artifact, "text": microcompact(text, limit), "estimated_tokens": share}


# Selecting among the artifacts of a long run.


class ArtifactIndex(Sequence[Artifact]):
    """The artifacts of a run, in the list that the run adds to; `select` and `select_adaptive` return what
    `select_artifacts` and `select_artifacts_adaptive` do, without looking at all of them.

    Artifacts that are there stay as they are, but for handoffs, which change with their run: with one of
    those, the list is looked through each time.
    """

    def __init__(self, artifacts: list[Artifact]) -> None:
        self._all = artifacts
        self._known = 0
        self._changes = False
        self._whole = _Ranked()
        #: Without outdated and repeated ones; None until it is made again.
        self._current: _Ranked | None = _Ranked()
        self._texts: set[str] = set()
        self._changed: set[str] = set()
        #: Paths that artifacts rest on which aren't outdated.
        self._evidence: set[str] = set()

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, place: Any) -> Any:
        return self._all[place]

    def __iter__(self) -> Iterator[Artifact]:
        return iter(self._all)

    def select(self, policy: ContextPolicy) -> list[Artifact]:
        if not self._is_known():
            return select_artifacts(self._all, policy)
        return _taken(self._whole.ordered(policy), policy, self._whole.least)

    def select_adaptive(self, policy: ContextPolicy) -> list[Artifact]:
        if not self._is_known():
            return select_artifacts_adaptive(self._all, policy)
        current = self._current
        if current is None:
            current = self._current = _Ranked()
            for artifact in _without_repeats(_without_outdated(self._all)):
                current.add(artifact)
            self._texts = {artifact["text"] or "" for artifact in current.artifacts}
        most = policy["max_tokens"]
        if most is not None and current.most > 2 * _share(len(current), most):
            return select_artifacts(_shortened(current.artifacts, most), policy)
        return _taken(current.ordered(policy), policy, current.least)

    def _is_known(self) -> bool:
        """Look at what has come. Return False if artifacts may have changed."""
        for place in range(self._known, len(self._all)):
            self._add(self._all[place])
        self._known = len(self._all)
        return not self._changes

    def _add(self, artifact: Artifact) -> None:
        self._changes = self._changes or artifact["kind"] == HANDOFF
        self._whole.add(artifact)
        if freshness(artifact) >= _FRESH:
            changed = _paths(artifact, "changed_paths")
            self._changed.update(changed)
            if not self._evidence.isdisjoint(changed):
                self._outdate()
        else:
            evidence = _paths(artifact, "evidence_paths")
            if not self._changed.isdisjoint(evidence):
                return
            self._evidence.update(evidence)
        text = artifact["text"]
        if text and text in self._texts:
            return
        self._texts.add(text or "")
        if self._current is not None:
            self._current.add(artifact)

    def _outdate(self) -> None:
        """Forget which artifacts are current: some have become outdated, and no longer stand for others."""
        self._current = None
        self._evidence -= self._changed


#: A place in an order, the last one first, and the artifact: what no two have in common comes before it.
_Placed = tuple[int, int, str, float, float, int, Artifact]


class _Ranked:
    """Artifacts in the orders that policies ask for. ``least`` and ``most`` are the tokens that one has."""

    def __init__(self) -> None:
        self.artifacts: list[Artifact] = []
        self.least = self.most = 0
        self._by_id: dict[str, list[int]] = {}
        self._orders: dict[tuple[bool, bool], _Order] = {}

    def __len__(self) -> int:
        return len(self.artifacts)

    def add(self, artifact: Artifact) -> None:
        tokens, place = artifact["estimated_tokens"] or 0, len(self.artifacts)
        self.least = min(self.least, tokens) if place else tokens
        self.most = max(self.most, tokens)
        self._by_id.setdefault(artifact["id"], []).append(place)
        self.artifacts.append(artifact)

    def ordered(self, policy: ContextPolicy) -> Iterator[Artifact]:
        """Yield what the policy lets through, the most important first."""
        by = bool(policy["prefer_fresh"]), bool(policy["prefer_recent"])
        order = self._orders.get(by)
        if order is None:
            order = self._orders[by] = _Order(*by)
        order.catch_up(self.artifacts)
        pinned = {place for id in policy["pinned_ids"] for place in self._by_id.get(id, ())}
        if pinned:
            first = [self.artifacts[place] for place in sorted(pinned)]
            yield from sorted(filter(_filter(policy), first), key=_rank(policy))
        preferred = policy["prioritize_kinds"]
        others = [kind for kind in order.by("kind") if kind not in preferred] if preferred else None
        for kinds in [preferred, others] if preferred else [None]:
            for placed in order.of(policy, kinds):
                if -placed[-2] not in pinned:
                    yield placed[-1]


class _Order:
    """Artifacts by importance, for policies that prefer fresh or recent ones, or don't."""

    def __init__(self, fresh: bool, recent: bool) -> None:
        self._fresh, self._recent = fresh, recent
        self._count = 0
        self._all: list[_Placed] = []
        #: The same by `kind` and by `stage`, for those who have asked.
        self._groups: dict[Literal["kind", "stage"], dict[str, list[_Placed]]] = {}

    def catch_up(self, artifacts: list[Artifact]) -> None:
        for place in range(self._count, len(artifacts)):
            artifact = artifacts[place]
            tokens, relevance = artifact["estimated_tokens"], artifact["relevance"]
            placed = (
                artifact["priority"],
                freshness(artifact) if self._fresh else 0,
                artifact["created_at"] if self._recent else "",
                -inf if relevance is None else relevance,
                -inf if tokens is None else -tokens,
                -place,
                artifact,
            )
            insort(self._all, placed)
            for key, groups in self._groups.items():
                insort(groups.setdefault(artifact[key] or "", []), placed)
        self._count = len(artifacts)

    def by(self, key: Literal["kind", "stage"]) -> dict[str, list[_Placed]]:
        """Return them by kind, or by stage; those of no stage are under an empty name."""
        groups = self._groups.get(key)
        if groups is None:
            groups = self._groups[key] = {}
            for placed in self._all:
                groups.setdefault(placed[-1][key] or "", []).append(placed)
        return groups

    def of(self, policy: ContextPolicy, kinds: list[str] | None) -> Iterator[_Placed]:
        """Yield what passes the policy's filter, of these kinds, the most important first."""
        stages, included, excluded = (
            policy["include_stages"],
            policy["include_kinds"],
            policy["exclude_kinds"],
        )
        if stages:
            lists = [self.by("stage").get(stage, []) for stage in dict.fromkeys(stages)]
        elif kinds is None and not included and not excluded:
            yield from reversed(self._all)
            return
        else:
            named = self.by("kind") if kinds is None else dict.fromkeys(kinds)
            wanted = [kind for kind in named if not included or kind in included]
            lists = [self.by("kind").get(kind, []) for kind in wanted]
        passes = _filter(policy)
        for placed in merge(*map(reversed, lists), reverse=True):
            artifact = placed[-1]
            if passes(artifact) and (kinds is None or artifact["kind"] in kinds):
                yield placed


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
