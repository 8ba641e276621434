"""Assembling a context from artifacts: the best chunks that a budget has room for. Spec: 08 §5.5.

Artifacts are split into chunks, repeated chunks are dropped, and a ranking decides which come first. Nothing
disappears: `dropped` lists what is left out with a reason, `reasons` every chunk with its score.
"""

from __future__ import annotations

import hashlib
import re
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import MisuseError
from harnpy.formats.dicts import Options
from harnpy.formats.display import type_name
from harnpy.formats.text_size import BYTES_PER_TOKEN, byte_length, split_text, text_tokens
from harnpy.workflow.artifacts import (
    lines_of,
    read_artifacts,
    rendered_artifact,
    tagged,
)
from harnpy.workflow.workflow_options import ASSEMBLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harnpy.workflow.artifacts import Artifact, AssembledContext, Chunk, Dropped, Included, Reason
    from harnpy.world import World

    #: ``ranker(query, chunks)`` returns a list of scores.
    Ranker = Callable[[str, list[Chunk]], Any]

# Splitting artifacts into chunks that fit a context, and dropping repeated chunks. Spec: 08 §5.5.
#
# Pure: equal texts give equal chunks with equal ids. Lengths are UTF-8 bytes.


CHUNKED, SEMANTIC = "chunked", "semantic"

_DIGITS = 16


def chunks_of(artifact: Artifact, threshold: int) -> list[Chunk]:
    """Split an artifact that has text: one chunk, unless it has more than ``threshold`` tokens."""
    text = artifact["text"] or ""
    texts = [text]
    if (artifact["estimated_tokens"] or 0) > threshold:
        # At least a token, or a chunk might have no room for a single character.
        texts = split_text(text, max(threshold, 1) * BYTES_PER_TOKEN)
    return [
        {
            "id": f"{artifact['id']}#{_digest(text)}",
            "artifact_id": artifact["id"],
            "artifact_kind": artifact["kind"],
            "title": artifact["title"],
            "source": artifact["source"],
            "text": text,
            "estimated_tokens": text_tokens(text),
            "chunk_index": index,
            "chunk_count": len(texts),
            "score": 0.0,
        }
        for index, text in enumerate(texts)
    ]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


# Repetition.


def without_repeats(chunks: list[Chunk], dedup: str, overlap: float) -> tuple[list[Chunk], list[Dropped]]:
    """Return the chunks that say something new, and `dropped` entries for the others. The first one stays."""
    if dedup == CHUNKED:
        return _without_equals(chunks)
    if dedup == SEMANTIC:
        return _without_similar(chunks, overlap)
    return chunks, []


def dropped(chunk: Chunk, reason: str, detail: str | None = None) -> Dropped:
    return {
        "artifact_id": chunk["artifact_id"],
        "chunk_id": chunk["id"],
        "reason": reason,
        "detail": detail,
    }


def _without_equals(chunks: list[Chunk]) -> tuple[list[Chunk], list[Dropped]]:
    seen: set[str] = set()
    kept, repeats = [], []
    for chunk in chunks:
        words = " ".join(chunk["text"].split())
        if words in seen:
            repeats.append(dropped(chunk, "duplicate", CHUNKED))
        else:
            seen.add(words)
            kept.append(chunk)
    return kept, repeats


def _without_similar(chunks: list[Chunk], overlap: float) -> tuple[list[Chunk], list[Dropped]]:
    kept: list[tuple[Chunk, frozenset[bytes]]] = []
    repeats = []
    for chunk in chunks:
        grams = _trigrams(chunk["text"])
        earlier = next((first for first, its in kept if _similarity(grams, its) >= overlap), None)
        if earlier is None:
            kept.append((chunk, grams))
        else:
            repeats.append(dropped(chunk, "duplicate", f"{SEMANTIC}≈{earlier['id']}"))
    return [chunk for chunk, _ in kept], repeats


