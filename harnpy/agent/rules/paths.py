"""Paths in the arguments of calls, compared as what they lead to. Spec: 07 §8.6.

Patterns are those of policies (`text.globs.affix_matches`). One of paths is relative to the working
directory, and names what is really there: links in it are not followed. In a path they are.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any

from harnpy.agent.rules.roots import is_in
from harnpy.text.globs import affix_matches, first_match
from harnpy.text.json.compact import compact_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    class Resolver(Protocol):
        """What a task means by a path: see `harnpy.agent.workplace`."""

        def path(self, path: str) -> str:
            """The absolute form of a path."""

        def real_base(self) -> str | None:
            """What the directory leads to that paths are relative to."""

        def real_path(self, path: str) -> str | None:
            """What it leads to, absolute and free of links; None for a text that is no path."""

        def is_dir(self, path: str) -> bool: ...


_ANY = "*"
_MOST_BACK = 64


class Paths:
    """What paths lead to in the working directory of a task."""

    def __init__(self, place: Resolver) -> None:
        self._place = place

    def allow(self, patterns: Sequence[str], value: Any, declared: bool) -> bool:
        """Whether a value has texts, each of which is a path that matches a pattern.

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
        """Whether any text in a value matches a pattern, as it is or as what it leads to."""
        texts = texts_in(value)[0] or [compact_json(value)]
        return any(
            first_match(patterns, text) is not None or self._leads_to(patterns, text, anywhere=True)
            for text in texts
        )

    def match(self, patterns: Sequence[str], text: str) -> bool:
        """Whether what a path leads to matches a pattern; ``*`` also matches what is no path.

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
