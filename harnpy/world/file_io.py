"""Reading files that have no size, and writing: to the end of a file, or a file as a whole or not at all.

`RealFiles` loads this on the first such call.
"""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import aclosing, suppress
from errno import EFBIG, EINVAL
from select import POLLIN, poll

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from io import FileIO

# Reading what has no size: pipes, terminals and devices. It may never come, and never end.


#: The most bytes of one reading.
MOST_ENDLESS = 64 << 20
_CHUNK = 1 << 16
#: Milliseconds between two looks while nothing comes.
_PAUSE = 20


def read_endless(file: int, look: Callable[[], object]) -> bytes:
    """Read an open file, which doesn't block, until its end. ``look`` raises when nobody waits any longer.

    Raises OSError for more than `MOST` bytes.
    """
    ready = poll()
    ready.register(file, POLLIN)
    data = bytearray()
    while True:
        look()
        if not ready.poll(_PAUSE):
            continue
        try:
            chunk = os.read(file, _CHUNK)
        except BlockingIOError:
            continue
        if not chunk:
            return bytes(data)
        data += chunk
        if len(data) > MOST_ENDLESS:
            raise OSError(EFBIG, os.strerror(EFBIG))


# Writing to an open file, at its end perhaps.


def write(file: FileIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def add(file: FileIO, data: bytes) -> None:
    """Write at the end, alone. What a full disk cuts off is removed: it would spoil the next line, too."""
    if not file.seekable():
        write(file, data)
        return
    fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
    end = file.seek(0, os.SEEK_END)
    try:
        write(file, data)
    except BaseException:
        file.truncate(end)
        raise


# Temporary files beside the files that they will replace.
#
# The writer of one holds its lock (`flock`), which ends with the process. So one whose lock is free
# was left by a process that was killed; whoever writes in that directory next removes it. Paths are relative
# to ``within``, an open directory, or to the working directory.


_NAME = re.compile(r"\.[0-9a-f]{16}")
_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
_AS_IT_IS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Temporary:
    """A new, locked file in ``directory``; its name is its own and ends in ``mark``.

    Its ``path`` is known before it is created: however that is interrupted, the file can be removed.
    """

    def __init__(self, directory: str, mark: str, within: int | None = None) -> None:
        self.path = os.path.join(directory, f".{os.urandom(8).hex()}{mark}")
        self._within = within
        self._file: int | None = None

    def create(self, mode: tuple[int, bool] = (0o666, False)) -> None:
        """Create the file with these rights, exactly or as far as the umask leaves them."""
        while True:
            self._file = os.open(self.path, _NEW, mode[0], dir_fd=self._within)
            if _is_locked_and_there(self._file):
                if mode[1]:
                    os.fchmod(self._file, mode[0])
                return
            # Somebody found it before it was locked, and removed it.
            os.close(self._file)

    def write(self, data: bytes) -> None:
        """Add to the created file."""
        assert self._file is not None
        left = memoryview(data)
        while left:
            left = left[os.write(self._file, left) :]

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)


def _is_locked_and_there(file: int) -> bool:
    with suppress(OSError):  # a file system without locks: nobody will remove the file
        fcntl.flock(file, fcntl.LOCK_EX)
    return os.fstat(file).st_nlink > 0


def remove_left_behind(directory: str, mark: str, within: int | None = None) -> None:
    """Remove the temporary files of processes that are gone."""
    opened = os.open(directory, _DIRECTORY, dir_fd=within)
    try:
        for name in os.listdir(opened):
            if name.endswith(mark) and _NAME.fullmatch(name.removesuffix(mark)):
                with suppress(OSError):  # somebody is writing it, or has renamed it meanwhile
                    _remove_unless_locked(name, opened)
    finally:
        os.close(opened)


def _remove_unless_locked(name: str, directory: int) -> None:
    file = os.open(name, _AS_IT_IS, dir_fd=directory)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=directory)
    finally:
        os.close(file)


def sync_directory(directory: str, within: int | None = None) -> None:
    """Return when the names in a directory are on the disk."""
    file = os.open(directory, _DIRECTORY, dir_fd=within)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno != EINVAL:  # a file system that has no such thing
            raise
    finally:
        os.close(file)


# Writing a file from pieces that come one after the other, as a whole or not at all.


_MARK = ".partial"


async def poured(
    pieces: AsyncGenerator[bytes, None],
    path: str,
    within: int | None,
    tidy: Callable[[str, str], object],
    rename: Callable[[str, str], object],
    mode: tuple[int, bool],
) -> int:
    """Write a file, `Files.pour`; ``within`` as `Temporary` has it. Return the number of bytes."""
    directory, size = os.path.dirname(path) or ".", 0
    temporary = Temporary(directory, _MARK, within)
    try:
        tidy(directory, _MARK)
        temporary.create(mode)
        async with aclosing(pieces):
            async for piece in pieces:
                temporary.write(piece)
                size += len(piece)
        rename(temporary.path, path)
    except BaseException as error:
        with suppress(OSError):
            os.remove(temporary.path, dir_fd=within)
        if isinstance(error, OSError):
            error.filename = path
        raise
    finally:
        temporary.close()
    return size
