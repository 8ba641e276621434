"""Paths in the arguments of calls: the directories they must be in, and patterns, compared as they resolve.

Patterns are those of policies (`globs.affix_matches`). One of paths is relative to the working directory, and
names what is really there: links in it are not followed. In a path they are. Spec: 04 §19; 07 §8.1, §8.6.
"""

from __future__ import annotations

import os.path
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import MisuseError
from harnpy.formats.globs import affix_matches, first_match
from harnpy.formats.json import compact_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    #: Returns what a path leads to, absolute and free of links; None for a text that is no path.
    RealPath = Callable[[str], str | None]

    class Resolver(Protocol):
        """Resolves a task's paths: see `harnpy.agent.workplace`."""

        def path(self, path: str) -> str:
            """The absolute form of a path."""

        def real_base(self) -> str | None:
            """Return the target of the directory that paths are relative to."""

        def real_path(self, path: str) -> str | None:
            """Return the target of a path, absolute and free of links; None for a text that is no path."""

        def is_dir(self, path: str) -> bool: ...


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
        """Return True if a path, absolute and free of links, is in one of them."""
        return any(is_in(path, root) for root in self.paths)


def _placed(path: str, real_path: RealPath) -> str:
    real = real_path(path)
    if real is None:
        raise MisuseError(f"policy: workspace_roots: '{path}' is no path of a directory")
    return real


def outside_roots(roots: Roots, effect: str, path: str) -> str:
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


def meeting_roots(bounds: Sequence[Roots]) -> tuple[str, ...]:
    """Return roots that allow what all placed ``bounds``, which are some, allow."""
    first, *others = bounds
    roots = first.paths
    for other in others:
        inner = [root for root in roots if other.contain(root)]
        outer = [root for root in other.paths if Roots(roots).contain(root)]
        roots = tuple(dict.fromkeys(inner + outer))
    return roots or (NOWHERE,)


def is_in(path: str, directory: str) -> bool:
    """Return True if a normal path is a directory's, or of something in it."""
    if directory == ".":
        return not path.startswith("/") and path.partition("/")[0] != ".."
    return path == directory or path.startswith(directory.rstrip("/") + "/")


_ANY = "*"
_MOST_BACK = 64


class Paths:
    """The targets of paths in the working directory of a task."""

    def __init__(self, place: Resolver) -> None:
        self._place = place

    def allow(self, patterns: Sequence[str], value: Any, declared: bool) -> bool:
        """Return True if a value has texts, each of which is a path that matches a pattern.

        Unless it was ``declared`` to be paths, it may also be a value without texts, compared as JSON, or
        one of URLs.
        """
        texts, _ = texts_in(value)
        if _ANY in patterns:
            return True
        if declared:
            return bool(texts) and self.refused(patterns, value) is None
        if not texts:
            return first_match(patterns, compact_json(value)) is not None
        urls = [pattern for pattern in patterns if "://" in pattern]
        return all(first_match(urls, text) or self.match(patterns, text) for text in texts)

    def refused(self, patterns: Sequence[str], value: Any) -> str | None:
        """Return what in a value is no path that matches a pattern, if anything is."""
        if _ANY in patterns:
            return None
        texts, others = texts_in(value)
        refused = next((text for text in texts if not self.match(patterns, text)), None)
        return compact_json(value) if refused is None and others else refused

    def touch(self, patterns: Sequence[str], value: Any) -> bool:
        """Return True if any text in a value matches a pattern, as it is or as what it leads to."""
        texts = texts_in(value)[0] or [compact_json(value)]
        return any(
            first_match(patterns, text) is not None or self._leads_to(patterns, text, anywhere=True)
            for text in texts
        )

    def match(self, patterns: Sequence[str], text: str) -> bool:
        """Return True if the target of a path matches a pattern; ``*`` also matches what is no path.

        So must the directories that would have to be made on the way, only to be left by a ``..``.
        """
        return _ANY in patterns or (
            self._leads_to(patterns, text)
            and all(self._leads_to(patterns, each) for each in self._made(text))
        )

    def _leads_to(self, patterns: Sequence[str], text: str, anywhere: bool = False) -> bool:
        real, directory = self.real(text), self._place.real_base()
        if real is None or directory is None:
            return False
        return any(_matches(pattern, real, directory, anywhere) for pattern in patterns)

    def _made(self, text: str) -> list[str]:
        names, end = text.split("/"), self.real(text) or ""
        ways = ("/".join(names[:place]) for place, name in enumerate(names) if name == "..")
        missing = ((way, self.real(way)) for way in ways if way and not self._place.is_dir(way))
        return [way for way, real in missing if real is None or not is_in(end, real)]

    def real(self, text: str) -> str | None:
        """Return the absolute path without links that a text leads to; None for a text that is no path.

        Shells have another meaning of a text that starts with ``~``, so it is no path. One that goes back
        and forth endlessly would take as long to follow.
        """
        if not text or text.startswith("~") or text.split("/").count("..") > _MOST_BACK:
            return None
        return self._place.real_path(text)


