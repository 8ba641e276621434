"""Regular expressions, Unicode normal forms and grapheme clusters: what needs the library `regex`.

Spec: 04 §4.2, §13.
"""

from __future__ import annotations

import unicodedata
from functools import partial

import regex  # type: ignore[import-untyped]

from harnpy.formats.regex import (
    MOST_SECONDS,
    PatternError,
    SearchTimeout,
    compiled,
    found,
    matches,
    replaced,
    split,
)
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault, Thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

    Pattern = re.Pattern[str]
    Match = re.Match[str]

builtin = partial(declare, family="strings")

# Regular expressions in the dialect of `harnpy.formats.regex`. Spec: 04 §13.


_MOST_PATTERNS = 256


class Patterns:
    """Compiled patterns by their text and flags."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], Pattern] = {}


def pattern_of(vm: Vm, text: str, flags: str = "") -> Pattern:
    """Return the compiled pattern; throws `Invalid regex: <detail>`."""
    try:
        return compiled_pattern(vm, text, flags)
    except PatternError as error:
        raise Thrown(f"Invalid regex: {error}") from None


def compiled_pattern(vm: Vm, text: str, flags: str = "") -> Pattern:
    """Return the compiled pattern; raises `PatternError`."""
    known: dict[tuple[str, str], Pattern] = vm.state(Patterns).known
    pattern = known.get((text, flags))
    if pattern is None:
        pattern = compiled(text, flags)
        if len(known) >= _MOST_PATTERNS:
            known.clear()
        known[text, flags] = pattern
    return pattern


def found_in(vm: Vm, pattern: Pattern, text: str) -> Iterator[Match]:
    """Yield the matches in ``text``, which end with the running task; throws when they take too long."""
    return matches(pattern, text, _seconds(vm), partial(_look, vm), _timeout)


def is_found(vm: Vm, pattern: Pattern, text: str) -> bool:
    """Return true if there is a match in ``text``; throws when the search takes too long."""
    try:
        return found(pattern, text, seconds=_seconds(vm)) is not None
    except SearchTimeout:
        _look(vm)
        raise _timeout() from None


def _look(vm: Vm) -> None:
    """Raise what is due in the running task."""
    if vm.signal.pending:
        vm.poll()


def _timeout() -> Thrown:
    return Thrown(SearchTimeout().message)


def _seconds(vm: Vm) -> float:
    """Return the seconds that a search may take now."""
    return min(MOST_SECONDS, vm.tasks.time_left()) if vm.signal.pending else MOST_SECONDS


@builtin("regex_match(pattern?: string, text?: string, flags?: string) -> list | nil")
def regex_match(vm: Vm, pattern: str | None, text: str | None, flags: str | None) -> list[str] | None:
    r"""Return all matches, from left to right without overlap; nil if there is none.

    `flags` are letters of `imsx`.

    Example: [regex_match(r"\d+", "10 and 20"), regex_match("x", "none")]  // [["10", "20"], nil]
    """
    if pattern is None or text is None:
        return None
    return [match[0] for match in found_in(vm, pattern_of(vm, pattern, flags or ""), text)] or None


@builtin("regex_captures(pattern?: string, text?: string) -> list")
def regex_captures(vm: Vm, pattern: str | None, text: str | None) -> list[Value]:
    r"""Return `{match, groups}` for each match, and under its own name every named group that took part.

    `groups` has all groups in order, nil for one that took no part.

    Example:
        regex_captures(r"(?P<key>\w+)=(\d+)", "a=1 b=2").map({ m -> m.key + m.groups[1] })  // ["a1", "b2"]
    """
    if pattern is None or text is None:
        return []
    return [
        {name: group for name, group in match.groupdict().items() if group is not None}
        | {"match": match[0], "groups": list(match.groups())}
        for match in found_in(vm, pattern_of(vm, pattern), text)
    ]


@builtin("regex_replace(pattern?: string, replacement?: string, text?: string) -> string?")
@builtin("regex_replace_all(pattern?: string, replacement?: string, text?: string) -> string?")
def regex_replace(vm: Vm, pattern: str | None, replacement: str | None, text: str | None) -> str | None:
    r"""Return `text` with every match replaced.

    In `replacement`, `$1`, `$name` and `${name}` stand for a group (`$0`: the match), `$$` for a dollar.

    Example: regex_replace_all(r"(\w+)@(\w+)", "$2 of $1", "ada@home bob@work")  // "home of ada work of bob"
    """
    if pattern is None or replacement is None or text is None:
        return None
    found = found_in(vm, pattern_of(vm, pattern), text)
    return replaced(found, replacement, text, vm.sizes.characters)


@builtin("regex_split(text?: string, pattern?: string, flags?: string) -> list?")
def regex_split(vm: Vm, text: str | None, pattern: str | None, flags: str | None) -> list[str] | None:
    r"""Return the pieces of `text` between the matches, including empty ones. The text is the first argument.

    Example: regex_split("a, b;c", r"[,;]\s*")  // ["a", "b", "c"]
    """
    if text is None or pattern is None:
        return None
    return split(found_in(vm, pattern_of(vm, pattern, flags or ""), text), text)


# Normal forms, grapheme clusters, and padding that counts them. Spec: 04 §4.2.


_FORMS = ("NFC", "NFD", "NFKC", "NFKD")
_GRAPHEME = regex.compile(r"\X")


def _graphemes(s: str) -> list[str]:
    clusters: list[str] = _GRAPHEME.findall(s)
    return clusters


@builtin('unicode_normalize(s: string, form: string = "NFC") -> string')
def unicode_normalize(vm: Vm, s: str, form: str) -> str:
    """Return `s` in the normal form `NFC`, `NFD`, `NFKC` or `NFKD` (in any case).

    Example: len(unicode_normalize("é", "NFD"))  // 2
    """
    if form.upper() not in _FORMS:
        raise RuntimeFault("unicode_normalize: form must be NFC, NFD, NFKC, or NFKD")
    return unicodedata.normalize(form.upper(), s)  # type: ignore[arg-type]


@builtin("unicode_graphemes(s: string) -> list")
def unicode_graphemes(vm: Vm, s: str) -> list[str]:
    """Return the characters as a reader sees them: extended grapheme clusters.

    Example: unicode_graphemes("né👍🏽")  // ["n", "é", "👍🏽"]
    """
    return _graphemes(s)


@builtin('str_pad(s: string, width: int = 0, fill: string = " ", side: string = "right") -> string')
def str_pad(vm: Vm, s: str, width: int, fill: str, side: str) -> str:
    """Return `s` padded with the first grapheme of `fill` to `width` graphemes, on `side`.

    `side` is `left`, `right` or `both`; of an odd number of fills one more goes right.

    Example: [str_pad("7", 3, "0", "left"), str_pad("ab", 4) + "|"]  // ["007", "ab  |"]
    """
    missing = width - len(_graphemes(s))
    if missing <= 0:
        return s
    if side not in ("left", "right", "both"):
        raise RuntimeFault("str_pad: side must be left, right, or both")
    unit = _graphemes(fill or " ")[0]
    vm.sizes.check_text(len(s) + len(unit) * missing)
    left = {"left": missing, "right": 0, "both": missing // 2}[side]
    return unit * left + s + unit * (missing - left)
