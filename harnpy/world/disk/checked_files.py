"""Files behind a check, which is given what is to be done and what a path really leads to.

An effect is ``read``, ``write``, ``delete``, or ``list``, which any look at what is there is. What the check
refuses, by raising, isn't done: nothing is made, emptied, opened or looked at before. On the real disk, what
is used is what was checked, even if somebody puts links in its way meanwhile. Links are listed as what they
are, not as what they lead to.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from harnpy.world.disk.reached import NamesIn, Reached, names_of
from harnpy.world.effects import DELETE, LIST, READ, WRITE
from harnpy.world.files import RealFiles

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator
    from contextlib import AbstractContextManager

    from harnpy.world.files import Entry, Files

    #: ``check(effect, path, named)`` raises unless the effect is allowed. Both paths are absolute; ``path``
    #: is free of links, and ``named`` led to it.
    Check = Callable[[str, str, str], None]
    Answer = TypeVar("Answer")


def checked_files(files: Files, check: Check, look: Callable[[], object] | None = None) -> Files:
    """Return ``files`` behind a check; ``look`` is `RealFiles`'s."""
    return CheckedFiles(check, look) if type(files) is RealFiles else AskedFiles(files, check)


class _Checked:
    """What both ways to check have in common, see `Files`.

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

    def __init__(self, check: Check, look: Callable[[], object] | None = None) -> None:
        super().__init__(RealFiles(), check)
        self._watch = look
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
        with Reached(named) as place:
            self._check(LIST, place.path, named)
            return place.path

    @contextmanager
    def _at(
        self, path: str, effect: str, *, follow: bool = True, make: bool = False
    ) -> Iterator[tuple[NamesIn, str]]:
        try:
            named = self._absolute(path)
            with Reached(named, follow) as place:
                real = place.path
                self._check(effect, real, named)
                if make:
                    place.make_directories()
                place.refuse_failure()
                yield NamesIn(place.directory, os.path.dirname(real), self._tidied, self._watch), place.name
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
