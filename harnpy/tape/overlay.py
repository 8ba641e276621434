"""A layer over files: what is written goes there, and what is under it stays as it is. Spec: 13 §5.2."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from copy import copy
from shutil import copy2, rmtree
from stat import S_IMODE, S_ISDIR, S_ISREG
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Final

from harnpy.tape.directory import look
from harnpy.tape.tapes import TapeError
from harnpy.world.files import RealFiles, private_files, system_reason

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator
    from typing import BinaryIO

    from harnpy.tape.directory import Changed, Tree
    from harnpy.world.files import Entry, Files

#: In a directory of kept files: the list of those that were deleted, and where those are that are outside of
#: the run's directory.
DELETED: Final = ".deleted"
OUTSIDE: Final = ".outside"


class Overlay:
    """``under``, and over it what is written: in a directory of its own, in which each file has its whole
    path. It is read first; what is deleted is hidden.

    Close it: the directory goes with it.
    """

    def __init__(self, under: Files) -> None:
        self._under = under
        self._upper: Any = RealFiles()
        #: Where the layer is on the disk.
        self.directory = mkdtemp(prefix="harnpy-branch-")
        self._hidden: set[str] = set()
        self._deleted: set[str] = set()
        #: Files in the layer that the program didn't put there.
        self._given: set[str] = set()
        self._locked: set[str] = set()
        #: What has changed since somebody who has a copy looked last.
        self.news: set[str] = set()

    def close(self) -> None:
        """Drop the layer."""
        rmtree(self.directory, ignore_errors=True)

    def private(self) -> Overlay:
        files = copy(self)
        files._upper = private_files(self._upper)
        return files

    def cwd(self) -> str:
        return self._under.cwd()

    # --- what is there before the program begins ----------------------------------------------------

    def hide(self, path: str) -> None:
        """Let nothing be at an absolute path."""
        self._hidden.add(path)

    def give(self, path: str, data: bytes) -> None:
        """Let a file be at an absolute path that the program finds there."""
        above = self._above(path)
        self._upper.make_directory(os.path.dirname(above))
        self._upper.write_bytes(above, data)
        self._given.add(path)

    # --- places -------------------------------------------------------------------------------------

    def key(self, path: str, follow: bool = True) -> str:
        """Return the one absolute path of what ``path`` leads to; a last name that is a link is the link
        itself unless it is to be followed."""
        place = os.path.join(self.cwd(), path)
        directory, name = os.path.split(place)
        if name in ("", os.curdir, os.pardir):
            return self._under.real_path(place)
        named = os.path.join(self._under.real_path(directory), name)
        if not follow or os.path.lexists(self._above(named)) or self.is_hidden(named):
            return named
        return self._under.real_path(named)

    def place(self, path: str) -> str | None:
        """Return where on the disk the bytes of what is at ``path`` are; None if nothing is there."""
        key = self.key(path)
        above = self._above(key)
        if os.path.lexists(above):
            return above
        return key if not self.is_hidden(key) and self._under.exists(key) else None

    def is_hidden(self, key: str) -> bool:
        """Return whether what is under the layer at that place isn't seen."""
        if self._hidden:
            while key not in self._hidden:
                above = os.path.dirname(key)
                if above == key:
                    return False
                key = above
            return True
        return False

    def _above(self, key: str) -> str:
        return self.directory + key

    def _found(self, path: str) -> tuple[Files, str]:
        """Return the files, and the path in them, of what is at ``path``. Raises FileNotFoundError."""
        key = self.key(path)
        above = self._above(key)
        if os.path.lexists(above):
            return self._upper, above
        if self.is_hidden(key) or not self._is_in_directory(key):
            raise self._missing(key, path)
        return self._under, key

    def _is_in_directory(self, key: str) -> bool:
        """Return whether what is above a place is no file in the layer."""
        above = os.path.dirname(self._above(key))
        while len(above) > len(self.directory) and not os.path.lexists(above):
            above = os.path.dirname(above)
        return os.path.isdir(above)

    def _missing(self, key: str, path: str) -> OSError:
        """Return the error of a path where nothing is."""
        nearest = os.path.dirname(key)
        while (status := self._status(nearest)) is None:
            nearest = os.path.dirname(nearest)
        return _failure(errno.ENOENT if S_ISDIR(status.st_mode) else errno.ENOTDIR, path)

    # --- reading ------------------------------------------------------------------------------------

    def read_bytes(self, path: str, most: int | None = None) -> bytes:
        files, place = self._found(path)
        with _of(path):
            return files.read_bytes(place, most)

    def reader(self, path: str) -> BinaryIO:
        files, place = self._found(path)
        with _of(path):
            return files.reader(place)

    def read_text(self, path: str, errors: str = "strict") -> str:
        files, place = self._found(path)
        with _of(path):
            return files.read_text(place, errors)

    def status(self, path: str) -> os.stat_result:
        files, place = self._found(path)
        with _of(path):
            return files.status(place)

    def modified(self, path: str) -> int | None:
        status = self._status(path)
        return None if status is None else status.st_mtime_ns

    def exists(self, path: str) -> bool:
        return self._status(path) is not None

    def is_dir(self, path: str) -> bool:
        status = self._status(path)
        return status is not None and S_ISDIR(status.st_mode)

    def is_file(self, path: str) -> bool:
        status = self._status(path)
        return status is not None and S_ISREG(status.st_mode)

    def _status(self, path: str) -> os.stat_result | None:
        try:
            return self.status(path)
        except (OSError, ValueError):
            return None

    def real_path(self, path: str) -> str:
        return self.key(path)

    def list_dir(self, path: str) -> list[str]:
        names = self._listed(path, lambda files, place: files.list_dir(place), lambda name: name.rstrip("/"))
        return sorted(names)

    def entries(self, path: str) -> list[Entry]:
        found = self._listed(path, lambda files, place: files.entries(place), lambda entry: entry.name)
        return sorted(found, key=lambda entry: entry.name)

    def _listed(
        self, path: str, look: Callable[[Files, str], list[Any]], name: Callable[[Any], str]
    ) -> list[Any]:
        """Return what ``look`` finds in a directory, in the layer and under it."""
        self.status(path)  # which raises where nothing is
        key, found = self.key(path), {}
        above = self._above(key)
        with _of(path):
            has_above = os.path.lexists(above)
            if not self.is_hidden(key) and (self._under.is_dir(key) or not has_above):
                for each in look(self._under, key):
                    if not self.is_hidden(os.path.join(key, name(each))):
                        found[name(each)] = each
            if has_above:
                found |= {name(each): each for each in look(self._upper, above)}
        return list(found.values())

    def files_under(self, directory: str) -> list[str]:
        key = self.key(directory)
        found = set(self._upper.files_under(self._above(key)))
        if not self.is_hidden(key):
            found |= {
                each for each in self._under.files_under(key) if not self.is_hidden(os.path.join(key, each))
            }
        return list(found)

    def tree(self, directory: str) -> Tree:
        """Return what is in a directory and below it, as `look` does."""
        key = self.key(directory)
        under = {} if self.is_hidden(key) else look(key)
        seen = {
            path: mark
            for path, mark in under.items()
            if not self.is_hidden(os.path.join(key, path.rstrip("/")))
        }
        return seen | look(self._above(key))

    # --- writing ------------------------------------------------------------------------------------

    def write_bytes(self, path: str, data: bytes, append: bool = False, durable: bool = False) -> None:
        above = self._writable(path, is_kept=append)
        with _of(path):
            self._upper.write_bytes(above, data, append)

    def write_text(self, path: str, text: str, append: bool = False, durable: bool = False) -> None:
        self.make_directory(os.path.dirname(path) or ".")
        self.write_bytes(path, text.encode("utf-8", "surrogatepass"), append)

    def replace_text(self, path: str, text: str, durable: bool = True, mark: str = ".partial") -> None:
        self.write_text(path, text)

    async def pour(self, path: str, pieces: AsyncGenerator[bytes, None]) -> int:
        data = b"".join([piece async for piece in pieces])
        self.write_bytes(path, data)
        return len(data)

    def _writable(self, path: str, *, is_kept: bool = False) -> str:
        """Return the place of a file in the layer, to be written to; ``is_kept``: with what is in it."""
        key = self.key(path)
        if not self.is_dir(os.path.dirname(key)):
            raise self._missing(key, path)
        there = self._status(key)
        if there is not None and S_ISDIR(there.st_mode):
            raise _failure(errno.EISDIR, path)
        above = self._above(key)
        with _of(path):
            self._upper.make_directory(os.path.dirname(above))
            if there is not None and not os.path.lexists(above):
                self._upper.write_bytes(above, self._under.read_bytes(key) if is_kept else b"")
                os.chmod(above, S_IMODE(there.st_mode))
        self._changed(key)
        return above

    def _changed(self, key: str) -> None:
        self._given.discard(key)
        self.news.add(key)

    def rename(self, path: str, new: str) -> None:
        key, to = self.key(path, follow=False), self.key(new, follow=False)
        source, target = self._status(key), self._status(to)
        if not self.is_dir(os.path.dirname(key)):
            raise self._missing(key, path)
        if not self.is_dir(os.path.dirname(to)):
            raise self._missing(to, new)
        if source is None:
            raise self._missing(key, path)
        is_directory = S_ISDIR(source.st_mode)
        if key != to and _is_in(to, key):
            raise _failure(errno.EINVAL, new)
        if key != to and _is_in(key, to):
            raise _failure(errno.ENOTEMPTY, new)
        if target is not None and S_ISDIR(target.st_mode) is not is_directory:
            raise _failure(errno.ENOTDIR if is_directory else errno.EISDIR, new)
        if key == to:
            return
        if target is not None and is_directory and self.list_dir(to):
            raise _failure(errno.ENOTEMPTY, new)
        with _of(path):
            self._lift(key)
            self._upper.make_directory(os.path.dirname(self._above(to)))
            os.replace(self._above(key), self._above(to))
        self._hidden |= {key, to} if is_directory else {key}
        self._deleted.add(key)
        self._given = {each for each in self._given if not _is_in(each, key) and not _is_in(each, to)}
        self.news |= {key, to}

    def _lift(self, key: str) -> None:
        """Have what is at a place in the layer, with all that is in it."""
        if not self.is_dir(key):
            if not os.path.lexists(self._above(key)):
                self._writable(key, is_kept=True)
            return
        self._upper.make_directory(self._above(key))
        for entry in self.entries(key):
            self._lift(os.path.join(key, entry.name))

    def copy(self, path: str, new: str) -> None:
        data, rights = self.read_bytes(path), S_IMODE(self.status(path).st_mode)
        if self.key(path) != self.key(new):
            self.write_bytes(new, data)
            os.chmod(self._above(self.key(new)), rights)

    def remove(self, path: str) -> None:
        key = self.key(path, follow=False)
        above = self._above(key)
        if not os.path.lexists(above) and (self.is_hidden(key) or not self._is_under(key)):
            raise self._missing(key, path)
        with _of(path):
            if os.path.lexists(above):
                self._upper.remove(above)
        self._hidden.add(key)
        self._deleted.add(key)
        self._given = {each for each in self._given if not _is_in(each, key)}
        self.news.add(key)

    def _is_under(self, key: str) -> bool:
        """Return whether something is under the layer, also a link that leads nowhere."""
        directory, name = os.path.split(key)
        try:
            return any(entry.name == name for entry in self._under.entries(directory))
        except OSError:
            return False

    def delete_file(self, path: str, root: str) -> None:
        key, stop = self.key(path, follow=False), self.key(root)
        if self.is_dir(key):
            raise _failure(errno.EISDIR, path)
        try:
            self.remove(key)
        except FileNotFoundError:
            return
        directory = os.path.dirname(key)
        while directory != stop and not self.list_dir(directory):
            self.remove(directory)
            directory = os.path.dirname(directory)

    def make_directory(self, path: str) -> None:
        key = self.key(path)
        nearest = key
        while (status := self._status(nearest)) is None:
            nearest = os.path.dirname(nearest)
        if not S_ISDIR(status.st_mode):
            raise _failure(errno.EEXIST if nearest == key else errno.ENOTDIR, path)
        if nearest != key:
            with _of(path):
                self._upper.make_directory(self._above(key))
            self.news.add(key)

    def try_lock(self, path: str) -> Callable[[], object] | None:
        """Take a lock that is seen nowhere else."""
        key = self.key(path)
        if key in self._locked:
            return None
        if not self.exists(key):
            self.write_bytes(path, b"")
        self._locked.add(key)
        return lambda: self._locked.discard(key)

    def change(self, root: str, changed: Changed) -> None:
        """Do again what processes did in the directory ``root``, as their steps have it.

        A file that is too large for those stays as it is.
        """
        for path in sorted(changed.files, reverse=True):
            key = os.path.join(root, path.rstrip("/"))
            if changed.files[path] is None and self.exists(key):
                self.remove(key)
        for path in sorted(changed.files):
            # Somebody's file may be where the run had a directory: the overlay goes on without.
            with suppress(OSError):
                self._put(os.path.join(root, path.rstrip("/")), changed.files[path])
                if path in changed.executable:
                    os.chmod(self._above(self.key(os.path.join(root, path))), 0o755)

    def _put(self, key: str, content: Any) -> None:
        if content is True:
            self.make_directory(key)
        elif isinstance(content, bytes):
            self.make_directory(os.path.dirname(key))
            self.write_bytes(key, content)

    # --- what it has come to ------------------------------------------------------------------------

    def written(self) -> list[str]:
        """Return the absolute paths of the files that the program has written, by name."""
        places = ("/" + each for each in self._upper.files_under(self.directory))
        return sorted(each for each in places if each not in self._given)

    def deleted(self) -> list[str]:
        """Return the absolute paths of what is on the disk and was deleted, by name."""
        found: set[str] = set()
        for key in filter(self._is_under, self._deleted):
            if not self.exists(key) or self._under.is_dir(key) is not self.is_dir(key):
                found.add(key)
            elif self.is_dir(key):  # which is another one
                inner = (os.path.join(key, each) for each in self._under.files_under(key))
                found |= {each for each in inner if not self.is_file(each)}
        return sorted(found)

    def keep(self, directory: str | os.PathLike[str], root: str) -> None:
        """Copy the files that were written to a directory that is empty or isn't there, by their paths from
        ``root``. Those outside of it are in `OUTSIDE`; `DELETED` lists what was deleted, a path a line.

        Raises `TapeError`; the layer stays then.
        """
        try:
            for key in self.written():
                target = os.path.join(directory, shown(key, root, OUTSIDE))
                os.makedirs(os.path.dirname(target), exist_ok=True)
                copy2(self._above(key), target)
            if deleted := self.deleted():
                os.makedirs(directory, exist_ok=True)
                lines = "".join(f"{shown(key, root, OUTSIDE)}\n" for key in deleted)
                self._upper.write_text(os.path.join(directory, DELETED), lines)
        except OSError as error:
            raise TapeError(
                f"the overlay can't be kept in {os.fspath(directory)}: {system_reason(error)}; it stays in "
                f"{self.directory}"
            ) from None

    def take(self, key: str, place: str) -> None:
        """Let the file ``place``, which is no file of the program's, be at an absolute path."""
        above = self._above(key)
        self._upper.make_directory(os.path.dirname(above))
        if os.path.isdir(above):
            self._upper.remove(above)
        copy2(place, above)
        self._given.discard(key)


def check_keep(directory: str | os.PathLike[str]) -> None:
    """Raise `TapeError` unless a directory is empty or isn't there."""
    if not os.fspath(directory):
        raise TapeError("no overlay can be kept in a directory without a name: name one")
    try:
        if os.listdir(directory):
            raise TapeError(
                f"{os.fspath(directory)} isn't empty, so no overlay can be kept there: name another directory"
            )
    except FileNotFoundError:
        return
    except OSError as error:
        raise TapeError(f"no overlay can be kept in {os.fspath(directory)}: {system_reason(error)}") from None


def shown(key: str, root: str, outside: str = "") -> str:
    """Return an absolute path as one from ``root``, if it is in there; else below ``outside``."""
    if _is_in(key, root):
        return os.path.relpath(key, root)
    return outside + key if outside else key


def _is_in(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _failure(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


@contextmanager
def _of(path: str) -> Iterator[None]:
    """A block whose errors name ``path``, wherever it really is."""
    try:
        yield
    except OSError as error:
        error.filename = path
        raise
