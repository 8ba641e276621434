"""A disk that forgets what it wasn't told to keep: what is on it after a power cut.

`python -m tests.guarantees.power URL DIRECTORY` appends a few times, and puts what the disk would have kept
right after each append into ``DIRECTORY/<version>``.

For SQLite it stands between the library and the system as a VFS whose `xSync` notes what the file is then;
everything else is the system's own.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from harnpy.storage import Store
from harnpy.storage.jsonl.layout import Medium
from harnpy.storage.jsonl.store import JsonlStore
from harnpy.storage.leases import Machine
from harnpy.storage.opening import open_store, parse_url
from tests.storage.notes import NOTES, notes

APPENDS = 6


def name_of(file: int) -> str:
    return os.readlink(f"/proc/self/fd/{file}")


class Disk(Medium):
    """The disk under a directory: files last as they were when they were synced, names when their directory
    was."""

    def __init__(self) -> None:
        self._content: dict[int, bytes] = {}
        self._names: dict[str, int] = {}

    def sync(self, file: int) -> None:
        super().sync(file)
        self._note(name_of(file))

    def sync_data(self, file: int) -> None:
        super().sync_data(file)
        self._note(name_of(file))

    def _note(self, path: str) -> None:
        if not os.path.isdir(path):
            self._content[os.stat(path).st_ino] = Path(path).read_bytes()
            return
        for name in list(self._names):
            if os.path.dirname(name) == path and not os.path.exists(name):
                del self._names[name]
        self._names.update((entry.path, entry.inode()) for entry in os.scandir(path) if entry.is_file())

    def cut(self, root: str, place: str) -> None:
        """Write what is left below ``root`` to ``place``."""
        for name, number in self._names.items():
            kept = Path(place, os.path.relpath(name, root))
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(self._content.get(number, b""))


_POINTER = ctypes.c_void_p
#: The members of ``sqlite3_vfs`` up to ``xOpen``, and of ``sqlite3_io_methods`` up to ``xSync``.
_OPEN = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER, _POINTER, ctypes.c_int, _POINTER)
_SYNC = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, ctypes.c_int)


class Vfs(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_int),
        ("size_of_file", ctypes.c_int),
        ("longest_name", ctypes.c_int),
        ("next", _POINTER),
        ("name", ctypes.c_char_p),
        ("own", _POINTER),
        ("open", _POINTER),
        ("others", _POINTER * 15),
    )


class Methods(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_int),
        ("first", _POINTER * 4),  # close, read, write, truncate
        ("sync", _POINTER),
        ("others", _POINTER * 13),
    )


class File(ctypes.Structure):
    _fields_ = (("methods", ctypes.POINTER(Methods)),)


class SqliteDisk:
    """The disk under SQLite's files, once it is the process's way to them."""

    def __init__(self, place: Path) -> None:
        import _sqlite3

        place.mkdir(parents=True, exist_ok=True)
        self._place = place
        self._library = ctypes.CDLL(_sqlite3.__file__)
        find = self._library.sqlite3_vfs_find
        find.restype, find.argtypes = ctypes.POINTER(Vfs), [ctypes.c_char_p]
        self._real = find(None)
        self._kept: list[Any] = []  # what the library calls, or reads
        self._paths: dict[int, str] = {}
        self._real_open = _OPEN(self._real.contents.open)
        self.syncs = 0
        mine = Vfs.from_buffer_copy(self._real.contents)
        mine.name = b"forgetful"
        opening = _OPEN(self._open)
        mine.open = ctypes.cast(opening, _POINTER)
        self._kept += [mine, opening]
        if self._library.sqlite3_vfs_register(ctypes.byref(mine), 1):
            raise OSError("SQLite takes no other VFS")

    def _open(self, vfs: int, name: int | None, file: int, flags: int, out: int) -> int:
        result = self._real_open(ctypes.addressof(self._real.contents), name, file, flags, out)
        opened = ctypes.cast(file, ctypes.POINTER(File)).contents
        if result == 0 and name is not None and opened.methods:
            self._paths[file] = os.fsdecode(ctypes.string_at(name))
            opened.methods = ctypes.pointer(self._noting(opened.methods.contents))
        return result

    def _noting(self, real: Methods) -> Methods:
        """The methods of a file, with a `sync` that notes what the file is then."""
        mine = Methods.from_buffer_copy(real)
        real_sync = _SYNC(real.sync)

        def sync(file: int, flags: int) -> int:
            result = real_sync(file, flags)
            self.syncs += 1
            path = self._paths[file]
            # By another process: one that closes a file lets go of its own locks on it.
            subprocess.run(["cp", path, str(self._place / os.path.basename(path))], check=True)
            return result

        callback = _SYNC(sync)
        mine.sync = ctypes.cast(callback, _POINTER)
        self._kept += [mine, callback, real_sync]
        return mine

    def cut(self, place: str) -> None:
        shutil.copytree(self._place, place)


def main(url: str, directory: str) -> None:
    parsed = parse_url(url)
    if parsed.scheme == "jsonl":
        disk = Disk()
        store: Store = JsonlStore(parsed, Machine(), disk)
        append(store, lambda version: disk.cut(parsed.target, f"{directory}/{version}"))
    else:
        sqlite = SqliteDisk(Path(directory, "disk"))
        store = open_store(url)
        append(store, lambda version: sqlite.cut(f"{directory}/{version}"))
    store.close()


def append(store: Store, cut: Any) -> None:
    stream = store.stream("session", "s", NOTES)
    for _ in range(APPENDS):
        version = stream.version
        stream.append(notes(version + 1, "a", "b"), version)
        cut(stream.version)


if __name__ == "__main__":
    main(*sys.argv[1:])
