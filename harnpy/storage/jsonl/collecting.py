"""Dropping for good what was deleted, and what is left over. Spec: 10 §C6, §C21."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from harnpy.storage.contract import DELETED, GcReport
from harnpy.storage.jsonl.log import SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.storage.jsonl.directory import Directory
    from harnpy.storage.jsonl.folders import Folder
#: Seconds after which a temporary file belongs to nobody.
_ABANDONED = 3600.0


def gc(directory: Directory, older_than: float | None, *, dry_run: bool) -> GcReport:
    """Drop deleted streams, stems that no branch reads, bytes that repairs have kept, and dead leases."""
    before = time.time() - (older_than or 0.0)
    streams = [name for kind in directory.logs.kinds() for name in _deleted(directory, kind, before, dry_run)]
    stems = _stems(directory, dry_run)
    leftovers = [*_old(directory.torn, before, dry_run), *directory.leases.drop_dead(dry_run=dry_run)]
    return GcReport(streams, stems, leftovers)


def _deleted(directory: Directory, kind: str, before: float, dry_run: bool) -> Iterator[str]:
    """Drop the streams of a kind whose status says that they are deleted."""
    for head in directory.heads(kind)[0]:
        if head.data.get("status") == DELETED and head.updated <= before * 1e6:
            yield head.name
            if not dry_run:
                directory.delete(kind, directory.logs.log(kind, head.name))


def _stems(directory: Directory, dry_run: bool) -> int:
    """Drop the stems that no branch reads; then those that only dropped ones read."""
    dropped = 0
    while idle := [uid for uid in directory.logs.stems.files(SUFFIX) if _idle(directory, uid)]:
        dropped += len(idle)
        if dry_run:
            break
        for uid in idle:
            directory.logs.stem(uid).remove()
    return dropped


def _idle(directory: Directory, uid: str) -> bool:
    return not any(directory.logs.shared(kind, uid) for kind in directory.logs.kinds())


def _old(folder: Folder, before: float, dry_run: bool) -> Iterator[str]:
    """Remove the files of a folder that haven't changed since."""
    for file in folder.files():
        stat = folder.stat(file)
        if stat is not None and stat.st_mtime <= before:
            yield file
            if not dry_run:
                folder.remove(file)
