"""Searching the logs themselves: lines that can't hold what is looked for are passed over unread.

There is no index that could be behind, and appends pay nothing. Spec: 10 §C6, "Search".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.storage.errors import CorruptLog
from harnpy.storage.jsonl.logs import Segment
from harnpy.storage.jsonl.needles import mentioning
from harnpy.storage.searching import hits, terms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.storage.contract import Codec, Hit
    from harnpy.storage.jsonl.directory import Directory
    from harnpy.storage.jsonl.log import Log
    from harnpy.storage.jsonl.state import State


def search(
    directory: Directory,
    query: str,
    kind: str,
    codec: Codec,
    name: str | None,
    types: frozenset[str] | None,
    limit: int,
) -> list[Hit]:
    """Return the first hits."""
    wanted = mentioning(terms(query))
    found: list[Hit] = []
    for writer, segment in _everything(directory, kind) if name is None else _past(directory, kind, name):
        for append in directory.appends(segment, wanted=wanted):
            pairs = zip(append, codec.texts(append), strict=True)
            inside = [pair for pair in pairs if segment.after < pair[0].seq <= segment.until]
            rows, texts = [row for row, _ in inside], [text for _, text in inside]
            found += hits(kind, writer, rows, texts, query, types)
            if len(found) >= limit:
                return found[:limit]
    return found


def _past(directory: Directory, kind: str, name: str) -> Iterator[tuple[str, Segment]]:
    """The records of one stream, each part with the stream that wrote it, the oldest stream first."""
    log = directory.logs.log(kind, name)
    state = log.state()
    parts = directory.logs.segments(kind, log, state, 0, state.version)
    shared = [part for part in parts if part.log is not log]
    for part in [*shared, *(part for part in parts if part.log is log)]:
        # What a deleted stream wrote counts as its branch's.
        yield part.log.state().name or name, part


def _everything(directory: Directory, kind: str) -> Iterator[tuple[str, Segment]]:
    """The records that each stream wrote, by name."""
    known: list[tuple[str, Log, State]] = []
    for log in directory.logs.all(kind):
        try:
            state = log.state()
        except CorruptLog:
            continue  # lists and checks report it
        known.append((state.name, log, state))
    for name, log, state in sorted(known, key=lambda each: each[0]):
        shared = 0 if state.points is None else state.points.at
        if shared and not state.dropped:
            yield name, Segment(log, state.uid, 0, 1)
        yield name, Segment(log, state.uid, max(shared, state.dropped), state.version)
