"""A new text for a file, in one step. Spec: 09 §4.2–4.3."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from contextlib import suppress


def replace_text(path: str, text: str) -> None:
    """Give a file another text; whoever reads it sees the old one or the new one, also after a crash.

    Its mode and, where that is allowed, its owner stay; a link goes on pointing to it. Raises OSError for a
    file that can't be written, which is also one that nobody may write to, whoever asks.
    """
    target = os.path.realpath(path)
    before = os.stat(target)
    if not before.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    handle, partial = tempfile.mkstemp(prefix=".harnpy-", dir=os.path.dirname(target))
    try:
        with open(handle, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(partial, stat.S_IMODE(before.st_mode))
        with suppress(PermissionError):
            os.chown(partial, before.st_uid, before.st_gid)
        os.replace(partial, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(partial)
        raise
