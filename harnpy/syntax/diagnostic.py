"""Diagnostics: what is wrong with a source text, where, how it is printed, and the errors that carry it.

`Lines` is the only code that turns offsets into lines and columns. Both count characters (Unicode scalars);
lines and columns start at 1. `rendered` is the one way to print a diagnostic. Spec: 01 §1, §9, §10; 09 §1.4.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Paint = Callable[[str, str], str]

#: Longer source lines are shown in part, in characters.
_LONGEST_LINE = 240


class Span:
    """``source[start:end]``, with the position of its first character."""

    __slots__ = ("column", "end", "line", "start")

    def __init__(self, start: int, end: int, line: int, column: int) -> None:
        self.start = start
        self.end = end
        self.line = line
        self.column = column

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Span) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Span({self.start}, {self.end}, {self.line}, {self.column})"

    def _key(self) -> tuple[int, int, int, int]:
        return self.start, self.end, self.line, self.column


class Lines:
    """The lines of one source text. Counts when asked; nothing is prepared."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._texts: list[str] | None = None

    def line(self, offset: int) -> int:
        return self.source.count("\n", 0, offset) + 1

    def locate(self, offset: int) -> tuple[int, int]:
        """The line and column of ``offset``; an offset past the end is just past the last character."""
        offset = min(offset, len(self.source))
        return self.line(offset), offset - self.source.rfind("\n", 0, offset)

    def span(self, start: int, end: int) -> Span:
        return Span(start, end, *self.locate(start))

    def text(self, line: int) -> str | None:
        """Line number ``line`` without its line feed; None when there is no such line.

        A final line feed ends the last line, it does not begin another.
        """
        if self._texts is None:
            self._texts = self.source.split("\n")
        if line > len(self._texts) or (line == len(self._texts) > 1 and not self._texts[-1]):
            return None
        return self._texts[line - 1]

    def excerpt(self, line: int, column: int) -> tuple[str, int] | None:
        """The line to show for a position, and the column in what is shown.

        All of it without a carriage return at its end, unless it is too long to find the place in: then what
        is around it. A secret in it is hidden: what is shown ends in logs.
        """
        text = self.text(line)
        if text is not None:
            from harnpy.formats.secrets.forms import hidden  # loaded when something is wrong

            text = hidden(text.removesuffix("\r"))
        if text is None or len(text) <= _LONGEST_LINE:
            return None if text is None else (text, column)
        first = max(column - 1 - _LONGEST_LINE // 2, 0)
        last = min(first + _LONGEST_LINE, len(text))
        head, tail = "…" if first else "", "…" if last < len(text) else ""
        return f"{head}{text[first:last]}{tail}", column - first + len(head)


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
    """A change that mends the cause of a diagnostic. A ``safe`` one can't change what the program does."""

    __slots__ = ("edits", "safe")

    def __init__(self, edits: Sequence[Edit], safe: bool = True) -> None:
        self.edits = tuple(edits)
        self.safe = safe

    def shifted(self, by: int) -> Fix:
        """Return the same fix for a text that stands ``by`` characters further on."""
        return Fix([Edit(edit.start + by, edit.end + by, edit.text) for edit in self.edits], self.safe)


class Diagnostic:
    """An error or a warning: what is wrong, where, and what to do about it.

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


_BLUE, _CYAN, _MAGENTA = "34", "1;36", "1;35"
_TINTS = {"error": "1;31", "warning": "1;33", "note": _MAGENTA}
#: The longest text of an edit that is shown as what to write, in characters.
_SHORT = 60


def rendered(found: Diagnostic, lines: Lines, file: str, *, colour: bool = False) -> str:
    """A diagnostic as text, ending with a line feed. ``lines`` are those of the file."""
    rendering = _Rendering(found, lines, file, _paint if colour else _plain)
    return "\n".join(rendering.all()) + "\n"


class _Rendering:
    def __init__(self, found: Diagnostic, lines: Lines, file: str, paint: Paint) -> None:
        self.found = found
        self.lines = lines
        self.file = file
        self.paint = paint
        spans = (found.span, *(related.span for related in found.related))
        self.width = max((len(str(span.line)) for span in spans if span is not None), default=1) + 1
        self.margin = " " * self.width

    def all(self) -> Iterator[str]:
        from harnpy.formats.visible import on_one_line

        found, tint = self.found, _TINTS[self.found.severity]
        yield f"{self.paint(tint, found.severity)}: {on_one_line(found.message)}"
        if found.span is not None:
            yield from self.place("-->", self.lines, self.file, found.span, "^", _label(found), tint)
        for related in found.related:
            yield from self.related(related)
        margin = self.margin if found.span is not None else "  "
        help = found.help or (_mending(found.fix, self.lines.source) if found.fix else None)
        if help is not None:
            yield f"{margin} = {self.paint(_CYAN, 'help')}: {on_one_line(help)}"
        yield from (f"{margin} = {self.paint(_MAGENTA, 'note')}: {on_one_line(note)}" for note in found.notes)

    def related(self, related: Related) -> Iterator[str]:
        """Another place; of a file that can't be read, its name alone."""
        from harnpy.formats.visible import on_one_line

        lines = self.lines if related.file is None else related.lines
        if lines is None or related.span is None:
            text = on_one_line(f"{related.message}: {related.file}")
            yield f"{self.margin} = {self.paint(_MAGENTA, 'note')}: {text}"
        else:
            file = related.file or self.file
            yield from self.place(":::", lines, file, related.span, "-", related.message, _BLUE)

    def place(
        self, arrow: str, lines: Lines, file: str, span: Span, mark: str, label: str | None, tint: str
    ) -> Iterator[str]:
        from harnpy.formats.visible import marked, on_one_line

        bar = self.paint(_BLUE, "|")
        yield f"{self.margin}{self.paint(_BLUE, arrow)} {on_one_line(file)}:{span.line}:{span.column}"
        yield f"{self.margin} {bar}"
        shown = lines.excerpt(span.line, span.column)
        if shown is None:
            return
        text, marks = marked(*shown, span.end - span.start, mark)
        yield f"{span.line:>{self.width}} {bar} {text}"
        if label is not None:
            blanks = marks[: -len(marks.lstrip())]
            yield f"{self.margin} {bar} {blanks}{self.paint(tint, marks.lstrip())} {on_one_line(label)}"


def _label(found: Diagnostic) -> str | None:
    """Return what stands beside the carets, the code always among it: `harnpy explain` takes it."""
    if not found.label or not found.code or found.code in found.label:
        return found.label
    return found.code if found.label.replace(" ", "-") == found.code else f"{found.label} [{found.code}]"


def _mending(fix: Fix, source: str) -> str:
    """Return what a fix does, for a diagnostic that says nothing else of what to do. Secrets are hidden."""
    from harnpy.formats.secrets.forms import hidden

    if len(fix.edits) == 1:
        edit = fix.edits[0]
        old, new = source[edit.start : edit.end].strip(), edit.text.strip()
        if len(old) <= _SHORT >= len(new) and "\n" not in old + new and old + new:
            old, new = hidden(old), hidden(new)
            if not old:
                return f"insert `{new}`"
            return f"write `{new}` instead of `{old}`" if new else f"remove `{old}`"
    return f"`harnpy lint --fix{'' if fix.safe else ' --unsafe-fixes'}` mends this"


def _paint(code: str, text: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"


def _plain(code: str, text: str) -> str:
    return text


def tinted(severity: str, text: str) -> str:
    """Return a text in the colour of a severity, for a terminal."""
    return _paint(_TINTS[severity], text)


class SourceFault(Exception):
    """A program was refused before it ran.

    ``message`` is the message form of the first error, ``diagnostics`` holds all of them in source
    order, ``source`` and ``file`` are what they refer to.
    """

    def __init__(self, message: str, diagnostics: list[Diagnostic], source: str, file: str) -> None:
        super().__init__(message)
        self.message = message
        self.diagnostics = diagnostics
        self.source = source
        self.file = file

    def render(self, colour: bool = False) -> str:
        """The diagnostic form of every error, as the command line prints it."""

        lines = Lines(self.source)
        return "".join(rendered(found, lines, self.file, colour=colour) for found in self.diagnostics)


class SyntaxFault(SourceFault):
    """The text does not lex or parse: ``Expected X, got T at L:C`` and its kin (01 §9.1)."""


class LexFault(SyntaxFault):
    """Not even tokens: reported alone."""


class CompileFault(SourceFault):
    """The tree breaks a rule of structure: ``Compile error at line N: TEXT`` (01 §10)."""

    def __init__(self, line: int, text: str, diagnostics: list[Diagnostic], source: str, file: str) -> None:
        super().__init__(f"Compile error at line {line}: {text}", diagnostics, source, file)
        self.line = line
        self.text = text
