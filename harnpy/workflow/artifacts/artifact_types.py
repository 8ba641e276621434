"""The types of artifacts and of contexts assembled from them. Spec: 08 §5.1, §5.5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict


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
    priority: int
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
    """How much of an artifact is in the context."""

    artifact_id: str
    artifact_kind: str
    chunks_included: int
    chunks_total: int
    tokens_included: int


class Reason(TypedDict):
    """Why a chunk is in the context, or isn't."""

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
