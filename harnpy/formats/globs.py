"""Patterns with stars, of names and of paths. Spec: 04 §19, 07 §8."""

from __future__ import annotations

import fnmatch
import re
from itertools import islice, product

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# Patterns in which only ``*`` is special, in two dialects.
#
# `glob_matches` takes any number of stars; `affix_matches`, for policies, one at an end: ``a*`` is a prefix,
# ``*a`` a suffix, and any other pattern is the text itself. Spec: 07 §8.


def glob_matches(pattern: str, text: str) -> bool:
    """Return whether the pattern matches the whole text."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    last = rest.pop()
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    position, end = len(first), len(text) - len(last)
    for segment in rest:
        found = text.find(segment, position, end)
        if found < 0:
            return False
        position = found + len(segment)
    return True


def affix_matches(pattern: str, text: str) -> bool:
    if pattern.endswith("*"):
        return text.startswith(pattern[:-1])
    if pattern.startswith("*"):
        return text.endswith(pattern[1:])
    return pattern == text


def first_match(patterns: Iterable[str], text: str) -> str | None:
    """Return the first of the affix patterns that ``text`` matches."""
    return next((pattern for pattern in patterns if affix_matches(pattern, text)), None)


def common(outer: Iterable[str], inner: Iterable[str]) -> tuple[str, ...]:
    """Return the affix patterns of each list that the other covers, inner ones first."""
    ours, theirs = list(inner), list(outer)
    narrower = [pattern for pattern in ours if first_match(theirs, pattern) is not None]
    narrower += [pattern for pattern in theirs if first_match(ours, pattern) is not None]
    return tuple(dict.fromkeys(narrower))


# Patterns of paths, as `glob` takes them. Spec: 04 §19.
#
# ``*`` and ``?`` match any character, ``/`` too; ``**/`` is any directories or none; ``[ab]``, ``[a-z]`` and
# ``[!ab]`` are choices of a character, ``{a,b}`` of patterns; a backslash takes a character as it is.


#: How many patterns the choices of one may come to.
_MOST = 1000
#: Characters of a pattern.
_LONGEST = 1 << 13


class PatternError(ValueError):
    """A pattern is wrong."""


def path_matcher(pattern: str) -> Callable[[str], bool]:
    """Return what tells whether the pattern matches the whole of a path. Raises `PatternError`."""
    if len(pattern) > _LONGEST:
        raise PatternError(f"a pattern of {len(pattern)} characters: more than {_LONGEST} are no path's")
    plain = (each for choice in _choices(pattern) for each in _without_directories(choice))
    patterns = [*islice(plain, _MOST + 1)]
    if len(patterns) > _MOST:
        raise _too_many(pattern)
    # `translate` writes what can't backtrack beyond a star.
    expression = re.compile("|".join(map(fnmatch.translate, patterns)))
    return lambda path: expression.match(path) is not None


def _choices(pattern: str) -> list[str]:
    """Return the patterns of `fnmatch` that the choices in braces come to."""
    pieces = _Reader(pattern).pieces("")
    return _joined(pattern, pieces)


def _joined(pattern: str, pieces: list[list[str]]) -> list[str]:
    count = 1
    for piece in pieces:
        count *= len(piece)
    if count > _MOST:
        raise _too_many(pattern)
    return ["".join(parts) for parts in product(*pieces)]


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    def pieces(self, ends: str) -> list[list[str]]:
        """Read up to a character of ``ends``: parts of the pattern, each with its choices."""
        found: list[list[str]] = []
        while self._at < len(self._pattern):
            char = self._pattern[self._at]
            if char in ends:
                return found
            self._at += 1
            if char == "{":
                found.append(self._alternatives())
            elif char == "[":
                found.append([self._characters()])
            elif char == "\\":
                found.append([self._escaped()])
            else:
                found.append([char])
        if ends:
            raise PatternError(f"unclosed '{{' in '{self._pattern}'")
        return found

    def _alternatives(self) -> list[str]:
        found: list[str] = []
        while True:
            found += _joined(self._pattern, self.pieces(",}"))
            if len(found) > _MOST:
                raise _too_many(self._pattern)
            self._at += 1
            if self._pattern[self._at - 1] == "}":
                return found

    def _characters(self) -> str:
        begin = self._at - 1
        first = begin + (2 if self._pattern.startswith("!", self._at) else 1)
        end = self._pattern.find("]", first + 1)
        if end < 0:
            raise PatternError(f"unclosed '[' in '{self._pattern}'")
        self._at = end + 1
        return self._pattern[begin : self._at]

    def _escaped(self) -> str:
        if self._at == len(self._pattern):
            raise PatternError(f"'{self._pattern}' ends in a backslash")
        char = self._pattern[self._at]
        self._at += 1
        return f"[{char}]" if char in "*?[" else char


def _without_directories(pattern: str) -> Iterator[str]:
    """Yield the pattern for each ``**/`` at the beginning of a name with and without it."""
    at = 0
    while (at := pattern.find("**/", at)) >= 0:
        if at == 0 or pattern[at - 1] == "/":
            yield from _without_directories(pattern[:at] + pattern[at + 3 :])
            yield from (pattern[: at + 3] + rest for rest in _without_directories(pattern[at + 3 :]))
            return
        at += 3
    yield pattern


def _too_many(pattern: str) -> PatternError:
    return PatternError(f"'{pattern}' has more than {_MOST} choices")
