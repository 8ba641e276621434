"""Assembling a context from artifacts: the best chunks that a budget has room for. Spec: 08 §5.5.

Nothing disappears: `dropped` lists what is left out with a reason, `reasons` every chunk with its score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import MisuseError
from harnpy.reading.lenient import Options
from harnpy.text.display import type_name
from harnpy.workflow.artifacts.artifact import read_artifacts
from harnpy.workflow.artifacts.chunks import CHUNKED, SEMANTIC, chunks_of, dropped, without_repeats
from harnpy.workflow.artifacts.ranking import CALLER, RELEVANCE, STRATEGIES, in_order, ranked
from harnpy.workflow.artifacts.tags import lines_of, rendered_artifact, tagged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.workflow.artifacts.artifact_types import (
        Artifact,
        AssembledContext,
        Chunk,
        Dropped,
        Included,
        Reason,
    )
    from harnpy.workflow.artifacts.ranking import Ranker
    from harnpy.world import World


_BUDGET, _THRESHOLD, _OVERLAP = 8000, 2000, 0.85
_DEDUPS = ("none", CHUNKED, SEMANTIC)

_SELECTED, _BUDGET_EXCEEDED = "selected", "budget_exceeded"


class _Wanted(NamedTuple):
    budget: int
    threshold: int
    dedup: str
    strategy: str
    query: str
    overlap: float
    ranker: Ranker | None


def assemble(given: Any, world: World) -> AssembledContext:
    """Return the chunks to show, and what happened to every artifact. Raise `MisuseError`.

    ``given`` holds the options; a ranker is a Python callable.
    """
    if not isinstance(given, dict) or not isinstance(given.get("artifacts"), list):
        raise MisuseError(f"{CALLER}: first argument must be an options dict with `artifacts`")
    wanted = _read(Options(given))
    artifacts = read_artifacts(given["artifacts"], world)
    textless = [_textless(artifact) for artifact in artifacts if not _has_text(artifact)]
    chunks = [
        chunk for artifact in filter(_has_text, artifacts) for chunk in chunks_of(artifact, wanted.threshold)
    ]
    if wanted.strategy == RELEVANCE:
        chunks = ranked(chunks, wanted.query, wanted.ranker)
    kept, repeats = without_repeats(chunks, wanted.dedup, wanted.overlap)
    created = {artifact["id"]: artifact["created_at"] for artifact in artifacts}
    packed, left_out = _packed(in_order(kept, wanted.strategy, created), wanted.budget)
    exceeding = [dropped(chunk, _BUDGET_EXCEEDED) for chunk in left_out]
    return {
        "chunks": packed,
        "included": _included(packed),
        "dropped": textless + repeats + exceeding,
        "reasons": [
            *(_reason(chunk, wanted.strategy, _SELECTED) for chunk in packed),
            *(_reason(chunk, wanted.strategy, _BUDGET_EXCEEDED) for chunk in left_out),
        ],
        "total_tokens": sum(chunk["estimated_tokens"] for chunk in packed),
        "budget_tokens": wanted.budget,
        "strategy": wanted.strategy,
        "dedup": wanted.dedup,
    }


def render_assembled(assembled: AssembledContext) -> str:
    """Render an assembled context for a model."""
    return "\n\n".join([*map(_rendered, assembled["chunks"]), _rendered_budget(assembled)])


# The options.


def _read(options: Options) -> _Wanted:
    budget = options.limit("budget_tokens", CALLER)
    threshold = options.limit("microcompact_threshold", CALLER)
    overlap = options.number("semantic_overlap")
    if overlap is not None and not 0.0 <= overlap <= 1.0:
        raise MisuseError(f"{CALLER}: semantic_overlap must be in [0.0, 1.0]")
    ranker = options.value("ranker_callback")
    if ranker is not None and not callable(ranker):
        raise MisuseError(f"{CALLER}: ranker_callback must be a function, got {type_name(ranker)}")
    return _Wanted(
        budget=_BUDGET if budget is None else budget,
        threshold=_THRESHOLD if threshold is None else threshold,
        dedup=_choice(options, "dedup", _DEDUPS, CHUNKED),
        strategy=_choice(options, "strategy", STRATEGIES, RELEVANCE),
        query=options.string("query") or "",
        overlap=_OVERLAP if overlap is None else overlap,
        ranker=ranker,
    )


def _choice(options: Options, key: str, choices: Sequence[str], default: str) -> str:
    chosen = options.string(key)
    if chosen is None:
        return default
    if chosen not in choices:
        raise MisuseError(f'{CALLER}: {key} must be one of {" | ".join(choices)} (got "{chosen}")')
    return chosen


# The account.


def _packed(chunks: list[Chunk], budget: int) -> tuple[list[Chunk], list[Chunk]]:
    """Return the chunks that fit the budget, taken in order, and the others."""
    packed, left_out, spent = [], [], 0
    for chunk in chunks:
        if spent + chunk["estimated_tokens"] <= budget:
            packed.append(chunk)
            spent += chunk["estimated_tokens"]
        else:
            left_out.append(chunk)
    return packed, left_out


def _has_text(artifact: Artifact) -> bool:
    text = artifact["text"] or ""
    return bool(text) and not text.isspace()


def _textless(artifact: Artifact) -> Dropped:
    reason = "no_text" if artifact["text"] is None else "empty_text"
    return {"artifact_id": artifact["id"], "chunk_id": None, "reason": reason, "detail": None}


def _included(chunks: list[Chunk]) -> list[Included]:
    """Return how much of each artifact is included, sorted by artifact id."""
    of_artifact: dict[str, Included] = {}
    for chunk in chunks:
        id = chunk["artifact_id"]
        entry = of_artifact.setdefault(
            id,
            {
                "artifact_id": id,
                "artifact_kind": chunk["artifact_kind"],
                "chunks_included": 0,
                "chunks_total": chunk["chunk_count"],
                "tokens_included": 0,
            },
        )
        entry["chunks_included"] += 1
        entry["tokens_included"] += chunk["estimated_tokens"]
    return [of_artifact[id] for id in sorted(of_artifact)]


def _reason(chunk: Chunk, strategy: str, reason: str) -> Reason:
    return {
        "chunk_id": chunk["id"],
        "artifact_id": chunk["artifact_id"],
        "strategy": strategy,
        "score": chunk["score"],
        "included": reason == _SELECTED,
        "reason": reason,
    }


# As text.


def _rendered(chunk: Chunk) -> str:
    fields = {
        "title": chunk["title"] or f"{chunk['artifact_kind']} {chunk['artifact_id']}",
        "kind": chunk["artifact_kind"],
        "source": chunk["source"] or "unknown",
        "chunk_id": chunk["id"],
        "chunk_index": f"{chunk['chunk_index'] + 1} of {chunk['chunk_count']}",
    }
    return rendered_artifact(fields, chunk["text"])


def _rendered_budget(assembled: AssembledContext) -> str:
    fields = {
        "used_tokens": assembled["total_tokens"],
        "budget_tokens": assembled["budget_tokens"],
        "strategy": assembled["strategy"],
        "dedup": assembled["dedup"],
    }
    return tagged("context_budget", "\n".join(lines_of(fields)))
