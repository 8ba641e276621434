"""Which chunks of a context come first. Spec: 08 §5.5."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.session.resize.summaries import byte_length
from harnpy.text.display import type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harnpy.workflow.artifacts.artifact_types import Chunk

    #: ``ranker(query, chunks)`` returns a list of scores.
    Ranker = Callable[[str, list[Chunk]], Any]

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
