"""The directories that the files of a policy must be in: its `workspace_roots`. Spec: 04 §19, 07 §8.1."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, NamedTuple

from harnpy.faults import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    #: Returns what a path leads to, absolute and free of links; None for a text that is no path.
    RealPath = Callable[[str], str | None]


#: A root that nothing is in: no roots at all would restrict nothing.
NOWHERE = "/dev/null/nowhere"


class Roots(NamedTuple):
    """A path must be in one of ``paths``. Those that are ``placed`` are absolute and free of links."""

    paths: tuple[str, ...]
    placed: bool = False

    def place(self, real_path: RealPath) -> Roots:
        """Return what they lead to now: a link that somebody changes later leads to no other root.

        Raises `MisuseError` for a root that is no path.
        """
        if self.placed:
            return self
        return Roots(tuple(_placed(path, real_path) for path in self.paths), True)

    def contain(self, path: str) -> bool:
        """Whether a path, absolute and free of links, is in one of them."""
        return any(is_in(path, root) for root in self.paths)


def _placed(path: str, real_path: RealPath) -> str:
    real = real_path(path)
    if real is None:
        raise MisuseError(f"policy: workspace_roots: '{path}' is no path of a directory")
    return real


def outside(roots: Roots, effect: str, path: str) -> str:
    """Return why an effect on a path is refused. Of a process, the path is its working directory."""
    shown = f"outside workspace_roots [{', '.join(roots.paths)}]"
    if effect == "process":
        return f"sandbox violation: process cwd '{path}' is {shown}"
    return f"sandbox violation: attempted to {effect} '{path}' {shown}"


def common_roots(outer: tuple[str, ...] | None, inner: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the inner roots that are in an outer one, as far as their text shows it; None are no roots."""
    if outer is None or inner is None:
        return inner if outer is None else outer
    parents = [os.path.normpath(parent) for parent in outer]
    return tuple(root for root in inner if any(is_in(os.path.normpath(root), parent) for parent in parents))


def meeting(bounds: Sequence[Roots]) -> tuple[str, ...]:
    """Return roots that allow what all placed ``bounds``, which are some, allow."""
    first, *others = bounds
    roots = first.paths
    for other in others:
        inner = [root for root in roots if other.contain(root)]
        outer = [root for root in other.paths if Roots(roots).contain(root)]
        roots = tuple(dict.fromkeys(inner + outer))
    return roots or (NOWHERE,)


def is_in(path: str, directory: str) -> bool:
    """Whether a normal path is a directory's, or of something in it."""
    if directory == ".":
        return not path.startswith("/") and path.partition("/")[0] != ".."
    return path == directory or path.startswith(directory.rstrip("/") + "/")