def _trigrams(text: str) -> frozenset[bytes]:
    """Return the trigrams of the letters and digits; a shorter text is its own only one."""
    data = "".join(filter(str.isalnum, text)).lower().encode()
    return frozenset(data[at : at + 3] for at in range(max(len(data) - 2, 1)))


def _similarity(left: frozenset[bytes], right: frozenset[bytes]) -> float:
    """Return the Jaccard similarity."""
    shared = len(left & right)
    return shared / (len(left) + len(right) - shared)


CALLER = "assemble_context"

RECENCY, RELEVANCE, ROUND_ROBIN = "recency", "relevance", "round_robin"
STRATEGIES = (RECENCY, RELEVANCE, ROUND_ROBIN)

_LEAST_TERM = 3
_LONG = 400


def ranked(chunks: list[Chunk], query: str, ranker: Ranker | None) -> list[Chunk]:
    """Return the chunks with their scores for a query, in the same order. Raise `MisuseError`."""
    scores = _own_scores(chunks, query) if ranker is None else _asked(ranker, chunks, query)
    return [{**chunk, "score": score} for chunk, score in zip(chunks, scores, strict=True)]


def in_order(chunks: list[Chunk], strategy: str, created: Mapping[str, str]) -> list[Chunk]:
    """Sort chunks by a strategy. They are given in the order of their artifacts.

    ``created`` maps artifact ids to their timestamps.
    """
    if strategy == RECENCY:
        return sorted(chunks, key=lambda chunk: created[chunk["artifact_id"]], reverse=True)
    if strategy == ROUND_ROBIN:
        return _in_turn(chunks)
    return sorted(chunks, key=lambda chunk: (-chunk["score"], chunk["artifact_id"], chunk["chunk_index"]))


def _in_turn(chunks: list[Chunk]) -> list[Chunk]:
    """Take one chunk of each artifact in turn."""
    of_artifact: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        of_artifact.setdefault(chunk["artifact_id"], []).append(chunk)
    return [chunk for turn in zip_longest(*of_artifact.values()) for chunk in turn if chunk is not None]


def _own_scores(chunks: list[Chunk], query: str) -> list[float]:
    terms = {word for word in re.findall(r"\w+", query.lower()) if len(word) >= _LEAST_TERM}
    return [_relevance(chunk["text"], terms) for chunk in chunks]


def _relevance(text: str, terms: set[str]) -> float:
    """Score a text by how many of the terms it has, and how densely."""
    if not terms:
        return 0.0
    lowered = text.lower()
    found = sum(term in lowered for term in terms)
    return 0.7 * found / len(terms) + 0.3 * min(1.0, found / (byte_length(text) / _LONG + 1))


def _asked(ranker: Ranker, chunks: list[Chunk], query: str) -> list[float]:
    answer = ranker(query, chunks)
    if not isinstance(answer, list):
        raise MisuseError(f"{CALLER}: ranker_callback must return a list of numbers")
    scores = [_score(value) for value in answer[: len(chunks)]]
    return scores + [0.0] * (len(chunks) - len(scores))


def _score(value: Any) -> float:
    if value is None:
        return 0.0
    if type(value) not in (int, float):
        raise MisuseError(f"{CALLER}: ranker_callback score must be a number (got {type_name(value)})")
    if value != value:  # NaN can't be sorted
        raise MisuseError(f"{CALLER}: ranker_callback score must be a number (got NaN)")
    return float(value)


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
        budget=ASSEMBLE.default("budget_tokens") if budget is None else budget,
        threshold=ASSEMBLE.default("microcompact_threshold") if threshold is None else threshold,
        dedup=_choice(options, "dedup", _DEDUPS),
        strategy=_choice(options, "strategy", STRATEGIES),
        query=options.string("query") or "",
        overlap=ASSEMBLE.default("semantic_overlap") if overlap is None else overlap,
        ranker=ranker,
    )


def _choice(options: Options, key: str, choices: Sequence[str]) -> str:
    chosen: str = options.string(key, ASSEMBLE.default(key)) or ""
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
