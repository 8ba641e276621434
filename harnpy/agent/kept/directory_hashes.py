"""Fingerprints of directories: what is directly in one, as one number. Spec: 02 §29."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harnpy.world.files import Files

_BASIS, _PRIME = 0xCBF29CE484222325, 0x100000001B3


def structure_hash(files: Files, directory: str) -> str:
    """Return the hash of the names and sizes in a directory; of a missing one it is that of an empty one."""
    return _hash(files, directory, with_times=False)


def content_hash(files: Files, directory: str) -> str:
    """Return the hash of the names, sizes and times of change, in seconds."""
    return _hash(files, directory, with_times=True)


def _hash(files: Files, directory: str, with_times: bool) -> str:
    try:
        names = [entry.name for entry in files.entries(directory)]
    except OSError:
        names = []
    lines = []
    for name in names:
        try:
            status = files.status(os.path.join(directory, name))
        except OSError:
            continue  # a link that leads nowhere, or what is gone by now
        time = f":{int(status.st_mtime)}" if with_times else ""
        lines.append(f"{name}:{status.st_size}{time}")
    return _fnv("|".join(sorted(lines)))


def _fnv(text: str) -> str:
    """FNV-1a with 64 bits."""
    value = _BASIS
    for byte in text.encode("utf-8", "surrogateescape"):
        value = (value ^ byte) * _PRIME & 0xFFFFFFFFFFFFFFFF
    return f"{value:x}"
