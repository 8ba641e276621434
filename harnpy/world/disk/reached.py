"""What a path leads to: a name in a directory that is open.

The directories on the way are opened one in the other, and links are followed here, not by the system. So a
link that somebody puts in the place of a directory or a file leads nowhere, whenever that is done.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from harnpy.world.files import RealFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

#: To go through a directory takes another right than to list it. Not every system can open one just for that.
_ON_THE_WAY = os.O_DIRECTORY | os.O_NOFOLLOW | getattr(os, "O_PATH", os.O_RDONLY)
_TO_LIST = os.O_DIRECTORY | os.O_RDONLY

#: What systems say of a link where a directory must be.
_OF_LINKS = (errno.ENOTDIR, errno.ELOOP)

#: The bytes of a path, as in the system; and the names and links that one may lead through.
_MOST = 4096


class NamesIn(RealFiles):
    """What is in an open directory, by name. Links are not followed.

    ``where`` is its path; ``tidied`` is shared by all that have directories tidied.
    """

    def __init__(
        self,
        directory: int,
        where: str = "",
        tidied: set[tuple[str, str]] | None = None,
        look: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(look)
        self._directory = self._within = directory
        self._where = where
        self._tidied = set() if tidied is None else tidied

    def _open(self, path: str, flags: int) -> int:
        return os.open(path, flags | os.O_NOFOLLOW, 0o666, dir_fd=self._directory)

    def _status(self, path: str) -> os.stat_result:
        return os.stat(path, dir_fd=self._directory, follow_symlinks=False)

    def rename(self, path: str, new: str) -> None:
        self.move(path, self, new)

    def move(self, path: str, other: NamesIn, new: str) -> None:
        """Move what is in this directory to another one."""
        os.replace(path, new, src_dir_fd=self._directory, dst_dir_fd=other._directory)

    def delete_file(self, path: str, root: str = "") -> None:
        with suppress(FileNotFoundError):
            os.remove(path, dir_fd=self._directory)

    def delete_directory(self, path: str) -> None:
        os.rmdir(path, dir_fd=self._directory)

    def make_directory(self, path: str) -> None:
        try:
            os.mkdir(path, dir_fd=self._directory)
        except FileExistsError:
            if not self.is_dir(path):
                raise

    @contextmanager
    def _scan(self, path: str) -> Iterator[Iterable[os.DirEntry[str]]]:
        directory = self._open(path, _TO_LIST)
        try:
            with os.scandir(directory) as entries:
                yield entries
        finally:
            os.close(directory)

    def _is_directory(self, entry: os.DirEntry[str]) -> bool:
        return entry.is_dir(follow_symlinks=False)


class Reached:
    """Where an absolute path leads: ``name`` is what it is called in the open ``directory``.

    A last name that is a link is ``name`` itself unless it is to be followed. Where the way ends before,
    because a directory is missing or can't be entered, there is a ``failure``. Raises OSError for what is no
    path at all.
    """

    def __init__(self, path: str, follow: bool = True) -> None:
        self.failure: OSError | None = None
        self._left = names_of(path)
        self._passed: list[str] = []
        self.directory = os.open("/", _ON_THE_WAY)
        try:
            self._walk(follow)
        except BaseException:
            os.close(self.directory)
            raise

    def __enter__(self) -> Reached:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.directory)

    @property
    def path(self) -> str:
        """The one path of it, without links; where there is a failure, what it would be."""
        return os.path.normpath("/" + "/".join(self._passed + self._left[::-1]))

    @property
    def name(self) -> str:
        return self._left[-1]

    def make_directories(self) -> None:
        """Make the directories that are missing on the way."""
        if ".." in self._left or not isinstance(self.failure, FileNotFoundError | None):
            self.refuse_failure()
        while len(self._left) > 1:
            NamesIn(self.directory).make_directory(self.name)
            self._pass(self.name)
        self.failure = None

    def refuse_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _walk(self, follow: bool) -> None:
        for _ in range(_MOST):
            if not self._left:
                self._left.append(".")
            try:
                if not self._step(follow):
                    return
            except OSError as failure:
                self.failure = failure
                return
        raise _failure(errno.ELOOP)

    def _step(self, follow: bool) -> bool:
        """Follow the next name. Return whether the way goes on."""
        name, last = self.name, len(self._left) == 1
        if name == "..":
            # What is above the open directory may be another by now: it may have been moved.
            self._from_root(self._passed[:-1])
            return True
        if not last and self._passes(name):
            return True
        target = self._link(name) if follow or not last else None
        if target is not None:
            self._left[-1:] = names_of(target)
            if target.startswith("/"):
                self._passed = []
                self._open("/")
        elif last:
            return False
        else:  # no directory, or one that was a link a moment ago
            raise _failure(errno.ENOTDIR)
        return True

    def _passes(self, name: str) -> bool:
        """Go on in the directory ``name``. Return False if it is none: it may be a link."""
        try:
            self._pass(name)
        except OSError as failure:
            if failure.errno in _OF_LINKS:
                return False
            raise
        return True

    def _from_root(self, names: list[str]) -> None:
        self._left[-1:] = reversed(names)
        self._passed = []
        self._open("/")

    def _link(self, name: str) -> str | None:
        try:
            return os.readlink(name, dir_fd=self.directory)
        except OSError:
            return None

    def _pass(self, name: str) -> None:
        self._open(name)
        self._passed.append(name)
        self._left.pop()

    def _open(self, name: str) -> None:
        below = os.open(name, _ON_THE_WAY, dir_fd=self.directory)
        os.close(self.directory)
        self.directory = below


def names_of(path: str) -> list[str]:
    """Return the names in a path, the last one first; it is ``.`` if the path can only be a directory's.

    Raises OSError for what is no path.
    """
    if not path:
        raise _failure(errno.ENOENT)
    if "\0" in path:
        raise _failure(errno.EINVAL)
    try:
        length = len(os.fsencode(path))
    except UnicodeEncodeError:
        raise _failure(errno.EILSEQ) from None
    if length >= _MOST:
        raise _failure(errno.ENAMETOOLONG)
    names = [name for name in reversed(path.split("/")) if name not in ("", ".")]
    return names if path.rpartition("/")[2] not in ("", ".") else [".", *names]


def _failure(code: int) -> OSError:
    return OSError(code, os.strerror(code))
