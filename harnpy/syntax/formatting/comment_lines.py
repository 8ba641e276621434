"""Comments as the lines that they are printed on. Spec: 01 §12.

Documentation becomes a ``/** … */`` block, a bar of dashes at the top level gets its width, all else stays
as it was written but for blanks at the end of a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from textwrap import dedent
from typing import NamedTuple

from harnpy.syntax.comments import Kind

_BAR = re.compile(r"//\s*-{4,}")
_TITLED_BAR = re.compile(r"//\s*-{4,}\s*([^-\s](?:.*?[^-\s])?)\s*-{4,}")
_BLOCK_MARKS = re.compile(r"/\*|\*/")


class Note(NamedTuple):
    """The text of a comment, and the column (from 0) at which it was written."""

    text: str
    kind: Kind
    column: int
    after_blank: bool = False


def tidy(note: Note, indent: int) -> str:
    """The comment's text, its further lines moved as far as its first."""
    first, *rest = [line.rstrip() for line in note.text.split("\n")]
    margin = " " * note.column
    if all(line.startswith(margin) for line in rest if line):
        rest = [" " * indent + line[note.column :] if line else "" for line in rest]
    return "\n".join([first, *rest])


def own_lines(notes: Sequence[Note], indent: int, line_width: int) -> list[str]:
    """The lines of comments that stand by themselves, indented."""
    lines: list[str] = []
    for run in _runs(notes):
        lines += _documentation(run, indent, line_width) or [
            " " * indent + tidy(note, indent) for note in run
        ]
    return lines


def _runs(notes: Sequence[Note]) -> Iterator[Sequence[Note]]:
    """A run of ``///`` lines is one comment."""
    start = 0
    for at in range(1, len(notes) + 1):
        joined = at < len(notes) and notes[at].kind == notes[at - 1].kind == "doc-line"
        if not joined:
            yield notes[start:at]
            start = at


def _documentation(run: Sequence[Note], indent: int, line_width: int) -> list[str]:
    """The ``/** … */`` block of a run of documentation; nothing for any other comment."""
    if run[0].kind == "doc-line":
        lines = [note.text[3:].removeprefix(" ").rstrip() for note in run]
    elif run[0].kind == "doc":
        lines = _block_text(run[0].text)
    else:
        return []
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    if run[0].kind == "doc-line" and any(map(_BLOCK_MARKS.search, lines)):
        # In a block these would open or close another.
        return []
    margin = " " * indent
    short = f"{margin}/** {' '.join(lines)} */"
    if len(lines) <= 1 and len(short) <= line_width:
        return [short if lines else f"{margin}/** */"]
    return [f"{margin}/**", *(f"{margin} * {line}".rstrip() for line in lines), f"{margin} */"]


def _block_text(text: str) -> list[str]:
    """The lines of a ``/** … */`` without the stars that hold them together."""
    first, *rest = [line.rstrip() for line in text[3:-2].rstrip().split("\n")]
    if all(line.lstrip().startswith("*") for line in rest if line):
        rest = [line.lstrip().removeprefix("*").removeprefix(" ") for line in rest]
    else:
        rest = dedent("\n".join(rest)).split("\n")
    return [first.strip(), *rest]


def paragraphs(notes: Sequence[Note], line_width: int, separator_width: int) -> list[list[str]]:
    """The lines of comments at the top level, parted where blank lines belong: as written, and at bars."""
    found: list[list[str]] = []
    plain: list[Note] = []

    def flush() -> None:
        if plain:
            found.append(own_lines(plain, 0, line_width))
            plain.clear()

    at = 0
    while at < len(notes):
        title, size = _heading(notes[at : at + 3])
        if size:
            flush()
            bar = "// " + "-" * max(separator_width - 3, 4)
            found.append([bar, f"// {title}", bar] if title else [bar])
        else:
            if notes[at].after_blank:
                flush()
            plain.append(notes[at])
        at += size or 1
    flush()
    return found


def is_heading(paragraph: Sequence[str]) -> bool:
    """Whether a paragraph is a bar, which has a blank line behind it whatever follows."""
    return bool(_BAR.fullmatch(paragraph[-1]))


def _heading(notes: Sequence[Note]) -> tuple[str, int]:
    """The title of a heading that the comments begin with, and of how many it is made; 0: there is none."""
    texts = [note.text.rstrip() if note.kind == "line" else "" for note in notes]
    titled = _TITLED_BAR.fullmatch(texts[0])
    if titled:
        return titled[1], 1
    if not _BAR.fullmatch(texts[0]):
        return "", 0
    together = len(notes) == 3 and not notes[1].after_blank and not notes[2].after_blank
    if together and texts[1] and not _BAR.fullmatch(texts[1]) and _BAR.fullmatch(texts[2]):
        title = texts[1].removeprefix("//").strip()
        if title and not _TITLED_BAR.fullmatch(texts[1]):
            return title, 3
    return "", 1
