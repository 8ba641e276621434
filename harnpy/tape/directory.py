"""What processes of a recorded run change in its directory, told by two looks at it. Spec: 13 §1.

A look reads nothing: whether a file was written since shows in its time, size, number and rights. Only what
has changed is read.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from stat import S_ISDIR, S_ISLNK, S_ISREG
from time import time_ns
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from harnpy.durable.values import Unreadable, decode, encode
from harnpy.tape.redaction import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from harnpy.workflow.engines.contract import Json, Step
    from harnpy.world.files import Files

#: The entries that a directory has at most, with all below it, so that it is looked at: and those of one that
#: is looked at with each line of a process that is talked to.
MOST_ENTRIES: Final = 20_000
MOST_FOR_LINES: Final = 2_000
#: The most bytes of a file, and of all of a step, that a tape has; of larger files it has size and digest.
MOST_OF_FILE: Final = 1 << 20
MOST_OF_STEP: Final = 16 << 20
#: Two writes within one tick of the system's clock have the same time: files as new as this are read.
_YOUNG: Final = 50_000_000
#: What no look sees: Git's own, and harnpy's.
_LEFT_OUT: Final = frozenset({".git", ".harn", ".harn-runs"})


class Mark(NamedTuple):
    """What tells whether a file was written since."""

    modified: int
    size: int
    file: int
    mode: int


#: What is in a directory, by path from it: that of a directory ends with a slash.
Tree = dict[str, Mark]
_DIRECTORY: Final = Mark(0, 0, 0, 0)
_LINK: Final = Mark(0, 0, 0, 1)


def look(directory: str) -> Tree:
    """Return what is in a directory and below it; links aren't followed. Beyond `MOST_ENTRIES` it ends."""
    found: Tree = {}
    ahead = [""]
    while ahead:
        path = ahead.pop()
        try:
            entries = os.scandir(os.path.join(directory, path))
        except OSError:  # it has gone meanwhile, or isn't ours to see
            continue
        with entries:
            for entry in entries:
                if entry.name in _LEFT_OUT:
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                inner, mode = path + entry.name, status.st_mode
                if S_ISREG(mode):
                    found[inner] = Mark(status.st_mtime_ns, status.st_size, status.st_ino, mode)
                elif S_ISLNK(mode):
                    found[inner] = _LINK
                elif S_ISDIR(mode):
                    found[f"{inner}/"] = _DIRECTORY
                    ahead.append(f"{inner}/")
                if len(found) > MOST_ENTRIES:
                    return found
    return found


class Changed(NamedTuple):
    """What a step says that processes have changed.

    ``files`` has, by path from the run's directory, what is in a file; None for what was deleted; a dict of
    ``size`` and ``sha256`` for a file that is too large; True for a directory that was made, whose path ends
    with a slash, as that of one that was deleted does. ``there`` are those of the files that were there
    before, ``moved`` those that had another path, by the new one; ``process`` is the name of a process that
    is talked to.
    """

    files: Mapping[str, Any]
    there: Collection[str] = ()
    executable: Collection[str] = ()
    moved: Mapping[str, str] = {}
    process: str = ""


_NOTHING: Final = Changed({})


def changed_in(output: Any) -> Changed:
    """Return what a step has of that. Raises `Unreadable` for what no step has."""
    if not isinstance(output, dict) or "files" not in output:
        return _NOTHING
    files = decode(output["files"])
    parts = [decode(output.get(name, usual)) for name, usual in _USUAL.items()]
    is_sound = isinstance(files, dict) and all(
        isinstance(each, type(usual)) for each, usual in zip(parts, _USUAL.values(), strict=True)
    )
    if not is_sound or not all(each is None or isinstance(each, _CONTENT) for each in files.values()):
        raise Unreadable("it has files in another form")
    return Changed(files, *parts)


_USUAL: Final[Mapping[str, Any]] = {"there": [], "executable": [], "moved": {}, "process": ""}
_CONTENT = (bytes, dict, bool)


def written(changed: Changed, process: str | None) -> dict[str, Json]:
    """Return the parts of a step that say what has changed."""
    if not changed.files:
        return {}
    changed = changed._replace(process=process or "")
    rest = {name: encode(part) for name in _USUAL if (part := getattr(changed, name))}
    return {"files": encode(changed.files, utf8=True), **rest}


class Left:
    """The files in ``root`` as processes of a run with these steps have left them there.

    What they did is done again only to files that still are as they left them, or have gone: all others are
    somebody's.
    """

    def __init__(self, steps: Iterable[Step], root: str, files: Files) -> None:
        self._root = root
        self._files = files
        self._left: dict[str, Any] = {}
        for step in steps:
            with suppress(Unreadable):  # the program's run meets it, and says so
                self._left.update(changed_in(step.output).files)

    def change(self, changed: Changed) -> None:
        """Do again what a step says."""
        for path, content in changed.files.items():
            place = os.path.join(self._root, path)
            with suppress(OSError):
                there = self._files.read_bytes(place) if self._files.is_file(place) else None
                if path.endswith("/"):
                    if content is True:
                        self._files.make_directory(place)
                elif content == there or (there is not None and there != self._left.get(path)):
                    continue
                elif content is None:
                    self._files.remove(place)
                elif isinstance(content, bytes) and HIDDEN.encode() not in content:
                    self._files.make_directory(os.path.dirname(place))
                    self._files.write_bytes(place, content)
                self._left[path] = content


