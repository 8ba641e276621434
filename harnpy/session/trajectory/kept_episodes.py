"""Episodes on a store: a stream of them for each session, in the order in which they were first kept.

An episode that is kept again is written behind; the last one of an id counts. So it works on every store, a
caller's own too. Spec: 10 §A1.16, §C10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.json import decode as from_json
from msgspec.json import encode as to_json

from harnpy.session.errors import InvalidArgument
from harnpy.session.identity import read_stamp
from harnpy.session.json_check import checked
from harnpy.session.parts import arguments
from harnpy.session.trajectory.episode import Episode
from harnpy.storage.contract import Row
from harnpy.storage.errors import VersionConflict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.storage.contract import Hit, Store, Stream

#: What a store calls our streams; their names are the sessions' ids.
KIND = "episode"
#: As many hits as there are: they are put in order here.
_ALL = 1 << 31


class _Kept(NamedTuple):
    seq: int
    episode: Episode


class EpisodeCodec:
    """Episodes ↔ rows. The time of a row is that of the run's end."""

    def encode(self, records: Sequence[_Kept]) -> list[Row]:
        return [self._row(seq, episode) for seq, episode in records]

    def _row(self, seq: int, episode: Episode) -> Row:
        data = to_json(episode.data()).decode()
        return Row(seq, KIND, read_stamp(episode.end_time), data, key=_key(episode.id))

    def decode(self, rows: Sequence[Row]) -> list[_Kept]:
        return [_Kept(row.seq, _episode(row)) for row in rows]

    def texts(self, rows: Sequence[Row]) -> list[str | None]:
        return [_episode(row).text for row in rows]


def _episode(row: Row) -> Episode:
    return Episode.of(from_json(row.data))


def _key(id: str) -> str:
    return f"{KIND}:{id}"


_CODEC = EpisodeCodec()


class EpisodeKeeping:
    """The part of a `SessionRuntime` that keeps episodes."""

    store: Store

    def save_episode(self, episode: Episode) -> None:
        """Keep an episode, in the place of one of its session that has its id.

        Raises `InvalidArgument` for what is no episode, `EventRejected` for what isn't JSON.
        """
        if not isinstance(episode, Episode):
            raise InvalidArgument(f"an episode is what `distill` returns, got {type(episode).__name__}")
        kept = Episode.of(checked(episode.data()))
        stream = self._episodes_of(episode.session_id)
        while True:
            seen = stream.refresh()
            try:
                return stream.append([_Kept(seen + 1, kept)], seen)
            except VersionConflict:
                continue  # somebody else has kept one just now

    def episodes(self, session_id: str) -> list[Episode]:
        """Return the episodes of a session, in the order in which they were first kept."""
        stream = self._episodes_of(arguments.session_id(session_id))
        stream.refresh()
        found: dict[str, Episode] = {}
        for _, episode in stream.read():
            found[episode.id] = episode
        return list(found.values())

    def search_episodes(self, query: str, limit: int = 50) -> list[Episode]:
        """Return the episodes that say every term of ``query`` or name it as a tool, the newest run first.

        Raises `StorageError` for a query without a term.
        """
        arguments.count("limit", limit)
        hits = self.store.search(arguments.text("query", query), KIND, codec=_CODEC, limit=_ALL)
        found = [episode for hit in reversed(hits) if (episode := self._current(hit)) is not None]
        found.sort(key=lambda episode: read_stamp(episode.end_time), reverse=True)
        return found[:limit]

    def _current(self, hit: Hit) -> Episode | None:
        """Return the episode that was found; None if it was kept again since."""
        stream = self._episodes_of(hit.name)
        kept: _Kept = next(stream.read(hit.seq - 1, hit.seq))
        newest: _Kept | None = stream.find_key(_key(kept.episode.id))
        return kept.episode if newest is not None and newest.seq == kept.seq else None

    def _episodes_of(self, session_id: str) -> Stream:
        return self.store.stream(KIND, session_id, _CODEC)
