"""Files and directories: the real ones, and texts that are read as if they were files.

On the start-up path: imports nothing heavy. What only some calls need is in `file_io`.
"""

from __future__ import annotations

import errno
import os
from stat import S_IMODE, S_ISDIR, S_ISREG

from harnpy.faults import look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
    from contextlib import AbstractContextManager
    from io import FileIO
    from typing import BinaryIO, Protocol

    class Files(Protocol):
        """Relative paths are relative to `cwd`. What is not said to be fine raises OSError."""

        def cwd(self) -> str:
            """The working directory, absolute."""

        def read_bytes(self, path: str, most: int | None = None) -> bytes:
            """Return the bytes of a file. A pipe or device is read to its end, but not for more than 64 MiB.

            Raises TooLarge for a file of more than ``most`` bytes.
            """

        def reader(self, path: str) -> BinaryIO:
            """Open a file whose bytes or lines are read as they are needed. The caller closes it."""

        def read_text(self, path: str, errors: str = "strict") -> str:
            """The text of a UTF-8 file as it is. Raises UnicodeDecodeError unless ``errors`` is "replace"."""

        def write_bytes(self, path: str, data: bytes, append: bool = False, durable: bool = False) -> None:
            """Write a file in a directory that is there, or add to it.

            What is written ``durable`` is on the disk when this returns. Data is added as a whole or not at
            all, also when several processes add to a file.
            """

        def write_text(self, path: str, text: str, append: bool = False, durable: bool = False) -> None:
            """Write a UTF-8 file as `write_bytes` does; its directory is made if need be."""

        def replace_text(self, path: str, text: str, durable: bool = True, mark: str = ".partial") -> None:
            """Write a UTF-8 file as a whole or not at all, also when several processes do so at once.

            The text is first written to a new file beside it whose name ends in ``mark``, and which is
            removed if that fails; the OSError names ``path``. What a killed process leaves behind is removed
            by the next one that writes in that directory. What is ``durable`` survives a power failure.
            """

        async def pour(self, path: str, pieces: AsyncGenerator[bytes, None]) -> int:
            """Write a file in a directory that is there, as a whole or not at all; return how many bytes.

            Until all ``pieces`` are there, they are in a new file beside it, as with `replace_text`.
            """

        def rename(self, path: str, new: str) -> None:
            """Give a file another path; what is there is replaced."""

        def copy(self, path: str, new: str) -> None:
            """Write what is in a file to another path, with its rights; onto itself that does nothing."""

        def remove(self, path: str) -> None:
            """Delete a file or link, or a directory with everything below it."""

        def delete_file(self, path: str, root: str) -> None:
            """Delete a file and directories below ``root`` that it leaves empty; a missing one is fine."""

        def make_directory(self, path: str) -> None:
            """Make a directory and those above it; one that is there is fine."""

        def list_dir(self, path: str) -> list[str]:
            """The names in a directory, sorted; those of directories end in ``/``."""

        def entries(self, path: str) -> list[Entry]:
            """Return the entries of a directory, by name; links are links, wherever they lead."""

        def status(self, path: str) -> os.stat_result:
            """Return what the system knows of a file or directory."""

        def files_under(self, directory: str) -> list[str]:
            """The files in a directory and all below it, relative to it, in no order."""

        def modified(self, path: str) -> int | None:
            """Return when a file was written last, in ns since 1970; None when there is none to look at."""

        def exists(self, path: str) -> bool: ...

        def is_dir(self, path: str) -> bool: ...

        def is_file(self, path: str) -> bool: ...

        def real_path(self, path: str) -> str:
            """The one absolute path of what ``path`` leads to, symbolic links followed."""

        def try_lock(self, path: str) -> Callable[[], object] | None:
            """Take the lock that processes share by the file ``path``, whose directory must be there.

            Returns what releases it; None when it is taken. The lock of a process that dies is free.
            """


#: The rights of files and of directories: the usual ones, which the umask limits; what harnpy keeps for its
#: user alone; and what it keeps for a group.
USUAL = 0o666, 0o777
PRIVATE = 0o600, 0o700
SHARED = 0o660, 0o770