class Directory:
    """The run's directory ``root``, as the tape knows it: as it was at the last look, with what the program
    itself has written since.

    ``look`` returns what is in there now, ``own`` are absolute paths of files that are harnpy's.
    """

    def __init__(self, root: str, files: Files, look: Callable[[], Tree], own: Iterable[str]) -> None:
        self._root = root
        self._files = files
        self._look = look
        self._own = {os.path.relpath(each, root) for each in own}
        self._known: Tree | None = None
        #: Files that were written at about the time of the last look, with digests of them.
        self._young: dict[str, bytes] = {}
        #: Whether there is too much in it for looks.
        self.is_too_large = False

    @property
    def is_small(self) -> bool:
        """Whether a look takes no time to speak of."""
        return self._known is not None and len(self._known) <= MOST_FOR_LINES

    def leave_out(self, path: str) -> None:
        """See nothing at an absolute path, and below it, from now on."""
        self._own.add(os.path.relpath(path, self._root))

    def begin(self) -> None:
        """A process is about to begin."""
        if self._known is None and not self.is_too_large:
            self._known = self._seen()
        self._note_young()

    def _seen(self) -> Tree | None:
        found = self._look()
        if len(found) > MOST_ENTRIES:
            self.is_too_large, self._young = True, {}
            return None
        for path in self._own:
            found.pop(path, None)
            if found.pop(f"{path}/", None):
                found = {each: mark for each, mark in found.items() if not each.startswith(f"{path}/")}
        return found

    def _note_young(self) -> None:
        since = time_ns() - _YOUNG
        young = [path for path, mark in (self._known or {}).items() if mark.modified > since]
        self._young = {path: digest for path in young if (digest := self._digest(path))}

    def is_as_known(self, paths: Iterable[str]) -> bool:
        """Return whether nobody has written these files since the last look."""
        known = self._known
        return known is not None and all(known.get(each) == self._mark(each) for each in self._inner(paths))

    def follow(self, paths: Iterable[str]) -> None:
        """The program itself has written, moved or deleted what is at these paths: no process has."""
        if self._known is None:
            return
        for path in self._inner(paths):
            for each in [each for each in self._known if each == path or each.startswith(f"{path}/")]:
                del self._known[each]
            mark, above = self._mark(path), path
            if mark is not None:
                self._known[path], above = mark, os.path.dirname(path)
            while above:
                if self._files.is_dir(self._at(above)):
                    self._known[f"{above}/"] = _DIRECTORY
                else:
                    self._known.pop(f"{above}/", None)
                above = os.path.dirname(above)

    def _inner(self, paths: Iterable[str]) -> list[str]:
        """Return the paths of what is in the directory, from there."""
        found = (os.path.relpath(os.path.join(self._root, path), self._root) for path in paths)
        return [path for path in found if path not in (os.curdir, os.pardir) and not path.startswith("../")]

    def _mark(self, path: str) -> Mark | None:
        """Return what tells a file, None where none is."""
        try:
            status = self._files.status(self._at(path))
        except (OSError, ValueError):
            return None
        if not S_ISREG(status.st_mode):
            return None
        return Mark(status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode)

    def _at(self, path: str) -> str:
        return os.path.join(self._root, path)

    def changed(self) -> Changed:
        """Return what has changed since the last look."""
        before = self._known
        if before is None:
            return _NOTHING
        now = self._known = self._seen()
        if now is None:
            return _NOTHING
        files: dict[str, Any] = dict.fromkeys(sorted(before.keys() - now.keys()))
        gone = {before[path]: path for path in files}
        there, executable, moved, left = [], [], {}, MOST_OF_STEP
        young = self._young
        news = [path for path, mark in now.items() if mark != before.get(path) or path in young]
        for path in sorted(news):
            mark = now[path]
            if mark is _LINK or (mark == before.get(path) and young[path] == self._digest(path)):
                continue
            if mark is _DIRECTORY:
                files[path] = True
                continue
            content = self._content(path, mark, left)
            if content is None:
                continue
            files[path] = content
            left -= len(content) if isinstance(content, bytes) else 0
            if path in before:
                there.append(path)
            elif mark in gone:
                moved[path] = gone[mark]
            if mark.mode & 0o100:
                executable.append(path)
        self._note_young()
        return Changed(files, there, executable, moved)

    def _content(self, path: str, mark: Mark, most: int) -> Any:
        """Return what a step has of a file; None for one that can't be read."""
        try:
            if mark.size <= min(most, MOST_OF_FILE):
                return self._files.read_bytes(self._at(path))
            return {"size": mark.size, "sha256": self._sum(path).hex()[:16]}
        except OSError:
            return None

    def _digest(self, path: str) -> bytes:
        try:
            return self._sum(path)
        except OSError:
            return b""

    def _sum(self, path: str) -> bytes:
        digest = sha256()
        with self._files.reader(self._at(path)) as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
        return digest.digest()
