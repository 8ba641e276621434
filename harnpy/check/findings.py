"""Findings: what a check has to say of one file, by offsets. Spec: 03 §1, §2.

They hold no lines and columns: a finding about a function that has moved down with the text above it is still
right once it is shifted, which is what makes a check after an edit cheap.
"""

from __future__ import annotations

from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from harnpy.syntax.ast import Node
    from harnpy.syntax.diagnostic import Diagnostic, Fix, Lines, Related


class Place:
    """``source[start:end]`` of ``file``, or of the one that is checked; ``message`` says why it matters."""

    __slots__ = ("end", "file", "message", "start")

    def __init__(self, message: str, start: int, end: int, file: str | None = None) -> None:
        self.message = message
        self.start = start
        self.end = end
        self.file = file


class Finding:
    """One thing to say. ``code`` names the rule (`harnpy explain CODE`), ``severity`` is error or warning.

    ``places`` explain it; in another file they are shown by name alone. ``label`` stands beside the carets;
    by default it is the code.
    """

    __slots__ = ("code", "end", "fix", "help", "label", "message", "places", "severity", "start")

    def __init__(
        self,
        code: str,
        severity: str,
        message: str,
        start: int,
        end: int,
        *,
        help: str | None = None,
        places: Sequence[Place] = (),
        fix: Fix | None = None,
        label: str | None = None,
    ) -> None:
        self.code = code
        self.severity = severity
        self.message = message
        self.start = start
        self.end = end
        self.help = help
        self.places = tuple(places)
        self.fix = fix
        self.label = label or code

    def shifted(self, by: int, now: Callable[[int], int]) -> Finding:
        """The same finding when what it is about stands ``by`` characters further on.

        ``now`` says where the offsets of its places are.
        """
        places = [
            place if place.file is not None else Place(place.message, now(place.start), now(place.end))
            for place in self.places
        ]
        fix = self.fix and self.fix.shifted(by)
        return Finding(
            self.code,
            self.severity,
            self.message,
            self.start + by,
            self.end + by,
            help=self.help,
            places=places,
            fix=fix,
            label=self.label,
        )

    def diagnostic(
        self, lines: Lines, lines_of: Callable[[str], Lines | None] = lambda file: None
    ) -> Diagnostic:
        """The finding as it is shown; ``lines`` are those of the file.

        ``lines_of`` are those of another file, None when it can't be read.
        """
        from harnpy.syntax.diagnostic import Diagnostic

        related = tuple(_related(place, lines, lines_of) for place in self.places)
        return Diagnostic(
            self.severity,
            self.message,
            lines.span(self.start, self.end),
            self.label,
            _of_prefix(self, lines.source) or self.help,
            code=self.code,
            related=related,
            fix=self.fix,
        )


def _of_prefix(found: Finding, source: str) -> str | None:
    """Return what to write instead of ``f"…"`` where `f` is undeclared: only the text tells."""
    if found.code != "undefined-name" or found.end - found.start != 1:
        return None
    from harnpy.syntax.habits import prefixed_string, unprefixed

    string = prefixed_string(source, found.start)
    return f"in Harn, {unprefixed(string)}" if string else None


def _related(place: Place, lines: Lines, lines_of: Callable[[str], Lines | None]) -> Related:
    from harnpy.syntax.diagnostic import Related

    if place.file is None:
        return Related(place.message, lines.span(place.start, place.end))
    others = lines_of(place.file)
    span = others.span(place.start, place.end) if others is not None else None
    return Related(place.message, span, place.file, others)


def packed(findings: Iterable[Finding]) -> tuple[tuple[Any, ...], ...]:
    """Findings as plain data that `marshal` writes, without their fixes."""
    return tuple(
        (
            *(finding.code, finding.severity, finding.message, finding.start, finding.end),
            *(finding.help, finding.label),
            tuple((place.message, place.start, place.end, place.file) for place in finding.places),
        )
        for finding in findings
    )


def unpacked(data: Iterable[tuple[Any, ...]]) -> list[Finding]:
    """The inverse of `packed`."""
    return [
        Finding(*head, help=help_, label=label, places=[Place(*place) for place in places])
        for *head, help_, label, places in data
    ]


class Findings:
    """The findings of one file in order of discovery; what is said twice of one place is kept once."""

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self._seen: set[tuple[str, int, str]] = set()

    def add(self, finding: Finding) -> None:
        key = (finding.code, finding.start, finding.message)
        if key not in self._seen:
            self._seen.add(key)
            self.found.append(finding)

    def about(
        self,
        severity: str,
        code: str,
        node: Node,
        message: str,
        *,
        help: str | None = None,
        places: Sequence[Place] = (),
        fix: Fix | None = None,
    ) -> None:
        """Add a finding about ``node``."""
        self.add(Finding(code, severity, message, node.start, node.end, help=help, places=places, fix=fix))

    def error(self, code: str, node: Node, message: str, **more: Any) -> None:
        self.about("error", code, node, message, **more)

    def warn(self, code: str, node: Node, message: str, **more: Any) -> None:
        self.about("warning", code, node, message, **more)


def declared_here(node: Node) -> Place:
    """The place of a declaration that a finding is about."""
    return Place("declared here", node.start, node.end)


def respelled(start: int, name: str, near: str | None) -> Fix | None:
    """Return the fix that writes ``near`` in the place of a name; None for what is no name."""
    if near is None or not near.isidentifier():
        return None
    return _replacing(start, start + len(name), near)


def renamed_key(entry: Node, name: str) -> Fix | None:
    """The fix that writes ``name`` in the place of an entry's key; None for one that may be in quotes.

    The tree doesn't say it of a key, but then there is less between it and its value.
    """
    if type(entry) is not ast.DictEntry or type(entry.key) is not ast.Str:
        return None
    end = entry.start + len(entry.key.value)
    return _replacing(entry.start, end, name) if entry.value.start - end <= len(": ") else None


def _replacing(start: int, end: int, text: str) -> Fix:
    from harnpy.syntax.diagnostic import Edit, Fix

    return Fix([Edit(start, end, text)], safe=False)


def has_errors(findings: Iterable[Finding]) -> bool:
    return any(finding.severity == "error" for finding in findings)