def _remove(path: str, within: int | None) -> None:
    """Remove a file, or a directory and all below it; links aren't followed. Many files end with the task."""
    status = os.stat(path, dir_fd=within, follow_symlinks=False)
    if not S_ISDIR(status.st_mode):
        os.remove(path, dir_fd=within)
        return
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=within)
    try:
        for name in os.listdir(directory):
            look()
            _remove(name, directory)
    finally:
        os.close(directory)
    os.rmdir(path, dir_fd=within)


_LOCK_POLL = 0.002
#: Characters of a path that any system could have.
_LONGEST_PATH = 1 << 16
_PIECE = 1 << 20


class Entry:
    """A name in a directory. One that is neither a directory nor a file is a link, a pipe or a device."""

    __slots__ = ("is_dir", "is_file", "name")

    def __init__(self, name: str, is_dir: bool, is_file: bool) -> None:
        self.name = name
        self.is_dir = is_dir
        self.is_file = is_file


class RealFiles:
    """``look`` is called while a pipe or device is read, and raises when nobody waits for it any longer."""

    #: The open directory that paths are relative to, and its path; None is the working directory.
    _within: int | None = None
    _where = ""
    #: The rights of what it makes.
    modes = USUAL

    def __init__(self, look: Callable[[], object] | None = None) -> None:
        self._look = _nothing if look is None else look
        #: The directories, and the marks in them, that nothing killed has left a file in.
        self._tidied: set[tuple[str, str]] = set()

    def looking(self, look: Callable[[], object]) -> RealFiles:
        """The same files for somebody who may stop waiting."""
        files = RealFiles(look)
        files._tidied = self._tidied
        files.modes = self.modes
        return files

    def private(self) -> RealFiles:
        """The same files; what it makes is its user's alone."""
        from copy import copy

        files = copy(self)
        files.modes = PRIVATE
        return files

    def cwd(self) -> str:
        try:
            return os.getcwd()
        except OSError as error:
            error.filename = "the working directory"  # which has no path any more
            raise

    def _open(self, path: str, flags: int) -> int:
        return os.open(path, flags, self.modes[0])

    def _status(self, path: str) -> os.stat_result:
        return os.stat(path)

    def read_bytes(self, path: str, most: int | None = None) -> bytes:
        try:
            with open(path, "rb", buffering=0, opener=self._open_at_once) as file:
                status = os.fstat(file.fileno())
                if S_ISREG(status.st_mode):
                    if most is not None and status.st_size > most:
                        from harnpy.faults import TooLarge

                        raise TooLarge(f"{status.st_size} bytes", most)
                    return file.read()
                from harnpy.world.file_io import read_endless

                return read_endless(file.fileno(), self._look)
        except OSError as error:
            error.filename = path
            raise

    def reader(self, path: str) -> BinaryIO:
        try:
            file = open(path, "rb", opener=self._open_at_once)  # noqa: SIM115
        except OSError as error:
            error.filename = path
            raise
        if S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        from io import BytesIO

        from harnpy.world.file_io import read_endless

        with file:
            return BytesIO(read_endless(file.fileno(), self._look))

    def read_text(self, path: str, errors: str = "strict") -> str:
        return self.read_bytes(path).decode("utf-8", errors)

    def _open_at_once(self, path: str, flags: int) -> int:
        """Open a file for reading; a pipe that nobody writes to isn't waited for."""
        return self._open(path, flags | os.O_NONBLOCK)

    def write_bytes(self, path: str, data: bytes, append: bool = False, durable: bool = False) -> None:
        from harnpy.world.file_io import add, write

        with open(path, "ab" if append else "wb", buffering=0, opener=self._open) as file:
            (add if append else write)(file, data)
            if durable:
                os.fsync(file.fileno())

    def write_text(self, path: str, text: str, append: bool = False, durable: bool = False) -> None:
        self.make_directory(os.path.dirname(path) or ".")
        self.write_bytes(path, text.encode("utf-8", "surrogatepass"), append, durable)

    def replace_text(self, path: str, text: str, durable: bool = True, mark: str = ".partial") -> None:
        # On the start-up path: what only writing needs is loaded by it.
        from contextlib import suppress

        from harnpy.world.file_io import Temporary, sync_directory

        directory = os.path.dirname(path) or "."
        temporary = Temporary(directory, mark, self._within)
        try:
            self.make_directory(directory)
            self._tidy(directory, mark)
            temporary.create(self._mode_for(path))
            self.write_text(temporary.path, text, durable=durable)
            self.rename(temporary.path, path)
            if durable:
                sync_directory(directory, self._within)
        except BaseException as error:
            with suppress(OSError, ValueError):  # of a path that no file can have
                self.delete_file(temporary.path, directory)
            if isinstance(error, OSError):
                error.filename = path
            raise
        finally:
            temporary.close()

    async def pour(self, path: str, pieces: AsyncGenerator[bytes, None]) -> int:
        from harnpy.world.file_io import poured

        return await poured(pieces, path, self._within, self._tidy, self.rename, self._mode_for(path))

    def _mode_for(self, path: str) -> tuple[int, bool]:
        """Return the rights of a file that takes the place of ``path``, and whether they are exact: a file
        that is there keeps its rights."""
        status = self._found(path)
        there = status is not None and S_ISREG(status.st_mode)
        return (S_IMODE(status.st_mode), True) if status is not None and there else (self.modes[0], False)

    def _tidy(self, directory: str, mark: str) -> None:
        """Remove what killed processes have left in a directory, once."""
        tidied = os.path.join(self._where, directory), mark
        if tidied not in self._tidied:
            from harnpy.world.file_io import remove_left_behind

            remove_left_behind(directory, mark, self._within)
            self._tidied.add(tidied)

    def rename(self, path: str, new: str) -> None:
        os.replace(path, new)

    def copy(self, path: str, new: str) -> None:
        self.copy_to(path, self, new)

    def copy_to(self, path: str, others: RealFiles, new: str) -> None:
        """Write what is in a file to a path of other files."""
        with open(path, "rb", buffering=0, opener=self._open_at_once) as source:
            status = os.fstat(source.fileno())
            with open(others._open(new, os.O_WRONLY | os.O_CREAT), "wb", buffering=0) as target:
                if os.path.samestat(status, os.fstat(target.fileno())):
                    return
                target.truncate()
                self._pour(source, target, S_ISREG(status.st_mode))
                os.fchmod(target.fileno(), S_IMODE(status.st_mode))

    def _pour(self, source: FileIO, target: FileIO, is_regular: bool) -> None:
        from harnpy.world.file_io import read_endless, write

        if not is_regular:
            write(target, read_endless(source.fileno(), self._look))
            return
        while data := source.read(_PIECE):
            write(target, data)

    def remove(self, path: str) -> None:
        _remove(path, self._within)

    def delete_file(self, path: str, root: str) -> None:
        try:
            os.remove(path)
        except FileNotFoundError:
            return
        directory = os.path.dirname(path)
        while directory != root and not os.listdir(directory):
            os.rmdir(directory)
            directory = os.path.dirname(directory)

    def make_directory(self, path: str) -> None:
        make_directories(path, self.modes[1])

    def list_dir(self, path: str) -> list[str]:
        with self._scan(path) as entries:
            return sorted(f"{entry.name}/" if self._is_directory(entry) else entry.name for entry in entries)

    def _scan(self, path: str) -> AbstractContextManager[Iterable[os.DirEntry[str]]]:
        return os.scandir(path)

    def _is_directory(self, entry: os.DirEntry[str]) -> bool:
        return entry.is_dir()

    def entries(self, path: str) -> list[Entry]:
        with self._scan(path) as entries:
            found = [
                Entry(each.name, each.is_dir(follow_symlinks=False), each.is_file(follow_symlinks=False))
                for each in entries
            ]
        return sorted(found, key=lambda entry: entry.name)

    def status(self, path: str) -> os.stat_result:
        return self._status(path)

    def files_under(self, directory: str) -> list[str]:
        walk = ((where, name) for where, _, names in os.walk(directory) for name in names)
        return [os.path.relpath(os.path.join(where, name), directory) for where, name in walk]

    def modified(self, path: str) -> int | None:
        status = self._found(path)
        return None if status is None else status.st_mtime_ns

    def exists(self, path: str) -> bool:
        return self._found(path) is not None

    def is_dir(self, path: str) -> bool:
        status = self._found(path)
        return status is not None and S_ISDIR(status.st_mode)

    def is_file(self, path: str) -> bool:
        status = self._found(path)
        return status is not None and S_ISREG(status.st_mode)

    def _found(self, path: str) -> os.stat_result | None:
        try:
            return self._status(path)
        except (OSError, ValueError):
            return None

    def real_path(self, path: str) -> str:
        if len(path) > _LONGEST_PATH:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        return os.path.realpath(os.path.join(self.cwd(), path))

    def try_lock(self, path: str) -> Callable[[], object] | None:
        import fcntl

        file = open(path, "ab", opener=self._open)  # noqa: SIM115 - as long as the lock is held
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException as error:
            file.close()
            if isinstance(error, BlockingIOError):
                return None
            raise
        return file.close


