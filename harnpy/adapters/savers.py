"""Databases of LangGraph's own savers: their threads are copied into a store, for `HarnpySaver`.

Checkpoints, values and writes are moved as they were serialised: LangGraph needn't be installed, and nothing
in them is run. Read by what langgraph-checkpoint-sqlite 3.1 and langgraph-checkpoint-postgres 3.2 write.
Spec: 10 §C20.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import MsgspecError, Raw
from msgspec.json import decode as from_json
from msgspec.json import encode as to_json
from msgspec.msgpack import decode as from_msgpack
from msgspec.msgpack import encode as to_msgpack

from harnpy.adapters import threads
from harnpy.adapters.threads import KIND, Namespace, Saved, Thread, ThreadCodec, ThreadRecord, Write
from harnpy.session.errors import TransferError
from harnpy.session.transfer import databases, listed
from harnpy.storage import StorageError
from harnpy.storage.opening import shown
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from harnpy.adapters.checkpoints import Typed
    from harnpy.session.transfer.databases import Query
    from harnpy.storage import Store

    Json = dict[str, Any]


class ImportedThreads(NamedTuple):
    """The ids of threads that were made or have grown, and of those that had nothing new; ``errors`` are
    (database or thread, reason)."""

    imported: list[str]
    skipped: list[str]
    errors: list[tuple[str, str]]


def import_threads(paths: Iterable[str], store: Store, *, world: World | None = None) -> ImportedThreads:
    """Copy the threads of databases of `SqliteSaver` and `PostgresSaver` into a store, under their ids.

    Paths are files of SQLite and addresses of PostgreSQL. Of a thread that the store has, only what came
    behind the newest checkpoint that both have is added, and what else the store has of it stays. A thread
    comes in as a whole or not at all; one that is pickled or encrypted keeps none of the others out.
    """
    world = World() if world is None else world
    report = ImportedThreads([], [], [])
    for path in paths:
        try:
            if databases.tool_of(path, world) != databases.LANGGRAPH:
                raise TransferError("this is no database of LangGraph's checkpoints")
            with databases.opened(path, world) as query:
                made = _ServersThread if databases.is_url(path) else _Thread
                for (id,) in query("SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id"):
                    _import(made(query, str(id)), f"{shown(path)}: {id}", store, report)
        except (TransferError, StorageError, OSError) as error:
            report.errors.append((shown(path), str(error)))
    return report


def _import(thread: _Thread, name: str, store: Store, report: ImportedThreads) -> None:
    try:
        is_new = _add(thread, store)
    except (TransferError, StorageError) as error:
        report.errors.append((name, str(error)))
    except (MsgspecError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        report.errors.append((name, "its checkpoints aren't as LangGraph writes them"))
    else:
        (report.imported if is_new else report.skipped).append(thread.id)


class _Checkpoint(NamedTuple):
    """A checkpoint as it is in a database; ``time`` in microseconds since 1970."""

    ns: str
    saved: Saved
    values: Mapping[str, Typed]
    writes: Sequence[Write]
    step: Any
    time: int


def _add(thread: _Thread, store: Store) -> bool:
    """Append what the stream of a thread lacks, in one piece; return whether that was anything."""
    stream = store.stream(KIND, thread.id, ThreadCodec())
    known = Thread()
    for record in stream.read():
        known.apply(record)
    there = [(ns, id) in thread.ids for ns, space in known.namespaces.items() for id in space.checkpoints]
    if there and not any(there):
        raise TransferError("the store has another thread of that id: rename or delete that one first")
    drafts = [draft for each in thread.checkpoints(known) for draft in _drafts(each, known)]
    version = known.version
    records = [ThreadRecord(version + n, type, time, data) for n, (type, time, data) in enumerate(drafts, 1)]
    if records:
        stream.append(records, version)
    return bool(records)


def _drafts(each: _Checkpoint, known: Thread) -> Iterator[tuple[str, int, Json]]:
    """Yield what the stream lacks of a checkpoint, and take it as known."""
    space = known.namespaces.setdefault(each.ns, Namespace())
    saved, values = each.saved, each.values
    if saved.id not in space.checkpoints:
        versions = saved.versions
        lacking = {
            name: value
            for name, value in values.items()
            if threads.is_whole(each.step) or (name, versions[name]) not in space.values
        }
        yield threads.PUT, each.time, threads.put_data(each.ns, saved, lacking)
        space.checkpoints[saved.id] = saved
        space.values |= {(name, versions[name]): value for name, value in lacking.items()}
    there = space.writes.get(saved.id, {})
    by_task: dict[str, list[Write]] = {}
    for write in each.writes:
        known_one = there.get((write.task_id, write.number))
        if known_one is None or (write.number < 0 and known_one.value != write.value):  # those are replaced
            by_task.setdefault(write.task_id, []).append(write)
    for writes in by_task.values():
        yield threads.WRITES, each.time, threads.writes_data(each.ns, saved.id, writes)


# What the databases have.


_PLACE = "thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"


class _Thread:
    """A thread in a database of SQLite. ``ids`` are namespace and id of its checkpoints, the oldest first."""

    _order = "checkpoint_id"
    _writes, _value = "writes", "value"
    _columns = "SELECT name FROM pragma_table_info('writes')"

    def __init__(self, query: Query, id: str) -> None:
        self._query = query
        self.id = id
        rows = query(
            "SELECT checkpoint_ns, checkpoint_id FROM checkpoints WHERE thread_id = ? "
            f"ORDER BY {self._order}, checkpoint_ns",
            id,
        )
        self.ids = [(ns, checkpoint) for ns, checkpoint in rows]
        # Databases that were begun by an earlier version of LangGraph lack it.
        self._path = "task_path" if ("task_path",) in map(tuple, query(self._columns)) else "''"

    def checkpoints(self, known: Thread) -> Iterator[_Checkpoint]:
        """Yield those that may be new: in each namespace the newest that is known, and those behind it."""
        spaces = known.namespaces
        newest = {ns: id for ns, id in self.ids if ns in spaces and id in spaces[ns].checkpoints}
        for ns, id in self.ids:
            if id >= newest.get(ns, ""):
                yield self._checkpoint(ns, id)

    def _checkpoint(self, ns: str, id: str) -> _Checkpoint:
        parent, facts, rest, values, metadata = self._parts(ns, id)
        writes = self._query(
            f"SELECT task_id, idx, channel, type, {self._value}, {self._path} FROM {self._writes} "
            f"WHERE {_PLACE}",
            *(self.id, ns, id),
        )
        versions, deltas = facts["channel_versions"], metadata.get("counters_since_delta_snapshot")
        told = "msgpack", to_msgpack(metadata)
        empty = tuple(name for name in versions if name not in values)
        return _Checkpoint(
            ns,
            Saved(id, parent, rest, told, metadata.get("run_id"), tuple(deltas or ()), versions, empty),
            values,
            [
                Write(task, number, channel, _plain(sort, value), path)
                for task, number, channel, sort, value, path in writes
            ],
            metadata.get("step"),
            listed.time_of(facts.get("ts")),
        )

    def _parts(self, ns: str, id: str) -> tuple[str | None, Json, Typed, Mapping[str, Typed], Json]:
        """Return a checkpoint's parent, what it says, the same serialised, its values and its metadata."""
        [(parent, sort, data, metadata)] = self._query(
            f"SELECT parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints WHERE {_PLACE}",
            *(self.id, ns, id),
        )
        sort, data = _plain(sort, data)
        decode, encode = (from_json, to_json) if sort == "json" else (from_msgpack, to_msgpack)
        parts = decode(data, type=dict[str, Raw])
        values = decode(parts.pop("channel_values"), type=dict[str, Raw])
        rest = encode(parts)
        facts = {key: decode(parts[key]) for key in ("channel_versions", "ts")}
        typed = {name: (sort, bytes(value)) for name, value in values.items()}
        return parent, facts, (sort, rest), typed, json.loads(metadata or b"{}")


