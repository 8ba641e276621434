"""Locks between processes: files of their own, locked with ``flock`` and never deleted.

The log itself is never locked: it is replaced when records are dropped, and a lock on a replaced file
holds nobody off. Spec: 10 §C6.1, §C14.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harnpy.storage.errors import StoreBusy, StoreUnreachable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.storage.jsonl.folders import Folder

#: Seconds between two tries, at first and at most.
_SHORTEST, _LONGEST = 0.0005, 0.01


@contextmanager
def locked(folder: Folder, name: str, timeout: float, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock ``<name>.lock``. Raises `StoreBusy` when it isn't free within ``timeout`` seconds.

    Each call opens the file anew, so that threads, and processes forked from one another, keep each other
    out as strangers do.
    """
    file = folder.open(f"{name}.lock", os.O_RDWR | os.O_CREAT)
    try:
        _take(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, timeout, folder.where(name))
        yield
    finally:
        os.close(file)


def _take(file: int, how: int, timeout: float, where: str) -> None:
    pause = _SHORTEST
    gives_up = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR):
                reason = f"its file system has no locks ({error.strerror}): keep stores on a local disk"
                raise StoreUnreachable(where, reason) from error
        else:
            return
        if time.monotonic() >= gives_up:
            raise StoreBusy(where, timeout)
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST)
