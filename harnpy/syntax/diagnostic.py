"""A finding about a source text, and the one way to print it. Spec: 09 §1.4, 01 §9.3."""

from __future__ import annotations

from harnpy.syntax.span import Lines, Span

_BLUE, _CYAN, _MAGENTA = "34", "1;36", "1;35"
_TINTS = {"error": "1;31", "warning": "1;33", "note": _MAGENTA}

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Related:
    """Another place that explains a diagnostic: ``declared here``. ``file`` is None in the same file."""

    __slots__ = ("file", "message", "span")

    def __init__(self, message: str, span: Span, file: str | None = None) -> None:
        self.message = message
        self.span = span
        self.file = file


class Edit:
    """Put ``text`` in the place of ``source[start:end]``."""

    __slots__ = ("end", "start", "text")

    def __init__(self, start: int, end: int, text: str) -> None:
        self.start = start
        self.end = end
        self.text = text


class Fix:
    """What would mend the cause of a diagnostic. A ``safe`` one can't change what the program does."""

    __slots__ = ("edits", "safe")

    def __init__(self, edits: Sequence[Edit], safe: bool = True) -> None:
        self.edits = tuple(edits)
        self.safe = safe


class Diagnostic:
    """What is wrong, where, and what to do about it.

    ``severity`` is ``"error"``, ``"warning"`` or ``"note"``. Without a ``span`` only the headline, the
    help and the notes are printed; without a ``label`` there is no caret line. There is a caret for each
    character of the span that stands on its first line, one at least. ``code`` names the rule that was
    broken: `harnpy explain CODE` tells more.
    """

    __slots__ = ("code", "fix", "help", "label", "message", "notes", "related", "severity", "span")

    def __init__(
        self,
        severity: str,
        message: str,
        span: Span | None = None,
        label: str | None = None,
        help: str | None = None,
        notes: tuple[str, ...] = (),
        *,
        code: str | None = None,
        related: tuple[Related, ...] = (),
        fix: Fix | None = None,
    ) -> None:
        self.severity = severity
        self.message = message
        self.span = span
        self.label = label
        self.help = help
        self.notes = notes
        self.code = code
        self.related = related
        self.fix = fix

    def __repr__(self) -> str:
        return f"Diagnostic({self.severity!r}, {self.message!r}, {self.span!r})"

    def render(self, lines: Lines, file: str, *, colour: bool = False) -> str:
        """The diagnostic as text, ending with a line feed. ``lines`` are those of the file."""
        paint = _paint if colour else _plain
        tint = _TINTS[self.severity]
        margin = "  "
        out = [f"{paint(tint, self.severity)}: {self.message}"]
        if self.span is not None:
            margin = " " * (len(str(self.span.line)) + 1)
            out.append(f"{margin}{paint(_BLUE, '-->')} {file}:{self.span.line}:{self.span.column}")
            bar = paint(_BLUE, "|")
            out.append(f"{margin} {bar}")
            shown = lines.excerpt(self.span.line, self.span.column)
            if shown is not None:
                text, column = shown
                out.append(f"{self.span.line:>{len(margin)}} {bar} {text}")
                if self.label is not None:
                    carets = "^" * max(1, min(self.span.end - self.span.start, len(text) - column + 1))
                    out.append(f"{margin} {bar} {' ' * (column - 1)}{paint(tint, carets)} {self.label}")
        if self.help is not None:
            out.append(f"{margin} = {paint(_CYAN, 'help')}: {self.help}")
        out += [f"{margin} = {paint(_MAGENTA, 'note')}: {note}" for note in self.notes]
        return "\n".join(out) + "\n"


def _paint(code: str, text: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"


def _plain(code: str, text: str) -> str:
    return text
