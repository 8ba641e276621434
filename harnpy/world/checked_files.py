"""Files behind a check, which is given what is to be done and what a path really leads to.

An effect is ``read``, ``write``, ``delete``, or ``list``, which any look at what is there is. What the check
refuses, by raising, isn't done: nothing is made, emptied, opened or looked at before. On the real disk, what
is used is what was checked, even if somebody puts links in its way meanwhile. Links are listed as what they
are, not as what they lead to.
"""

from __future__ import annotations

import errno
import os
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from harnpy.world.effects import DELETE, LIST, READ, WRITE
from harnpy.world.files import USUAL, RealFiles, private_files

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
    from types import TracebackType

    from harnpy.world.effects import Guard
    from harnpy.world.files import Entry, Files

    #: ``check(effect, path, named)`` raises unless the effect is allowed. Both paths are absolute; ``path``
    #: is free of links, and ``named`` led to it.
    Check = Callable[[str, str, str], None]
    Answer = TypeVar("Answer")

# What a path leads to: a name in a directory that is open.
#
# The directories on the way are opened one in the other, and links are followed here, not by the system. So a
# link that somebody puts in the place of a directory or a file leads nowhere, whenever that is done.


#: To go through a directory takes another right than to list it. Not every system can open one just for that.
_ON_THE_WAY = os.O_DIRECTORY | os.O_NOFOLLOW | getattr(os, "O_PATH", os.O_RDONLY)
_TO_LIST = os.O_DIRECTORY | os.O_RDONLY

#: What systems say of a link where a directory must be.
_OF_LINKS = (errno.ENOTDIR, errno.ELOOP)

#: The bytes of a path, as in the system; and the names and links that one may lead through.
_MOST = 4096


class NamesIn(RealFiles):
    """The entries of an open directory, by name. Links are not followed.

    ``where`` is its path; ``tidied`` is shared by all that have directories tidied.
    """

    def __init__(
        self,
        directory: int,
        where: str = "",
        tidied: set[tuple[str, str]] | None = None,
        look: Callable[[], object] | None = None,
        modes: tuple[int, int] = USUAL,
    ) -> None:
        super().__init__(look)
        self.modes = modes
        self._directory = self._within = directory
        self._where = where
        self._tidied = set() if tidied is None else tidied

    def _open(self, path: str, flags: int) -> int:
        return os.open(path, flags | os.O_NOFOLLOW, self.modes[0], dir_fd=self._directory)

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
            os.mkdir(path, self.modes[1], dir_fd=self._directory)
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


class ResolvedPath:
    """The place that an absolute path leads to: ``name`` is what it is called in the open ``directory``.

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

    def __enter__(self) -> ResolvedPath:
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

    def make_directories(self, modes: tuple[int, int]) -> None:
        """Make the directories that are missing on the way."""
        if ".." in self._left or not isinstance(self.failure, FileNotFoundError | None):
            self.refuse_failure()
        while len(self._left) > 1:
            NamesIn(self.directory, modes=modes).make_directory(self.name)
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


def checked_files(files: Files, check: Check, look: Callable[[], object] | None = None) -> Files:
    """Return ``files`` behind a check; ``look`` is `RealFiles`'s."""
    return CheckedFiles(check, look, files.modes) if type(files) is RealFiles else AskedFiles(files, check)


class _Checked:
    """The part that both ways to check have in common, see `Files`.

    Inside ``_at(path, effect, follow, make)``, which is a pair of files and a name in them, the effect is
    allowed on what ``path`` leads to. To ``follow`` means a link that is its last name, to ``make`` the
    directories on the way.
    """

    def __init__(self, files: Files, check: Check) -> None:
        self._files = files
        self._check = check

    def cwd(self) -> str:
        return self._files.cwd()

    def read_bytes(self, path: str, most: int | None = None) -> bytes:
        with self._at(path, READ) as (files, name):
            return files.read_bytes(name, most)

    def reader(self, path: str) -> BinaryIO:
        with self._at(path, READ) as (files, name):
            return files.reader(name)

    def read_text(self, path: str, errors: str = "strict") -> str:
        with self._at(path, READ) as (files, name):
            return files.read_text(name, errors)

    def write_bytes(self, path: str, data: bytes, append: bool = False, durable: bool = False) -> None:
        with self._at(path, WRITE) as (files, name):
            files.write_bytes(name, data, append, durable)

    def write_text(self, path: str, text: str, append: bool = False, durable: bool = False) -> None:
        with self._at(path, WRITE, make=True) as (files, name):
            files.write_text(name, text, append, durable)

    def replace_text(self, path: str, text: str, durable: bool = True, mark: str = ".partial") -> None:
        with self._at(path, WRITE, follow=False, make=True) as (files, name):
            files.replace_text(name, text, durable, mark)

    async def pour(self, path: str, pieces: AsyncGenerator[bytes, None]) -> int:
        with self._at(path, WRITE, follow=False) as (files, name):
            return await files.pour(name, pieces)

    def remove(self, path: str) -> None:
        with self._at(path, DELETE, follow=False) as (files, name):
            files.remove(name)

    def make_directory(self, path: str) -> None:
        with self._at(path, WRITE, make=True) as (files, name):
            files.make_directory(name)

    def list_dir(self, path: str) -> list[str]:
        with self._at(path, LIST) as (files, name):
            return files.list_dir(name)

    def entries(self, path: str) -> list[Entry]:
        with self._at(path, LIST) as (files, name):
            return files.entries(name)

    def status(self, path: str) -> os.stat_result:
        with self._at(path, LIST) as (files, name):
            return files.status(name)

    def files_under(self, directory: str) -> list[str]:
        found: list[str] = []
        left = [""]
        while left:
            below = left.pop()
            try:
                names = self.list_dir(os.path.join(directory, below))
            except OSError:
                continue  # like a directory that can't be listed in the system's own walk
            for name in names:
                (left if name.endswith("/") else found).append(below + name)
        return found

    def modified(self, path: str) -> int | None:
        return self._look(path, lambda files, name: files.modified(name), None)

    def exists(self, path: str) -> bool:
        return self._look(path, lambda files, name: files.exists(name), False)

    def is_dir(self, path: str) -> bool:
        return self._look(path, lambda files, name: files.is_dir(name), False)

    def is_file(self, path: str) -> bool:
        return self._look(path, lambda files, name: files.is_file(name), False)

    def try_lock(self, path: str) -> Callable[[], object] | None:
        with self._at(path, WRITE) as (files, name):
            return files.try_lock(name)

    def _look(self, path: str, ask: Callable[[Files, str], Answer], otherwise: Answer) -> Answer:
        try:
            with self._at(path, LIST) as (files, name):
                return ask(files, name)
        except OSError:
            return otherwise

    def _at(
        self, path: str, effect: str, *, follow: bool = True, make: bool = False
    ) -> AbstractContextManager[tuple[Files, str]]:
        raise NotImplementedError


