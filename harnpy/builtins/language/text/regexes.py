"""Regular expressions. Spec: 04 §13. The dialect is `harnpy.text.regex.syntax`'s."""

from __future__ import annotations

from harnpy.text.regex.syntax import PatternError, compiled
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import Thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

    Pattern = re.Pattern[str]
    Match = re.Match[str]

_MOST_PATTERNS = 256


class Patterns:
    """Compiled patterns by their text and flags."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], Pattern] = {}


def pattern_of(vm: Vm, text: str, flags: str = "") -> Pattern:
    """The compiled pattern; throws `Invalid regex: <detail>`."""
    try:
        return compiled_pattern(vm, text, flags)
    except PatternError as error:
        raise Thrown(f"Invalid regex: {error}") from None


def compiled_pattern(vm: Vm, text: str, flags: str = "") -> Pattern:
    """The compiled pattern; raises `PatternError`."""
    known: dict[tuple[str, str], Pattern] = vm.state(Patterns).known
    pattern = known.get((text, flags))
    if pattern is None:
        pattern = compiled(text, flags)
        if len(known) >= _MOST_PATTERNS:
            known.clear()
        known[text, flags] = pattern
    return pattern


@builtin("regex_match(pattern?: string, text?: string, flags?: string) -> list | nil", family="strings")
def regex_match(vm: Vm, pattern: str | None, text: str | None, flags: str | None) -> list[str] | None:
    """All matches, from left to right without overlap; nil if there is none.

    `flags` are letters of `imsx`.
    """
    if pattern is None or text is None:
        return None
    return [match[0] for match in _matches(pattern_of(vm, pattern, flags or ""), text)] or None


@builtin("regex_captures(pattern?: string, text?: string) -> list", family="strings")
def regex_captures(vm: Vm, pattern: str | None, text: str | None) -> list[Value]:
    """For each match `{match, groups}`, and under its own name every named group that took part.

    `groups` has all groups in order, nil for one that took no part.
    """
    if pattern is None or text is None:
        return []
    return [
        {name: group for name, group in match.groupdict().items() if group is not None}
        | {"match": match[0], "groups": list(match.groups())}
        for match in _matches(pattern_of(vm, pattern), text)
    ]


@builtin("regex_replace(pattern?: string, replacement?: string, text?: string) -> string", family="strings")
@builtin(
    "regex_replace_all(pattern?: string, replacement?: string, text?: string) -> string", family="strings"
)
def regex_replace(vm: Vm, pattern: str | None, replacement: str | None, text: str | None) -> str | None:
    """`text` with every match replaced.

    In `replacement`, `$1`, `$name` and `${name}` stand for a group (`$0`: the match), `$$` for a dollar.
    """
    if pattern is None or replacement is None or text is None:
        return None
    out, at = [], 0
    template = _template(replacement)
    for match in _matches(pattern_of(vm, pattern), text):
        out += [text[at : match.start()], *[_filled(part, match) for part in template]]
        at = match.end()
    return "".join([*out, text[at:]])


@builtin("regex_split(text?: string, pattern?: string, flags?: string) -> list", family="strings")
def regex_split(vm: Vm, text: str | None, pattern: str | None, flags: str | None) -> list[str] | None:
    """The pieces of `text` between the matches, empty ones too. Mind that the text comes first."""
    if text is None or pattern is None:
        return None
    pieces, at = [], 0
    for match in _matches(pattern_of(vm, pattern, flags or ""), text):
        pieces.append(text[at : match.start()])
        at = match.end()
    return [*pieces, text[at:]]


def _matches(pattern: Pattern, text: str) -> Iterator[Match]:
    """The matches from left to right, but no empty one right where the one before ended."""
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


def _template(replacement: str) -> list[tuple[str, str]]:
    """``(text, group)`` pieces: the text, then what the group of that name or number holds."""
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
    """The group named behind a dollar ("" if none is), and what follows."""
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
