"""The files of a run as they were when it began: what the run left on the disk, undone. Spec: 13 §5.2.

A branch begins where its run did. What the run wrote lies on the disk by now, and the branch would see its
own future. A tape has no copy of what was written, but what tells it from anything else: so a file that is
still as the run left it is known, and what it was before often follows.
"""

from __future__ import annotations

import os.path
from contextlib import suppress
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from harnpy.durable.journal import READ, WRITE
from harnpy.durable.values import Unreadable, decode, told
from harnpy.tape.description import kind_of
from harnpy.tape.directory import changed_in
from harnpy.tape.known_files import overwritten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from harnpy.tape.directory import Changed
    from harnpy.tape.overlay import Overlay
    from harnpy.workflow.engines.contract import Json, Step

_WHOLE = frozenset({"read_text", "read_bytes"})
_LOOKS = frozenset({"exists", "is_file", "is_dir"})
#: What makes the directory of a file that it writes.
_MAKES_ABOVE = frozenset({"write_text", "replace_text"})


class _Content(NamedTuple):
    """What a file holds: what was in ``origin`` when the run began, if anything, and what was added, each as
    it was told."""

    origin: str | None
    added: tuple[Json, ...] = ()


class _Files:
    """What the files of a run held, as far as its tape tells. None: there is no such file."""

    def __init__(self, cwd: str, key: Callable[[str], str]) -> None:
        self._cwd = cwd
        #: Returns the one path of what a path leads to, through links.
        self._key = cache(key)
        self.now: dict[str, _Content | None] = {}
        #: Files as they were at the start. None: there was none.
        self.first: dict[str, bytes | None] = {}
        #: Directories that the run made, and those that were there.
        self.made: set[str] = set()
        self.there: set[str] = set()
        #: Files that a process has changed, and whose text before that isn't known.
        self.unknown: set[str] = set()

    def at(self, path: str) -> str:
        return self._key(os.path.join(self._cwd, path))

    def read(self, asked: list[Json], output: dict[str, Json]) -> None:
        """Take notice of what was read."""
        method, key = asked[0], self.at(asked[1])
        if key in self.now:
            return
        if method in _WHOLE and "ok" in output:
            try:
                data = decode(output["ok"])
            except Unreadable:
                return
            self.first.setdefault(key, data.encode("utf-8", "surrogatepass") if type(data) is str else data)
        elif (method in _WHOLE and _is_missing(output)) or (method in _LOOKS and output.get("ok") is False):
            self.first.setdefault(key, None)
        elif method in ("is_dir", "list_dir", "entries") and output.get("ok"):
            self.there.add(key)

    def lose(self, asked: list[Json], output: dict[str, Json]) -> None:
        """Take notice of the text that was overwritten, or deleted."""
        path = overwritten(asked) if "was" in output else None
        if path is not None and self.at(path) not in self.now:
            self.first.setdefault(self.at(path), decode(output["was"]))

    def change(self, changed: Changed) -> None:
        """Take notice of what processes have changed."""
        before = {old: self._at_present(self.at(old)) for old in changed.moved.values()}
        for path, content in changed.files.items():
            key = self.at(path.rstrip("/"))
            if path.endswith("/"):
                if content is True:
                    self._make(key)
                continue
            if path in changed.there and key not in self.now and key not in self.first:
                self.unknown.add(key)
            if content is None:
                self.now[key] = None
            elif path in changed.moved:
                self.now[key] = before[changed.moved[path]]
            elif isinstance(content, bytes):
                self.now[key] = _Content(None, (told(content),))
            else:
                self.now.pop(key, None)
                self.unknown.add(key)

    def write(self, asked: list[Json]) -> None:
        """Take notice of what was written, moved or deleted."""
        method, key, rest = asked[0], self.at(asked[1]), asked[2:]
        if method in _MAKES_ABOVE:
            self._make(os.path.dirname(key))
        if method in ("write_bytes", "write_text", "replace_text"):
            adds = method != "replace_text" and len(rest) > 1 and rest[1] is True
            former = self._at_present(key) if adds else _Content(None)
            former = former or _Content(None)
            self.now[key] = former._replace(added=(*former.added, rest[0]))
        elif method in ("rename", "copy"):
            self.now[self.at(rest[0])] = self._at_present(key)
            if method == "rename":
                self.now[key] = None
        elif method in ("remove", "delete_file"):
            for each in (key, *self.now):
                if each == key or each.startswith(key + "/"):
                    self.now[each] = None
        elif method == "make_directory":
            self._make(key)

    def _make(self, directory: str) -> None:
        if directory not in self.there:
            self.made.add(directory)

    def _at_present(self, key: str) -> _Content | None:
        return self.now.get(key, _Content(key))


