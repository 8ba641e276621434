"""A directory and everything below it. Spec: 04 §19."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, NamedTuple

from harnpy.faults import look

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.world.files import Files


class Found(NamedTuple):
    """Something at ``path``, ``depth`` directories below where the walk began. A link is neither kind."""

    path: str
    is_dir: bool
    is_file: bool
    depth: int


def walk(files: Files, root: str, most: int | None = None, follow: bool = False) -> Iterator[Found]:
    """Go through what is at ``root`` and, at most ``most`` directories deep, below it, by name.

    What can't be looked at or listed is left out; with ``follow`` links are what they lead to, and one that
    leads to a directory around it isn't followed.
    """
    start = Found(root, files.is_dir(root), files.is_file(root), 0)
    if not (start.is_dir or start.is_file or files.exists(root)):
        return
    yield start
    around = frozenset([files.real_path(root)]) if follow and start.is_dir else frozenset()
    waiting: list[tuple[Iterator[Found], frozenset[str]]] = [(_below(files, start, follow, most), around)]
    while waiting:
        look()
        inside, around = waiting[-1]
        found = next(inside, None)
        if found is None:
            waiting.pop()
            continue
        yield found
        if not found.is_dir:
            continue
        within = around
        if follow:
            real = files.real_path(found.path)
            if real in around:
                continue
            within = around | {real}
        waiting.append((_below(files, found, follow, most), within))


def _below(files: Files, directory: Found, follow: bool, most: int | None) -> Iterator[Found]:
    depth = directory.depth + 1
    if not directory.is_dir or (most is not None and depth > most):
        return
    try:
        entries = files.entries(directory.path)
    except OSError:
        return
    for entry in entries:
        path = os.path.join(directory.path, entry.name)
        is_dir, is_file = entry.is_dir, entry.is_file
        if follow and not (is_dir or is_file):
            is_dir, is_file = files.is_dir(path), files.is_file(path)
        yield Found(path, is_dir, is_file, depth)