class Lexical:
    """For rules without files: all directories are there, no path has links; see `Resolver`."""

    def __init__(self, directory: str = "/") -> None:
        self._directory = directory

    def path(self, path: str) -> str:
        return os.path.join(self._directory, path)

    def real_base(self) -> str:
        return self._directory

    def real_path(self, path: str) -> str:
        return _normal(self.path(path))

    def is_dir(self, path: str) -> bool:
        return True


LEXICAL = Paths(Lexical())


def texts_in(value: Any, keys: bool = True) -> tuple[list[str], bool]:
    """Return the texts in a value, and whether it has anything else but lists and dicts of them.

    The keys of a dict are texts like its values unless they can be names of fields; or ``keys`` is false.
    """
    texts: list[str] = []
    others, left = False, [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, dict):
            left += [key for key in item if keys and not key.isidentifier()]
            left += item.values()
        elif isinstance(item, list):
            left += item
        else:
            others = True
    return texts, others


def _matches(pattern: str, path: str, directory: str, anywhere: bool) -> bool:
    if pattern == _ANY:
        return True
    if pattern.endswith("*"):
        return path.startswith(_beginning(pattern[:-1], directory))
    if pattern.startswith("*"):
        return affix_matches(pattern, path) if anywhere else _ends_inside(pattern, path, directory)
    return bool(pattern) and path == _normal(os.path.join(directory, pattern))


def _beginning(prefix: str, directory: str) -> str:
    """Return the absolute form of a beginning of paths; what follows its last slash is part of a name."""
    head, slash, name = prefix.rpartition("/")
    return _normal(os.path.join(directory, head + slash)).rstrip("/") + "/" + name


def _ends_inside(pattern: str, path: str, directory: str) -> bool:
    return is_in(path, directory) and affix_matches(pattern, path[len(directory.rstrip("/")) + 1 :])


def _normal(path: str) -> str:
    return os.path.normpath("/" + path.lstrip("/"))


# What the paths of a call led to when it was allowed: they must do so when they are used. Spec: 07 §8.6.


class Lead(NamedTuple):
    """A path as a call has it, made absolute and normal, and what it led to."""

    named: str
    real: str

    def left_by(self, named: str, real: str) -> str | None:
        """Return why a use of the path, or of what is in it, is refused: it leads elsewhere, to ``real``.

        ``named`` is absolute and normal.
        """
        if not is_in(named, self.named) or is_in(real, self.real):
            return None
        return f"sandbox violation: '{named}' led to '{self.real}' when the call was allowed, now to '{real}'"


class Noting:
    """``place`` during one call, of which it is noted what rules asked. What it answers once, it keeps to."""

    def __init__(self, place: Resolver) -> None:
        self._place = place
        self._noted: dict[str, str | None] = {}
        self.path, self.is_dir = place.path, place.is_dir
        self.real_base = cache(place.real_base)

    def real_path(self, path: str) -> str | None:
        if path not in self._noted:
            self._noted[path] = self._place.real_path(path)
        return self._noted[path]

    def leads(self) -> tuple[Lead, ...]:
        """Return what rules were told, for each form in which it may be used."""
        found: dict[Lead, None] = {}
        for path, real in self._noted.items():
            if real is not None:
                for named in (self.path(path), os.path.join(self.real_base() or "/", path)):
                    found[Lead(os.path.normpath(named), real)] = None
        return tuple(found)
