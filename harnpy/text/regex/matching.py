"""Matching, replacing and splitting with a compiled pattern. Spec: 04 §13."""

from __future__ import annotations

from harnpy.faults import Fault, TooLarge

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    Pattern = re.Pattern[str]
    Match = re.Match[str]


#: Seconds of computing that a search may take, and all the matches of a text together: some patterns take
#: exponential time on some texts.
MOST_SECONDS = 10.0

_BETWEEN_LOOKS = 256


class SearchTimeout(Fault):
    """A search took longer than it may."""

    def __init__(self) -> None:
        super().__init__("Regex took too long: the pattern needs too many steps on this text")


def found(pattern: Pattern, text: str, seconds: float = MOST_SECONDS) -> Match | None:
    """Return the first match. Raises `SearchTimeout`."""
    search: Any = pattern.search
    try:
        return search(text, timeout=seconds)  # type: ignore[no-any-return]
    except TimeoutError:
        raise SearchTimeout from None


def matches(
    pattern: Pattern,
    text: str,
    seconds: float,
    look: Callable[[], object],
    timeout: Callable[[], Exception] = SearchTimeout,
) -> Iterator[Match]:
    """Yield the matches from left to right, but no empty one right where the one before ended.

    ``look`` is called now and then, and before a ``timeout`` is raised; what it raises ends the search.
    """
    iterate: Any = pattern.finditer
    at, last_end, until_look = 0, -1, 1
    try:
        while at <= len(text):
            for match in iterate(text, at, timeout=seconds):
                until_look -= 1
                if not until_look:
                    look()
                    until_look = _BETWEEN_LOOKS
                begin, end = match.span()
                if begin == end == last_end:
                    break
                yield match
                last_end = end
                if begin == end:
                    break
            else:
                return
            at = last_end + 1  # behind an empty match the library would go on in its own way
    except TimeoutError:
        look()
        raise timeout() from None


def replaced(found: Iterable[Match], replacement: str, text: str, most: int) -> str:
    """Return ``text`` with every match replaced; ``$1``, ``$name`` and ``${name}`` stand for groups.

    Raises TooLarge when that has more than ``most`` characters.
    """
    out, at, added = [], 0, 0
    template = _template(replacement)
    for match in found:
        pieces = [_filled(part, match) for part in template]
        added += sum(map(len, pieces))
        if added > most:
            raise TooLarge(f"more than {most} characters", most)
        out += [text[at : match.start()], *pieces]
        at = match.end()
    return "".join([*out, text[at:]])


def split(found: Iterable[Match], text: str) -> list[str]:
    """Return the pieces of ``text`` between the matches, empty ones too."""
    pieces, at = [], 0
    for match in found:
        pieces.append(text[at : match.start()])
        at = match.end()
    return [*pieces, text[at:]]


def _template(replacement: str) -> list[tuple[str, str]]:
    """Return ``(text, group)`` pieces: a text, then the group whose match follows it."""
    parts = []
    text, dollar, rest = replacement.partition("$")
    while dollar:
        if rest.startswith("$"):
            parts.append((text + "$", ""))
            rest = rest[1:]
        else:
            name, rest = _reference(rest)
            parts.append((text, name) if name else (text + "$", ""))
        text, dollar, rest = rest.partition("$")
    return [*parts, (text, "")]


def _reference(rest: str) -> tuple[str, str]:
    """Return the group named after a dollar ("" if there is none), and the rest."""
    if rest.startswith("{"):
        name, brace, after = rest[1:].partition("}")
        return (name, after) if brace and name else ("", rest)
    end = 0
    while end < len(rest) and (rest[end] == "_" or (rest[end].isascii() and rest[end].isalnum())):
        end += 1
    return rest[:end], rest[end:]


def _filled(part: tuple[str, str], match: Match) -> str:
    text, name = part
    if not name:
        return text
    try:
        return text + (match[int(name) if name.isascii() and name.isdecimal() else name] or "")
    except (IndexError, ValueError):  # no such group, or thousands of digits
        return text