def undo(
    steps: Iterable[Step], overlay: Overlay, cwd: str, kept: Iterable[str] = ()
) -> Mapping[str, bytes | None]:
    """Have ``overlay`` show the files that a run with these steps wrote as they were when it began, those
    that still are as it left them. Those in ``kept`` stay as they are.

    Return what is known of files as they were then, by absolute path; None: there was none.
    """
    files = _Files(cwd, overlay.key)
    for step in steps:
        output = step.output
        with suppress(Unreadable):  # the program's run meets it, and says so
            files.change(changed_in(output))
        asked = output.get("asked") if isinstance(output, dict) else None
        if not isinstance(asked, list) or len(asked) < 2 or not isinstance(asked[1], str):
            continue
        if kind_of(step.key) == READ:
            files.read(asked, output)
        elif kind_of(step.key) == WRITE and "ok" in output:
            files.lose(asked, output)
            files.write(asked)
    _undo(files, overlay, overlay.key(cwd), {overlay.key(each) for each in kept})
    return files.first


def _undo(files: _Files, overlay: Overlay, cwd: str, kept: set[str]) -> None:
    first, undone = files.first, []
    for key, content in files.now.items():
        data = overlay.read_bytes(key) if overlay.is_file(key) else None
        before = _before(content, data)
        if key in kept or before is None or (key in files.unknown and key not in first):
            continue
        undone.append(key)
        if content is not None and content.origin is not None and (before or first.get(content.origin)):
            first.setdefault(content.origin, before)
    for key in undone:
        data = first.get(key)
        if data is not None:
            overlay.give(key, data)
        elif overlay.exists(key):
            overlay.hide(key)
    for key in sorted(files.made, key=len, reverse=True):
        while key.startswith(cwd + "/") and _is_empty(overlay, key) and key not in files.there:
            overlay.hide(key)
            key = os.path.dirname(key)


def _is_empty(overlay: Overlay, key: str) -> bool:
    return overlay.is_dir(key) and not overlay.entries(key)


def _before(content: _Content | None, data: bytes | None) -> bytes | None:
    """Return what a file with ``data`` held before anything was added; None unless it is ``content``."""
    if content is None or data is None:
        return b"" if content is None and data is None else None
    for each in reversed(content.added):
        size = len(each.encode("utf-8", "surrogatepass")) if isinstance(each, str) else _size(each)
        if size is None or size > len(data):
            return None
        data, piece = data[: len(data) - size], data[len(data) - size :]
        if not _is_told(piece, each):
            return None
    return None if content.origin is None and data else data


def _size(told: Json) -> int | None:
    return told.get("size") if isinstance(told, dict) else None


def _is_told(data: bytes, told: Json) -> bool:
    if isinstance(told, str):
        return data == told.encode("utf-8", "surrogatepass")
    return bool(sha256(data).hexdigest()[:16] == told.get("sha256"))


def _is_missing(output: dict[str, Json]) -> bool:
    return bool(output.get("error", {}).get("type") == "builtins:FileNotFoundError")
