"""Splitting artifacts into chunks that fit a context, and dropping repeated chunks. Spec: 08 §5.5.

Pure: equal texts give equal chunks with equal ids. Lengths are UTF-8 bytes.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from harnpy.session.resize.summaries import byte_length
from harnpy.workflow.artifacts.artifact import BYTES_PER_TOKEN, tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.workflow.artifacts.artifact_types import Artifact, Chunk, Dropped


CHUNKED, SEMANTIC = "chunked", "semantic"

_DIGITS = 16

#: Where a text may be split, the best places first, and what joins the pieces again.
_PARAGRAPHS, _LINES = (re.compile(r"\n{2,}"), "\n\n"), (re.compile(r"\n"), "\n")


def chunks_of(artifact: Artifact, threshold: int) -> list[Chunk]:
    """Split an artifact that has text: one chunk, unless it has more than ``threshold`` tokens."""
    text = artifact["text"] or ""
    texts = [text]
    if (artifact["estimated_tokens"] or 0) > threshold:
        # At least a token, or a chunk might have no room for a single character.
        texts = split(text, max(threshold, 1) * BYTES_PER_TOKEN)
    return [
        {
            "id": f"{artifact['id']}#{_digest(text)}",
            "artifact_id": artifact["id"],
            "artifact_kind": artifact["kind"],
            "title": artifact["title"],
            "source": artifact["source"],
            "text": text,
            "estimated_tokens": tokens_of(text),
            "chunk_index": index,
            "chunk_count": len(texts),
            "score": 0.0,
        }
        for index, text in enumerate(texts)
    ]


def split(text: str, limit: int) -> list[str]:
    """Split a text into pieces of at most ``limit`` bytes: at paragraphs, else at lines, else anywhere."""
    return [piece for piece in _split(text, limit, (_PARAGRAPHS, _LINES)) if not piece.isspace()]


def _split(text: str, limit: int, places: Sequence[tuple[re.Pattern[str], str]]) -> Iterator[str]:
    if byte_length(text) <= limit:
        yield text
        return
    if not places:
        yield from _characters(text, limit)
        return
    (pattern, joint), *finer = places
    packed: list[str] = []
    size = 0
    for part in filter(None, pattern.split(text)):
        length = byte_length(part)
        if packed and size + len(joint) + length > limit:
            yield joint.join(packed)
            packed, size = [], 0
        if length > limit:
            yield from _split(part, limit, finer)
            continue
        size += length + (len(joint) if packed else 0)
        packed.append(part)
    if packed:
        yield joint.join(packed)


def _characters(text: str, limit: int) -> Iterator[str]:
    data = text.encode("utf-8", "surrogatepass")
    start = 0
    while start < len(data):
        end = start + limit
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        yield data[start:end].decode("utf-8", "surrogatepass")
        start = end


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
