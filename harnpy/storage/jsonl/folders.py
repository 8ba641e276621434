"""The directories of a store, and the system calls that make bytes last.

A folder is held open and its files are opened relative to it, without following links: whatever somebody
puts into a store's directory, nothing outside of it is read or written. Spec: 10 §C6.1, §C12 (Security).
"""

from __future__ import annotations

import errno
import os
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from harnpy.storage.errors import StorageError, StoreFull, StoreUnreachable

if TYPE_CHECKING:
    from collections.abc import Iterator

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC


class Medium:
    """What writes to the disk. Tests have one that fails, or ends the process, where they want it."""

    def write(self, file: int, data: memoryview) -> int:
        """Write a part of ``data``, and return how many bytes."""
        return os.write(file, data)

    def truncate(self, file: int, size: int) -> None:
        os.ftruncate(file, size)

    def sync(self, file: int) -> None:
        os.fsync(file)

    def sync_data(self, file: int) -> None:
        """Like `sync`, without the times of the file."""
        getattr(os, "fdatasync", os.fsync)(file)


def write_all(medium: Medium, file: int, data: bytes) -> None:
    """Write all of ``data``, however little each call takes."""
    left = memoryview(data)
    while left:
        left = left[medium.write(file, left) :]


@contextmanager
def disk_errors(where: str) -> Iterator[None]:
    """Raise what the system reports as a `StorageError` that names ``where``."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _FULL:
            raise StoreFull(where) from error
        if error.errno == errno.ELOOP:
            raise StorageError(f"{where} is, or contains, a symbolic link: stores follow none") from error
        raise StoreUnreachable(where, reason) from error


class Folder:
    """One directory of a store; it is made when something is first written into it."""

    def __init__(self, path: str, parent: Folder | None = None, medium: Medium | None = None) -> None:
        self.path = path
        self.medium: Medium = medium or (parent.medium if parent else Medium())
        self._parent = parent
        self._descriptor: int | None = None
        self._opening = threading.Lock()

    def sub(self, name: str) -> Folder:
        """The folder ``name`` in this one."""
        return Folder(os.path.join(self.path, name), self)

    def where(self, file: str) -> str:
        """The path of a file in it, for people."""
        return os.path.join(self.path, file)

    def open(self, file: str, flags: int = os.O_RDONLY) -> int:
        """Open a file of the folder; `O_CREAT` among ``flags`` creates both."""
        folder = self._open(create=bool(flags & os.O_CREAT))
        return os.open(file, flags | _FILE, 0o666, dir_fd=folder)

    def read(self, file: str) -> bytes | None:
        """The content of a file, None when there is none."""
        try:
            descriptor = self.open(file)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as opened:
            return opened.read()

    def replace(self, file: str, content: bytes, *, lasting: bool = True) -> None:
        """Give a file new content, all of it or none. ``lasting``: it outlives a power cut, too."""
        temporary = f"{file}.{os.getpid()}-{threading.get_ident()}.tmp"
        descriptor = self.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            write_all(self.medium, descriptor, content)
            if lasting:
                self.medium.sync(descriptor)
            self.rename(temporary, file)
        except BaseException:
            self.remove(temporary)
            raise
        finally:
            os.close(descriptor)
        if lasting:
            self.sync()

    def overwrite(self, file: str, content: bytes) -> None:
        """Write over the beginning of a file; what is behind it stays."""
        descriptor = self.open(file, os.O_WRONLY | os.O_CREAT)
        try:
            write_all(self.medium, descriptor, content)
        finally:
            os.close(descriptor)

    def rename(self, file: str, name: str) -> None:
        """Give a file another name, in the place of the file that has it."""
        folder = self._open()
        os.rename(file, name, src_dir_fd=folder, dst_dir_fd=folder)

    def remove(self, file: str) -> bool:
        """Remove a file. Return False when there was none."""
        try:
            os.unlink(file, dir_fd=self._open())
        except FileNotFoundError:
            return False
        return True

    def stat(self, file: str) -> os.stat_result | None:
        """What the system knows of a file, None when there is none."""
        try:
            return os.stat(file, dir_fd=self._open(), follow_symlinks=False)
        except FileNotFoundError:
            return None

    def files(self, suffix: str = "") -> list[str]:
        """The names of its files with that suffix, without it, sorted."""
        try:
            names = os.listdir(self._open())
        except FileNotFoundError:
            return []
        return sorted(name[: len(name) - len(suffix)] for name in names if name.endswith(suffix))

    def folders(self) -> list[str]:
        """The names of the folders in it, sorted."""
        try:
            with os.scandir(self._open()) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return []

    def sync(self) -> None:
        """Have the names of its files outlive a power cut."""
        self.medium.sync(self._open())

    def make(self) -> None:
        """Create the folder, if it isn't there."""
        self._open(create=True)

    def close(self) -> None:
        with self._opening:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _open(self, *, create: bool = False) -> int:
        with self._opening:
            if self._descriptor is None:
                self._descriptor = self._opened(create)
            return self._descriptor

    def _opened(self, create: bool) -> int:
        if self._parent is None:
            if create:
                os.makedirs(self.path, exist_ok=True)
            return os.open(self.path, _DIRECTORY)
        parent, name = self._parent._open(create=create), os.path.basename(self.path)
        if create:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=parent)
                self.medium.sync(parent)
        return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