def private_files(files: Files) -> Files:
    """Return ``files`` for what harnpy keeps: what is made through them is its user's alone, 0600 and 0700.

    What is there keeps its rights. An embedder's own files may have no rights, and are returned as they are.
    """
    private: Callable[[], Files] | None = getattr(files, "private", None)
    return files if private is None else private()


def make_directories(path: str, mode: int = USUAL[1], tries: int = 20) -> None:
    """Make a directory and those above it that are missing; rights for a group are set whatever the umask.

    One that is taken away meanwhile is made again, so many times: some places, as `/proc`, take none.
    """
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
        return
    except FileNotFoundError:
        above = os.path.dirname(path.rstrip("/"))
        if not above or above == path or not tries:
            raise
        make_directories(above, mode)
        make_directories(path, mode, tries - 1)
        return
    if mode == SHARED[1]:
        os.chmod(path, mode)


def make_file(path: str, mode: int) -> None:
    """Make an empty file unless it is there, without opening it: closing it would free locks of SQLite."""
    try:
        os.mknod(path, mode)
    except FileExistsError:
        return
    except PermissionError:  # a system where only root makes files so
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, mode))
    if mode == SHARED[0]:
        os.chmod(path, mode)


def open_file(path: str, flags: int, mode: int, within: int | None = None) -> int:
    """Open a file as `os.open` does; rights for a group are set whatever the umask if this makes it."""
    if mode == SHARED[0] and flags & os.O_CREAT:
        try:
            file = os.open(path, flags | os.O_EXCL, mode, dir_fd=within)
        except FileExistsError:
            pass
        else:
            os.fchmod(file, mode)
            return file
    return os.open(path, flags, mode, dir_fd=within)


