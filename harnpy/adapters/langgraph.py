"""harnpy's stores as LangGraph's memory: `HarnpySaver`. Spec: 10 §C20.

A thread is a stream, so it is written, locked, listed, backed up and repaired like a session, and
`copy_thread` is a branch: one record, however long the thread is. Extra: ``langgraph``.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager, suppress
from functools import lru_cache
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from harnpy.version import install_command

try:
    from langgraph.checkpoint.base import (
        WRITES_IDX_MAP,
        BaseCheckpointSaver,
        CheckpointTuple,
        get_checkpoint_id,
        get_checkpoint_metadata,
    )
except ImportError as error:
    raise ImportError(f"harnpy.adapters.langgraph needs LangGraph: {install_command('langgraph')}") from error

from harnpy.adapters import threads
from harnpy.adapters.threads import KIND, Namespace, Saved, Thread, ThreadCodec, ThreadRecord, Write
from harnpy.storage import HeadQuery, Store, Stream, open_store
from harnpy.storage.contract import all_heads
from harnpy.storage.errors import StreamExists, VersionConflict
from harnpy.storage.memory import MemoryStore
from harnpy.world.threads import Lock, OfProcess

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
    from langgraph.checkpoint.serde.base import SerializerProtocol

    Draft = tuple[str, dict[str, Any]]

#: Threads whose ends are remembered.
_WRITTEN = 256


class HarnpySaver(BaseCheckpointSaver[Any]):
    """A checkpointer on any store.

    ``store`` is a store's URL, e.g. ``sqlite:.harn/sessions.db``, or an open store, which stays the caller's
    to close. Safe to use from many threads, tasks and processes.
    """

    def __init__(self, store: Store | str, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self.store = open_store(store) if isinstance(store, str) else store
        self._codec = ThreadCodec()
        # In memory asking costs nothing, and a stream that was deleted doesn't know it.
        self._written = _Written(self._stream, 0 if isinstance(self.store, MemoryStore) else _WRITTEN)

    # Reading.

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        thread_id, ns = _place(config)
        records = _newest_first(self._stream(thread_id))
        found = threads.looked_up(records, ns, get_checkpoint_id(config) or None)
        return None if found is None else self._tuple(thread_id, ns, *found)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield the checkpoints, the newest first."""
        found = 0
        for thread_id, ns, namespace, saved in self._chosen(config, before):
            if limit is not None and found >= limit:
                return
            metadata = self.serde.loads_typed(saved.metadata)
            if all(metadata.get(key) == value for key, value in (filter or {}).items()):
                found += 1
                yield self._tuple(thread_id, ns, namespace, saved)

    def _chosen(
        self, config: RunnableConfig | None, before: RunnableConfig | None
    ) -> Sequence[tuple[str, str, Namespace, Saved]]:
        wanted = {} if config is None else config["configurable"]
        only, ns_only = wanted.get("checkpoint_id"), wanted.get("checkpoint_ns")
        bound = None if before is None else get_checkpoint_id(before)
        found = [
            (thread_id, ns, namespace, saved)
            for thread_id in (self._thread_ids() if config is None else [_thread_id(config)])
            for ns, namespace in self._thread(thread_id).namespaces.items()
            if ns_only is None or ns == ns_only
            for id, saved in namespace.checkpoints.items()
            if (not only or id == only) and (not bound or id < bound)
        ]
        return sorted(found, key=lambda each: each[3].id, reverse=True)

    def _tuple(self, thread_id: str, ns: str, namespace: Namespace, saved: Saved) -> CheckpointTuple:
        load = self.serde.loads_typed
        values = {channel: load(value) for channel, value in namespace.values_of(saved).items()}
        return CheckpointTuple(
            config=_config(thread_id, ns, saved.id),
            checkpoint=load(saved.checkpoint) | {"channel_values": values},
            metadata=load(saved.metadata),
            parent_config=_config(thread_id, ns, saved.parent_id) if saved.parent_id else None,
            pending_writes=[
                (write.task_id, write.channel, load(write.value)) for write in namespace.writes_of(saved.id)
            ],
        )

    # Writing.

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        thread_id, ns = _place(config)
        dump = self.serde.dumps_typed
        all_metadata = get_checkpoint_metadata(config, metadata)
        values = checkpoint["channel_values"]
        versions = {**checkpoint["channel_versions"], **new_versions}
        saved = Saved(
            checkpoint["id"],
            get_checkpoint_id(config),
            dump({key: value for key, value in checkpoint.items() if key != "channel_values"}),
            dump(all_metadata),
            all_metadata.get("run_id"),
            tuple(all_metadata.get("counters_since_delta_snapshot") or ()),
            versions,
            tuple(channel for channel in versions if channel not in values),
        )
        chosen = saved.versions if threads.is_whole(all_metadata.get("step")) else new_versions
        changed = {channel: dump(values[channel]) for channel in chosen if channel in values}
        self._append(thread_id, [(threads.PUT, threads.put_data(ns, saved, changed))])
        return _config(thread_id, ns, saved.id)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        thread_id, ns = _place(config)
        dump = self.serde.dumps_typed
        written = [
            Write(task_id, WRITES_IDX_MAP.get(channel, index), channel, dump(value), task_path)
            for index, (channel, value) in enumerate(writes)
        ]
        if written:
            id: str = config["configurable"]["checkpoint_id"]
            self._append(thread_id, [(threads.WRITES, threads.writes_data(ns, id, written))])

    # Whole threads.

    def delete_thread(self, thread_id: str) -> None:
        self.store.delete(KIND, thread_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints of these runs, and their writes, from all threads."""
        runs = set(run_ids)
        for thread_id in self._thread_ids() if runs else []:
            drafts = [
                (threads.REMOVED, threads.removed_data(ns, ids))
                for ns, namespace in self._thread(thread_id).namespaces.items()
                if (ids := [saved.id for saved in namespace.checkpoints.values() if saved.run_id in runs])
            ]
            if drafts:
                self._append(thread_id, drafts)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes. A target that is there already has them added."""
        source = self._stream(source_thread_id)
        records = list(source.read())
        if not records or source_thread_id == target_thread_id:
            return
        if records[0].seq == 1:  # not pruned
            with suppress(StreamExists):
                self.store.branch(source, target_thread_id, records[0])
                return
        self._append(target_thread_id, [(record.type, record.data) for record in records])

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Free what older checkpoints take.

        ``keep_latest`` keeps the newest checkpoint of each namespace, and those that it is put together from;
        ``delete`` keeps nothing.
        """
        if strategy not in ("keep_latest", "delete", "delete_all"):
            raise ValueError(f"a prune's strategy is keep_latest or delete, not {strategy!r}")
        for thread_id in thread_ids:
            if strategy == "keep_latest":
                self._keep_latest(thread_id)
            else:
                self.delete_thread(thread_id)

    def _keep_latest(self, thread_id: str) -> None:
        """Write what stays once more, whole, and forget all that was before."""
        thread = self._thread(thread_id)
        kept: list[Draft] = []
        for ns, namespace in thread.namespaces.items():
            latest = namespace.latest()
            if latest is not None:
                kept += _whole(ns, namespace, namespace.needed_by(namespace.checkpoints[latest]))
        if kept:
            before = self._append(thread_id, kept, expected=thread.version)
            self._stream(thread_id).drop(before)

    # The store.

    def _stream(self, thread_id: str) -> Stream:
        return self.store.stream(KIND, thread_id, self._codec)

    def _thread(self, thread_id: str) -> Thread:
        """Return the thread as its stream is now."""
        thread = Thread()
        for record in self._stream(thread_id).read():
            thread.apply(record)
        return thread

    def _append(self, thread_id: str, drafts: Sequence[Draft], expected: int | None = None) -> int:
        """Append at the end, or right behind ``expected``. Return how many records there were before."""
        with self._written.stream(thread_id) as stream:
            now = time.time_ns() // 1000
            version = stream.version if expected is None else expected
            while True:
                numbered = enumerate(drafts, version + 1)
                records = [ThreadRecord(number, type, now, data) for number, (type, data) in numbered]
                try:
                    stream.append(records, version)
                except VersionConflict:
                    if expected is not None:
                        raise
                    version = stream.refresh()
                else:
                    return version

    def _thread_ids(self) -> Sequence[str]:
        return [head.name for head in all_heads(self.store, HeadQuery(KIND, order="id"))]

    # The same for asyncio: a store's calls block, so each runs in a thread.

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (item := await asyncio.to_thread(next, found, None)) is not None:
            yield item

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    def get_next_version(self, current: Any, channel: None) -> str:
        """Return a version after ``current``, unlike any that another branch of the thread makes."""
        count = 0 if current is None else int(str(current).partition(".")[0])
        return f"{count + 1:032}.{token_hex(8)}"


class _Written(OfProcess):
    """The last ``most`` streams that were written here: they know where they end, so that an append need not
    ask. Of the tasks of a step, which write to one stream at once, the store would refuse all but one."""

    def __init__(self, open: Callable[[str], Stream], most: int) -> None:
        self._open = open
        self._most = most
        self.forked()
        self.bind()

    def forked(self) -> None:
        self._known = lru_cache(self._most)(lambda id: (Lock(), self._open(id)))

    @contextmanager
    def stream(self, id: str) -> Iterator[Stream]:
        """A stream to append to, while no other thread here does."""
        lock, stream = self._known(id)
        with lock:
            yield stream


def _newest_first(stream: Stream) -> Iterator[ThreadRecord]:
    """Yield a thread's records. The last one is fetched alone: it is large, and mostly all that is needed."""
    last = stream.last()
    if last is not None:
        yield last
        yield from stream.read(until=last.seq - 1, reverse=True)


def _whole(ns: str, namespace: Namespace, kept: Sequence[Saved]) -> list[Draft]:
    """Rebuild these checkpoints, the newest first, with all values and writes."""
    drafts: list[Draft] = []
    for saved in reversed(kept):
        drafts.append((threads.PUT, threads.put_data(ns, saved, namespace.values_of(saved))))
        by_task: dict[str, list[Write]] = {}
        for write in namespace.writes_of(saved.id):
            by_task.setdefault(write.task_id, []).append(write)
        for writes in by_task.values():
            drafts.append((threads.WRITES, threads.writes_data(ns, saved.id, writes)))
    return drafts


def _thread_id(config: RunnableConfig) -> str:
    """The thread of a config. Frameworks pass other values than text, too."""
    return str(config["configurable"]["thread_id"])


def _place(config: RunnableConfig) -> tuple[str, str]:
    return _thread_id(config), config["configurable"].get("checkpoint_ns", "")


def _config(thread_id: str, ns: str, id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": id}}
