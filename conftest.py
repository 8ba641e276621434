"""Lets pytest collect the conformance programs, wherever it is pointed at; what tests write is in memory."""

from __future__ import annotations

import os
import tempfile
from atexit import register
from shutil import disk_usage, rmtree

pytest_plugins = ["tests.conformance_plugin"]

_MEMORY = "/dev/shm"
_ROOM = 4 << 30


def _in_memory() -> None:
    """Have temporary files, and the cache of programs, in memory where it has room for them.

    A test that writes waits for the disk several times as long as for anything else. ``TMPDIR`` and
    ``XDG_CACHE_HOME`` choose other places; the processes of xdist take over those of the first.
    """
    if "TMPDIR" in os.environ or not os.access(_MEMORY, os.W_OK):
        return
    if disk_usage(_MEMORY).free < _ROOM or os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC:
        return
    place = tempfile.mkdtemp(prefix="harnpy-tests-", dir=_MEMORY)
    register(rmtree, place, ignore_errors=True)
    os.environ["TMPDIR"] = tempfile.tempdir = place
    os.environ.setdefault("XDG_CACHE_HOME", os.path.join(place, "cache"))


_in_memory()
