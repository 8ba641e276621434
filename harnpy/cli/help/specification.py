"""The specification by section, and the citations that lead there.

A citation names a chapter and a section, `08 §1.4` (or the chapter's file). Further sections share the
chapter: `02 §2–4, §8`. Numbered rows of a table (`| 8.3 …`) count as sections.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from harnpy import shipped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

#: Where the chapters are in the repository.
DIRECTORY = "docs/spec"

_NUMBER = r"[A-C]?\d+(?:\.\d+)*"
_CITATION = re.compile(
    r"(?:\b(?P<chapter>0[1-9]|10)(?:-[a-z-]+\.md)?[\s#*/]+)?"
    rf"§(?P<first>{_NUMBER})(?:[-–]§?(?P<last>{_NUMBER}))?"
)
_HEADING = re.compile(rf"(?P<marks>#+) (?:(?P<number>{_NUMBER})\.? )?(?P<title>.*)")
_ROW = re.compile(r"\| (?P<number>\d+(?:\.\d+)+) (?P<title>[^|]*)")
#: What opens a code block; a line with further backticks only begins with code.
_FENCE = re.compile(r"(`{3,})[^`]*")
#: A citation without a chapter shares that of the one before, within so many characters.
_REACH = 60


@dataclass(frozen=True)
class Citation:
    """A chapter and a section as cited; `chapter` is empty when the text doesn't say which."""

    chapter: str
    section: str

    def __str__(self) -> str:
        return f"{self.chapter} §{self.section}"


@dataclass
class Section:
    """A numbered heading with its lines up to the next numbered heading, or a numbered row of a table."""

    chapter: str
    number: str
    title: str
    level: int
    lines: list[str] = field(default_factory=list)
    is_row: bool = False


@dataclass(frozen=True)
class Chapter:
    """One file of the specification."""

    file: str
    sections: Mapping[str, Section]

    def within(self, number: str) -> list[Section]:
        """Return the section `number` and the sections inside it, in order."""
        found = list(self.sections.values())
        start = found.index(self.sections[number])
        level = found[start].level
        end = next((i for i in range(start + 1, len(found)) if found[i].level <= level), len(found))
        return found[start:end]


@cache
def chapters() -> Mapping[str, Chapter]:
    """Return the chapters by number, `01` to `10`."""
    files = sorted(Path(shipped.directory("spec", in_checkout=DIRECTORY)).glob("[0-9][0-9]-*.md"))
    return {file.name[:2]: _chapter(file) for file in files}


def find(citation: Citation) -> Section | None:
    """Return the section that a citation names, None when there is none."""
    chapter = chapters().get(citation.chapter)
    return chapter.sections.get(citation.section) if chapter else None


def citations(text: str, chapter: str = "") -> Iterator[Citation]:
    """Yield the citations in `text`, both ends and the middle of a range.

    `chapter` is the one meant where no chapter is near the section.
    """
    current, end = chapter, 0
    for match in _CITATION.finditer(text):
        near = match.start() - end <= _REACH
        current = match["chapter"] or (current if near else chapter)
        end = match.end()
        for section in _expand(match["first"], match["last"]):
            yield Citation(current, section)


def _expand(first: str, last: str | None) -> list[str]:
    """Return the numbers from `first` to `last`, which differ in their final part."""
    if last is None:
        return [first]
    stem, start = re.fullmatch(r"(.*?)(\d+)", first).groups()  # type: ignore[union-attr]
    if not re.fullmatch(re.escape(stem) + r"\d+", last):
        return [first, last]
    return [f"{stem}{number}" for number in range(int(start), int(last.removeprefix(stem)) + 1)]


def _chapter(file: Path) -> Chapter:
    chapter = file.name[:2]
    sections: dict[str, Section] = {}
    current: Section | None = None
    for line, code in lines_and_code(file.read_text(encoding="utf-8").splitlines()):
        heading = None if code else _HEADING.fullmatch(line)
        level = len(heading["marks"]) if heading else 0
        if heading and heading["number"]:
            current = Section(chapter, heading["number"], heading["title"], level)
            sections[current.number] = current
        elif current is None or (heading and level <= current.level):
            current = None  # a part or the chapter's title: nothing can cite it
        else:
            current.lines.append(line)
            if not code and (row := _ROW.match(line)) and row["number"].startswith(current.number + "."):
                found = Section(
                    chapter, row["number"], row["title"].strip(), current.level + 1, [line], is_row=True
                )
                sections[found.number] = found
    return Chapter(f"{DIRECTORY}/{file.name}", sections)


def lines_and_code(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield each line of a page, and whether it is in a code block or opens or closes one."""
    fence = ""
    for line in lines:
        if fence:
            yield line, True
            fence = "" if line.strip() == fence else fence
        else:
            opening = _FENCE.fullmatch(line.strip())
            fence = opening[1] if opening else ""
            yield line, bool(fence)
