"""Matching, replacing and splitting with a compiled pattern. Spec: 04 §13."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    Pattern = re.Pattern[str]
    Match = re.Match[str]


def matches(pattern: Pattern, text: str) -> Iterator[Match]:
    """Yield the matches from left to right, but no empty one right where the one before ended."""
    at, last_end = 0, -1
    while at <= len(text):
        match = pattern.search(text, at)
        if match is None:
            return
        if match.end() == last_end and match.start() == last_end:
            at = last_end + 1
            continue
        yield match
        at = last_end = match.end()


def replaced(pattern: Pattern, replacement: str, text: str) -> str:
    """Return ``text`` with every match replaced; ``$1``, ``$name`` and ``${name}`` stand for groups."""
    out, at = [], 0
    template = _template(replacement)
    for match in matches(pattern, text):
        out += [text[at : match.start()], *[_filled(part, match) for part in template]]
        at = match.end()
    return "".join([*out, text[at:]])


def split(pattern: Pattern, text: str) -> list[str]:
    """Return the pieces of ``text`` between the matches, empty ones too."""
    pieces, at = [], 0
    for match in matches(pattern, text):
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
