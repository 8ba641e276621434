"""The files of a run that is recorded, as far as its tape knows them: what the program overwrites, and what
its processes change. Spec: 13 §1.
"""

from __future__ import annotations

import os.path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, Final, TypeVar

from harnpy.durable.journal import PROCESS, READ, SEND, WRITE
from harnpy.durable.values import encode
from harnpy.tape.description import kind_of
from harnpy.tape.directory import written

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harnpy.durable.journal import Asked
    from harnpy.tape.directory import Directory
    from harnpy.workflow.engines.contract import Json
    from harnpy.world.files import Files

    T = TypeVar("T")

#: The most bytes of a file that a record has because the program has overwritten it.
_MOST_WAS: Final = 1 << 20


class KnownFiles:
    """What the records of effects say of files beside what was asked for.

    ``files`` are the real ones, ``cwd`` is the run's directory, which ``directory`` looks at. ``note(text)``
    puts a remark on the tape.
    """

    def __init__(self, files: Files, cwd: str, directory: Directory, note: Callable[[str], object]) -> None:
        self._files = files
        self._cwd = cwd
        #: None once there is too much in it.
        self._directory: Directory | None = directory
        self._note = note
        #: The names of processes that are talked to, by the keys of effects of theirs.
        self._of_processes: dict[str, str] = {}
        #: Files whose text the tape has by now, or that the program has made; and the text that the program
        #: is about to overwrite.
        self._known: set[str] = set()
        self._was: bytes | None = None

    def leave_out(self, path: str) -> None:
        """See nothing at an absolute path from now on, whatever processes do there."""
        if self._directory is not None:
            self._directory.leave_out(path)

    def writing(self, act: Callable[[], T], asked: Asked) -> Callable[[], T]:
        """Return what does the same as ``act``, which writes: the text that goes with it is noted, for a
        branch begins with that, and no process is said to have written."""

        def whole() -> T:
            told: Any = asked()
            path = overwritten(told)
            if path is not None and path not in self._known:
                self._was = self._text_of(path)
            directory, paths = self._directory, written_paths(told)
            is_as_known = directory is not None and directory.is_as_known(paths)
            value = act()
            if directory is not None and is_as_known:
                directory.follow(paths)
            return value

        return whole

    def writing_later(self, begin: Callable[[], Awaitable[T]], asked: Asked) -> Callable[[], Awaitable[T]]:
        """As `writing`, for what writes while the program waits."""

        async def whole() -> T:
            value = await begin()
            if self._directory is not None:
                self._directory.follow(written_paths(asked()))
            return value

        return whole

    def begin(self, key: str) -> None:
        """An effect begins that the program waits for."""
        if self._directory is not None and kind_of(key) == PROCESS:
            self._directory.begin()
            self._give_up_if_too_large(self._directory)

    def expect(self, key: str, process: str) -> None:
        """An effect of a process that is talked to was asked for."""
        if self._directory is not None:
            self._of_processes[key] = process

    def record(self, key: str, asked: Json, output: dict[str, Json], *, is_done: bool) -> None:
        """An effect has ended, and ``output`` is to be recorded of it: add what is known of files by now.
        ``is_done``: it has not failed."""
        if is_done and isinstance(asked, list) and kind_of(key) in (READ, WRITE):
            self._know(asked, output)
        kind, directory = kind_of(key), self._directory
        name = self._of_processes.pop(key, None)
        if directory is None or (kind != PROCESS and name is None):
            return
        if kind in (PROCESS, SEND) or directory.is_small:
            output.update(written(directory.changed(), name))
            self._give_up_if_too_large(directory)

    def _know(self, asked: list[Any], output: dict[str, Json]) -> None:
        """From now on the tape knows what is in the file of an effect."""
        was, self._was = self._was, None
        if was is not None:
            output["was"] = encode(was, utf8=True)
        if asked[0] in ("read_text", "read_bytes"):
            self._known.add(asked[1])
        elif (path := overwritten(asked)) is not None:
            self._known.add(path)

    def _text_of(self, path: str) -> bytes | None:
        """Return what is in a file, from the run's directory; None if that is no file, or too long."""
        place = os.path.join(self._cwd, path)
        try:
            status = self._files.status(place)
            is_short = S_ISREG(status.st_mode) and status.st_size <= _MOST_WAS
            return self._files.read_bytes(place) if is_short else None
        except (OSError, ValueError):
            return None

    def _give_up_if_too_large(self, directory: Directory) -> None:
        if directory.is_too_large:
            self._directory = None
            self._note(f"{self._cwd} has too many files: what processes change there isn't recorded")


def overwritten(asked: list[Any]) -> str | None:
    """Return the file whose text goes with what is asked for; None where none does."""
    method, path, *rest = asked
    if method in ("rename", "copy"):
        return str(rest[0])
    adds = method in ("write_bytes", "write_text") and len(rest) > 1 and rest[1] is True
    return path if method in _OVERWRITES and not adds else None


_OVERWRITES = frozenset({"write_bytes", "write_text", "replace_text", "remove", "delete_file"})


def written_paths(asked: Any) -> list[str]:
    """Return the paths that are written, moved or deleted where this is asked for."""
    if not isinstance(asked, list):
        return []
    paths = asked[1:3] if asked[0] in ("rename", "copy") else asked[1:2]
    return [each for each in paths if isinstance(each, str)]
