"""The store: streams as files of one directory, for the processes of one machine. Spec: 10 §C6.1."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from harnpy.storage.errors import StreamExists, Unsupported
from harnpy.storage.jsonl import checks, collecting
from harnpy.storage.jsonl.directory import Directory
from harnpy.storage.jsonl.lines import Facts, Origin
from harnpy.storage.jsonl.searching import search
from harnpy.storage.jsonl.stream import JsonlStream
from harnpy.storage.jsonl.writing import new_uid
from harnpy.storage.paging import page

if TYPE_CHECKING:
    from harnpy.storage.contract import (
        Codec,
        FsckReport,
        GcReport,
        Head,
        HeadQuery,
        Hit,
        Page,
        Record,
        Stream,
    )
    from harnpy.storage.jsonl.folders import Medium
    from harnpy.storage.leases import Check, Lease
    from harnpy.storage.machine import Machine
    from harnpy.storage.opening import StoreUrl

#: Seconds between two looks for changes.
_PAUSE = 0.02


def open_jsonl(url: StoreUrl, machine: Machine) -> JsonlStore:
    """Open the directory that ``url`` names, and make a store of it when it is none."""
    return JsonlStore(url, machine)


class JsonlStore:
    """A `Store` of `JsonlStream`s. ``medium`` is for tests."""

    features = frozenset({"search"})

    def __init__(self, url: StoreUrl, machine: Machine, medium: Medium | None = None) -> None:
        self.url = str(url)
        self.strict_ids = url.strict_ids
        self.directory = Directory(url, machine, medium)

    def stream(self, kind: str, name: str, codec: Codec) -> JsonlStream:
        self.directory.check_open()
        return JsonlStream(self.directory, kind, name, codec)

    def branch(
        self,
        source: Stream,
        name: str,
        first: Record,
        *,
        codec: Codec | None = None,
        until: int | None = None,
        head: dict[str, Any] | None = None,
    ) -> JsonlStream:
        directory = self.directory
        directory.check_open()
        assert isinstance(source, JsonlStream), "a branch lives in its source's store"
        codec = codec or source.codec
        (row,) = codec.encode((first,))
        log = directory.logs.log(source.kind, name)
        if log.state().version:
            raise StreamExists(name)
        # The source can't be deleted meanwhile: who deletes it must see its branches.
        with directory.writer.locked(source.log), directory.writer.locked(log):
            if log.state().version:
                raise StreamExists(name)
            state = source.log.state()
            at = max(1, state.version if until is None else min(until, state.version))
            origin = Origin(source.name, at, state.uid)
            facts = Facts(name=name, uid=new_uid(), branch=origin, version=at, head=head or {})
            directory.writer.begin(log, row._replace(more=0), facts)
        return JsonlStream(directory, source.kind, name, codec)

    def head(self, kind: str, name: str) -> Head | None:
        self.directory.check_open()
        state = self.directory.logs.log(kind, name).state()
        return self.directory.head(kind, state) if state.version else None

    def heads(self, query: HeadQuery) -> Page:
        self.directory.check_open()
        found, errors = self.directory.heads(query.kind)
        return page(found, query, errors)

    def delete(self, kind: str, name: str) -> bool:
        self.directory.check_open()
        return self.directory.delete(kind, self.directory.logs.log(kind, name))

    def search(
        self,
        query: str,
        kind: str = "session",
        *,
        codec: Codec,
        name: str | None = None,
        types: frozenset[str] | None = None,
        limit: int = 50,
        raw: bool = False,
    ) -> list[Hit]:
        self.directory.check_open()
        if raw:
            raise Unsupported("`raw` searches exist on SQLite only")
        return search(self.directory, query, kind, codec, name, types, limit)

    def lease(
        self,
        key: str,
        owner: str | None = None,
        ttl: float = 30.0,
        *,
        wait: float = 0.0,
        check: Check | None = None,
    ) -> Lease:
        self.directory.check_open()
        return self.directory.leases.take(key, owner, ttl, wait, check)

    def changes(self, kind: str, name: str, after: int, timeout: float) -> int:
        log = self.directory.logs.log(kind, name)
        gives_up = time.monotonic() + timeout
        while True:
            self.directory.check_open()
            version = log.state().version
            left = gives_up - time.monotonic()
            if version > after or left <= 0:
                return version
            time.sleep(min(left, _PAUSE))

    def fsck(self, *, repair: bool = False) -> FsckReport:
        self.directory.check_open()
        return checks.fsck(self.directory, repair=repair)

    def gc(self, *, older_than: float | None = None, dry_run: bool = False) -> GcReport:
        self.directory.check_open()
        return collecting.gc(self.directory, older_than, dry_run=dry_run)

    def flush(self) -> None:
        self.directory.check_open()  # no append returns before it is written

    def close(self) -> None:
        self.directory.close()
