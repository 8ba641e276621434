"""The processes of a branch: they run in a copy of the directory, with the overlay's files. Spec: 13 §5.2."""

from __future__ import annotations

import os
from shutil import copy2, rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from harnpy.tape.tapes import TapeError
from harnpy.world.processes import Ended

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harnpy.tape.overlay import Overlay
    from harnpy.world.processes import Companion, Heard, Processes

#: The files and bytes that a copy has at most.
MOST_FILES: Final = 50_000
MOST_BYTES: Final = 1 << 30


class ScratchProcesses:
    """``processes``, in copies of the directories that they are started in. What they change there is in the
    overlay once one of them has ended, or at the latest with `take_back`.

    Close it: the copies go with it.
    """

    def __init__(self, processes: Processes, overlay: Overlay, root: str) -> None:
        self._processes = processes
        self._overlay = overlay
        self._root = root
        self._copies: dict[str, _Copy] = {}

    async def run(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Ended:
        copy = self._copy(argv, cwd)
        try:
            words, place, variables = copy.mapped(argv, cwd, env)
            ended = await self._processes.run(words, place, variables, timeout)
            return copy.unmapped(ended)
        finally:
            self.take_back()

    async def start(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str] | None = None,
        heard: Heard | None = None,
    ) -> Companion:
        words, place, variables = self._copy(argv, cwd).mapped(argv, cwd, env)
        return _Taking(await self._processes.start(words, place, variables, heard), self.take_back)  # type: ignore[return-value]

    def _copy(self, argv: Sequence[str], cwd: str) -> _Copy:
        """Return the copy of the directory that has ``cwd`` in it, as the overlay is now."""
        cwd = self._overlay.key(cwd)
        root = self._root if (cwd + "/").startswith(self._root + "/") else cwd
        if root not in self._copies:
            self._copies[root] = _Copy(root, self._overlay, argv[0])
        news, self._overlay.news = sorted(self._overlay.news), set()
        for copy in self._copies.values():
            copy.follow(news)
        return self._copies[root]

    def take_back(self) -> None:
        """Let the overlay have what the processes have changed."""
        for copy in self._copies.values():
            copy.take_back()

    def close(self) -> None:
        """Remove the copies."""
        for copy in self._copies.values():
            copy.close()


class _Taking:
    """A companion that is ``real``; once it has stopped, ``take`` is called."""

    def __init__(self, real: Companion, take: Callable[[], object]) -> None:
        self._real = real
        self._take = take

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def stop(self) -> None:
        """End the program, and have what it has changed."""
        await self._real.stop()
        self._take()


class _Signature(NamedTuple):
    """What tells whether a file was written since."""

    modified: int
    size: int
    file: int
    mode: int


class _Copy:
    """A copy of the directory ``root`` as it is in the overlay."""

    def __init__(self, root: str, overlay: Overlay, program: str) -> None:
        self.root = root
        self._overlay = overlay
        self._program = program
        self._files = self._bytes = 0
        self.place = os.path.realpath(mkdtemp(prefix="harnpy-scratch-"))
        #: What is in the copy as the overlay has it, by paths from it; None: a directory.
        self._known: dict[str, _Signature | None] = {}
        try:
            self._fill("")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        rmtree(self.place, ignore_errors=True)

    def mapped(
        self, argv: Sequence[str], cwd: str, env: Mapping[str, str] | None
    ) -> tuple[list[str], str, Mapping[str, str] | None]:
        """Return what a process is started with in the copy: its words, directory and variables."""
        place = self._there(self._overlay.key(cwd))
        if env is not None and "PWD" in env:
            env = {**env, "PWD": place}
        return [self._there(word) for word in argv], place, env

    def _there(self, path: str) -> str:
        is_inside = path == self.root or path.startswith(self.root + "/")
        return self.place + path[len(self.root) :] if is_inside else path

    def unmapped(self, ended: Ended) -> Ended:
        """Return what a process came to, with the directory's own name in its output."""
        made, real = os.fsencode(self.place), os.fsencode(self.root)
        return Ended(ended.pid, ended.code, ended.out.replace(made, real), ended.err.replace(made, real))

    def _fill(self, path: str) -> None:
        """Copy a directory, and all below it."""
        for entry in self._overlay.entries(os.path.join(self.root, path)):
            inner = os.path.join(path, entry.name)
            self._put(inner)
            if entry.is_dir:
                self._fill(inner)

    def _put(self, path: str) -> None:
        """Copy a file, a link, or a directory without what is in it."""
        key, target = os.path.join(self.root, path), os.path.join(self.place, path)
        if os.path.islink(key) and not self._overlay.is_hidden(key):
            self._count(key, 0)
            os.symlink(self._there(os.readlink(key)), target)
        elif self._overlay.is_dir(key):
            os.makedirs(target, exist_ok=True)
        elif self._overlay.is_file(key):
            source = self._overlay.place(key)
            assert source is not None
            self._count(key, os.path.getsize(source))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            copy2(source, target)
        else:
            return  # a pipe, or a device
        self._known[path] = _signature(target)

    def _count(self, key: str, size: int) -> None:
        self._files += 1
        self._bytes += size
        if self._files > MOST_FILES or self._bytes > MOST_BYTES:
            raise TapeError(
                f"`{self._program}` can't run in the branch: it would need a copy of {self.root}, which has "
                f"more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB; run it in a smaller directory"
            )

    def follow(self, news: Sequence[str]) -> None:
        """Have what has changed in the overlay in the copy, too."""
        for key in news:
            if not key.startswith(self.root + "/"):
                continue
            path = key[len(self.root) + 1 :]
            target = os.path.join(self.place, path)
            if os.path.isdir(target) and not os.path.islink(target):
                rmtree(target)
            elif os.path.lexists(target):
                os.remove(target)
            for each in [each for each in self._known if each == path or each.startswith(path + "/")]:
                del self._known[each]
            self._put(path)
            if self._overlay.is_dir(key):
                self._fill(path)

    def take_back(self) -> None:
        """Let the overlay have what has changed here. Links arrive as copies of the files they lead to."""
        found: dict[str, _Signature | None] = {}
        for directory, directories, names in os.walk(self.place):
            for name in (*directories, *names):
                place = os.path.join(directory, name)
                found[os.path.relpath(place, self.place)] = _signature(place)
        for path in sorted(self._known.keys() - found.keys()):
            key = os.path.join(self.root, path)
            if self._overlay.exists(key):
                self._overlay.remove(key)
                self._overlay.news.discard(key)
        for path, signature in found.items():
            if path not in self._known or self._known[path] != signature:
                self._take(os.path.join(self.root, path), os.path.join(self.place, path))
        self._known = found

    def _take(self, key: str, place: str) -> None:
        if os.path.isfile(place):
            self._overlay.take(key, place)
        elif os.path.isdir(place) and not os.path.islink(place):
            self._overlay.make_directory(key)
            self._overlay.news.discard(key)


def _signature(place: str) -> _Signature | None:
    status: Any = os.lstat(place)
    if os.path.isdir(place) and not os.path.islink(place):
        return None
    return _Signature(status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode)