def _nothing() -> None:
    """Let a reading go on."""


def take_lock(path: str, files: Files, wait: Callable[[float], object]) -> Callable[[], object]:
    """Take the lock of the file ``path`` (`Files.try_lock`), whose directory is made if need be.

    Return what releases it. ``wait(seconds)`` lets other tasks run while somebody else has it.
    """
    files.make_directory(os.path.dirname(path))
    while (release := files.try_lock(path)) is None:
        wait(_LOCK_POLL)
    return release


def system_reason(error: Exception) -> str:
    """Return what the system reports about a file or program that it can't read, write or start."""
    if isinstance(error, OSError) and error.errno is not None:
        return f"{error.strerror} (os error {error.errno})"
    return _unsystematic(error)


def plain_reason(error: Exception) -> str:
    """Return `system_reason` without the error's number."""
    return (isinstance(error, OSError) and error.strerror) or _unsystematic(error)


def _unsystematic(error: Exception) -> str:
    if isinstance(error, UnicodeError):
        return "stream did not contain valid UTF-8"
    # Python's own: of what a system can't be given. Its texts differ between releases.
    return "embedded null byte" if type(error) is ValueError else str(error)


class TextFiles(RealFiles):
    """``texts`` by path; with ``disk``, what isn't among them is looked for in the file system."""

    def __init__(self, texts: Mapping[str, str], disk: bool) -> None:
        self.texts = {os.path.abspath(path): text for path, text in texts.items()}
        self._disk = disk

    def read_text(self, path: str, errors: str = "strict") -> str:
        text = self.texts.get(os.path.abspath(path))
        if text is not None:
            return text
        if not self._disk:
            raise FileNotFoundError(2, "No such file or directory", path)
        return super().read_text(path, errors)

    def exists(self, path: str) -> bool:
        return self.is_file(path) or self.is_dir(path)

    def is_file(self, path: str) -> bool:
        return os.path.abspath(path) in self.texts or (self._disk and super().is_file(path))

    def is_dir(self, path: str) -> bool:
        inside = os.path.join(os.path.abspath(path), "")
        return any(each.startswith(inside) for each in self.texts) or (self._disk and super().is_dir(path))

    def real_path(self, path: str) -> str:
        return super().real_path(path) if self._disk else os.path.abspath(path)