class CheckedFiles(_Checked):
    """The real files behind a check."""

    def __init__(
        self, check: Check, look: Callable[[], object] | None = None, modes: tuple[int, int] = USUAL
    ) -> None:
        super().__init__(RealFiles(), check)
        self._watch = look
        self._modes = modes
        self._tidied: set[tuple[str, str]] = set()

    def rename(self, path: str, new: str) -> None:
        with (
            self._at(path, DELETE, follow=False) as (files, name),
            self._at(new, WRITE, follow=False) as (others, other),
        ):
            files.move(name, others, other)

    def copy(self, path: str, new: str) -> None:
        with self._at(path, READ) as (files, name), self._at(new, WRITE) as (others, other):
            files.copy_to(name, others, other)

    def delete_file(self, path: str, root: str) -> None:
        try:
            with self._at(path, DELETE, follow=False) as (files, name):
                files.delete_file(name)
        except FileNotFoundError:
            return
        directory = os.path.dirname(path)
        while directory != root and self._delete_empty(directory):
            directory = os.path.dirname(directory)

    def _delete_empty(self, directory: str) -> bool:
        """Delete a directory if it is empty. Return whether it was."""
        try:
            with self._at(directory, DELETE, follow=False) as (files, name):
                files.delete_directory(name)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return False
        return True

    def real_path(self, path: str) -> str:
        named = self._absolute(path)
        with ResolvedPath(named) as place:
            self._check(LIST, place.path, named)
            return place.path

    @contextmanager
    def _at(
        self, path: str, effect: str, *, follow: bool = True, make: bool = False
    ) -> Iterator[tuple[NamesIn, str]]:
        try:
            named = self._absolute(path)
            with ResolvedPath(named, follow) as place:
                real = place.path
                self._check(effect, real, named)
                if make:
                    place.make_directories(self._modes)
                place.refuse_failure()
                where = os.path.dirname(real)
                yield NamesIn(place.directory, where, self._tidied, self._watch, self._modes), place.name
        except OSError as error:
            error.filename = path
            raise

    def _absolute(self, path: str) -> str:
        return os.path.join(self.cwd(), path) if path else path


class AskedFiles(_Checked):
    """Any files behind a check: what a path leads to is asked first, and used by that path."""

    def rename(self, path: str, new: str) -> None:
        with (
            self._at(path, DELETE, follow=False) as (files, name),
            self._at(new, WRITE, follow=False) as (_, other),
        ):
            files.rename(name, other)

    def copy(self, path: str, new: str) -> None:
        with self._at(path, READ) as (files, name), self._at(new, WRITE) as (_, other):
            files.copy(name, other)

    def delete_file(self, path: str, root: str) -> None:
        with self._at(path, DELETE, follow=False) as (files, name):
            files.delete_file(name, self._files.real_path(root))

    def real_path(self, path: str) -> str:
        with self._at(path, LIST) as (_, name):
            return name

    @contextmanager
    def _at(
        self, path: str, effect: str, *, follow: bool = True, make: bool = False
    ) -> Iterator[tuple[Files, str]]:
        names_of(path)
        directory, name = os.path.split(path)
        if follow or name in ("", ".", ".."):
            real = self._files.real_path(path)
        else:
            real = os.path.join(self._files.real_path(directory or "."), name)
        self._check(effect, real, os.path.join(self.cwd(), path))
        yield self._files, real


# Files behind a guard: the plain ones while nothing restricts anybody, else checked ones.


class GuardedFiles:
    """``files`` under the rules of each moment."""

    def __init__(self, files: Files, guard: Guard) -> None:
        self._files = files
        self._plain = files.looking(guard.look) if type(files) is RealFiles else files
        self._guard = guard
        self._checked = checked_files(files, self._check, guard.look)

    def private(self) -> Files:
        return guarded_files(private_files(self._files), self._guard)

    def _check(self, effect: str, path: str, named: str) -> None:
        self._guard.require(effect, path)
        self._guard.require_place(effect, path, named)

    if not TYPE_CHECKING:  # it has what `Files` has

        def __getattr__(self, name: str) -> object:
            return getattr(self._checked if self._guard.in_force() else self._plain, name)


def guarded_files(files: Files, guard: Guard) -> Files:
    guarded: Files = GuardedFiles(files, guard)  # type: ignore[assignment]
    return guarded
