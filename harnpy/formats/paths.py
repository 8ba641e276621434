"""Paths as text: ``\\`` counts as ``/``, a letter and a colon are a drive. Spec: 04 §18."""

from __future__ import annotations

import re
from typing import NamedTuple

from harnpy.faults import paced

_DRIVE = re.compile(r"[A-Za-z]:(?=/|$)")


class PathText(NamedTuple):
    """A path in parts: ``root`` is ``""``, ``/``, ``X:`` or ``X:/``; ``names`` has no empty ones."""

    root: str
    names: tuple[str, ...]

    @property
    def is_absolute(self) -> bool:
        return self.root.endswith("/")

    @property
    def name(self) -> str:
        return self.names[-1] if self.names else ""

    @property
    def stem(self) -> str:
        return self._cut()[0]

    @property
    def extension(self) -> str:
        """The last extension with its dot."""
        return self._cut()[1]

    def _cut(self) -> tuple[str, str]:
        stem, dot, extension = self.name.rpartition(".")
        if not stem or self.name == "..":
            return self.name, ""
        return stem, dot + extension

    @property
    def parent(self) -> PathText:
        return PathText(self.root, self.names[:-1])

    def with_name(self, name: str) -> PathText:
        """Return the path with another last name; one without names stays as it is."""
        return PathText(self.root, (*self.names[:-1], name)) if self.names else self

    def normal(self) -> PathText:
        """Return the path without ``.``, and without ``..`` but for those at the front of a relative one."""
        names: list[str] = []
        for name in paced(self.names):
            if name == ".":
                continue
            if name != ".." or (not self.is_absolute and (not names or names[-1] == "..")):
                names.append(name)
            elif names:
                names.pop()
        return PathText(self.root, tuple(names))

    def text(self) -> str:
        return self.root + "/".join(self.names)


def path_text(path: str) -> PathText:
    """Return a path's parts."""
    path = path.replace("\\", "/")
    drive = _DRIVE.match(path)
    rest = path[drive.end() :] if drive else path
    root = (drive.group() if drive else "") + ("/" if rest.startswith("/") else "")
    return PathText(root, tuple(name for name in paced(rest.split("/")) if name))


def normalized(path: str) -> str:
    """Return the path without detours; ``.`` when nothing is left of it."""
    return path_text(path).normal().text() or ("." if path else "")


def relative_to(path: str, base: str) -> str | None:
    """Return the way from ``base`` to ``path``; None when only one is absolute, on different drives, and
    where it would lead through a directory that ``base`` doesn't name."""
    there, here = path_text(path).normal(), path_text(base).normal()
    if there.root.lower() != here.root.lower():
        return None
    common = 0
    for name, other in zip(there.names, here.names, strict=False):
        if name != other:
            break
        common += 1
    up = here.names[common:]
    if ".." in up:
        return None
    return "/".join([*(".." for _ in up), *there.names[common:]]) or "."
