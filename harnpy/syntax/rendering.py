"""The one way to print a diagnostic. Spec: 09 §1.4, 01 §9.3."""

from __future__ import annotations

from harnpy.text.secrets.literals import hidden
from harnpy.text.visible import marked, on_one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.syntax.diagnostic import Diagnostic, Fix, Related
    from harnpy.syntax.span import Lines, Span

    Paint = Callable[[str, str], str]

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
        found, tint = self.found, _TINTS[self.found.severity]
        yield f"{self.paint(tint, found.severity)}: {on_one_line(found.message)}"
        if found.span is not None:
            yield from self.place("-->", self.lines, self.file, found.span, "^", found.label, tint)
        for related in found.related:
            yield from self.related(related)
        margin = self.margin if found.span is not None else "  "
        help = found.help or (_mending(found.fix, self.lines.source) if found.fix else None)
        if help is not None:
            yield f"{margin} = {self.paint(_CYAN, 'help')}: {on_one_line(help)}"
        yield from (f"{margin} = {self.paint(_MAGENTA, 'note')}: {on_one_line(note)}" for note in found.notes)

    def related(self, related: Related) -> Iterator[str]:
        """Another place; of a file that can't be read, its name alone."""
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


def _mending(fix: Fix, source: str) -> str:
    """What a fix does, for a diagnostic that says nothing else of what to do. Secrets are hidden."""
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