class _ServersThread(_Thread):
    """The same in a database of PostgreSQL, where values stand in rows of their own, but for the plainest."""

    _order = 'checkpoint_id COLLATE "C"'
    _writes, _value = "checkpoint_writes", "blob"
    _columns = (
        "SELECT column_name::text FROM information_schema.columns WHERE table_name = 'checkpoint_writes'"
    )

    def _parts(self, ns: str, id: str) -> tuple[str | None, Json, Typed, Mapping[str, Typed], Json]:
        place = (self.id, ns, id)
        [(parent, facts, metadata)] = self._query(
            f"SELECT parent_checkpoint_id, checkpoint, metadata FROM checkpoints WHERE {_PLACE}", *place
        )
        values = {
            name: ("msgpack", to_msgpack(value))
            for name, value in (facts.pop("channel_values", None) or {}).items()
        }
        for name, sort, data in self._query(databases.VALUES, *place):
            if sort != "empty":
                values[name] = _plain(sort, data)
        return parent, facts, ("msgpack", to_msgpack(facts)), values, metadata or {}


#: What can be moved without being run by whoever reads it.
_PLAIN = ("msgpack", "json", "null", "bytes", "bytearray")


def _plain(sort: Any, data: Any) -> Typed:
    """Return a value as it was serialised. Raises `TransferError` for a pickled or an encrypted one."""
    if sort not in (None, *_PLAIN):
        raise databases.unread(sort)
    return sort or "null", bytes(data or b"")
