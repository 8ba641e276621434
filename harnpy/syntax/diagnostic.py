"""What is wrong with a source text, where, and what to do about it. Spec: 09 §1.4, 01 §9.3."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.syntax.span import Lines, Span


class Related:
    """Another place that explains a diagnostic: ``declared here``.

    ``file`` is None in the same file; in another one ``lines`` are its lines, and without them (it can't be
    read) there is no ``span``.
    """

    __slots__ = ("file", "lines", "message", "span")

    def __init__(
        self, message: str, span: Span | None, file: str | None = None, lines: Lines | None = None
    ) -> None:
        self.message = message
        self.span = span
        self.file = file
        self.lines = lines


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
