"""Of a section of the specification, the parts that concern one name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from harnpy.cli.help.specification import chapters, find, lines_and_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.cli.help.specification import Citation, Section

#: A section of so many lines may be shown whole; of a longer one so many paragraphs and rows at most.
_SHORT, _MOST = 24, 8
_MARK = re.compile(r" *\*{0,2}\[(core|ext)[^\]]*\]\*{0,2}")
_LIST_ITEM = re.compile(r"([-*]|\d+\.) ")
#: A name at the beginning of a code span; tables abbreviate, `` `_detach` ``, `` `pause(t)` ``.
_CODE = re.compile(r"`(\w+)")


@dataclass(frozen=True)
class Excerpt:
    """Part of a section as Markdown; `left_out` counts further paragraphs that name the builtin."""

    heading: str
    text: str
    source: str
    left_out: int = 0


@dataclass(frozen=True)
class _Block:
    """A paragraph, a list item, a code block or a row of a table, with the header of its table."""

    lines: tuple[str, ...]
    header: tuple[str, ...] = ()
    is_code: bool = False


def excerpts(own: Sequence[Citation], shared: Sequence[Citation], name: str) -> list[Excerpt]:
    """Return what the specification says about `name`.

    `own` are the sections that its documentation cites, shown whole when short; `shared` those of its
    module, which count when there are no others.
    """
    sections = [section for citation in own or shared if (section := find(citation))]
    whole = [section for section in sections if own and len(section.lines) <= _SHORT]
    inner = [each for section in sections for each in chapters()[section.chapter].within(section.number)]
    distinct = {(each.chapter, each.number): each for each in inner if not each.is_row}.values()
    found = [
        excerpt
        for section in distinct
        if (excerpt := _excerpt(section, section.lines) if section in whole else _about(section, name))
    ]
    return [excerpt for excerpt in found or map(_opening, sections) if excerpt.text]


def _about(section: Section, name: str) -> Excerpt | None:
    """Return the section if its heading has the name; else the rows that define it, else what mentions it."""
    if _mentions(section.title, name):
        return _excerpt(section, section.lines)
    blocks = [block for block in _blocks(section.lines) if not block.is_code]
    found = [block for block in blocks if block.header and _defines(block.lines[0], name)]
    found = found or [block for block in blocks if _mentions("\n".join(block.lines), name)]
    return _excerpt(section, _joined(found[:_MOST]), len(found[_MOST:])) if found else None


def _opening(section: Section) -> Excerpt:
    """Return a section that doesn't name the builtin: the whole of a short one, else its beginning."""
    if len(section.lines) <= _SHORT:
        return _excerpt(section, section.lines)
    return _excerpt(section, _joined(list(_blocks(section.lines))[:1]))


def _excerpt(section: Section, lines: Sequence[str], left_out: int = 0) -> Excerpt:
    title = _MARK.sub("", section.title)
    text = "\n".join(line for line in lines if line != "---").strip("\n")
    file = chapters()[section.chapter].file
    return Excerpt(f"{section.number} {title}", text, f"{file} §{section.number}", left_out)


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text) is not None


def _defines(row: str, name: str) -> bool:
    """Whether the first cell of a table's row has the name, or its last part as an abbreviation."""
    first = row.split("|")[1]
    if _mentions(first, name):
        return True
    abbreviations = _CODE.findall(first)
    return any(short.startswith("_") and name.endswith(short) for short in abbreviations) or (
        "." in name and name.rpartition(".")[2] in abbreviations
    )


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    """Split a section's text. Only the lines of a table begin with `|`, its header is the first two."""
    paragraph: list[str] = []
    header: list[str] = []
    for is_code, group in groupby(lines_and_code(lines), key=lambda pair: pair[1]):
        texts = [line for line, _ in group]
        if is_code:
            yield _Block(tuple(texts), is_code=True)
            continue
        for line in [*texts, ""]:
            is_row = line.startswith("|")
            if paragraph and (is_row or not line.strip() or _LIST_ITEM.match(line)):
                yield _Block(tuple(paragraph))
                paragraph = []
            if not is_row:
                header = []
                paragraph += [line] if line.strip() else []
            elif len(header) < 2:
                header.append(line)
            else:
                yield _Block((line,), tuple(header))


def _joined(blocks: Sequence[_Block]) -> list[str]:
    """Return the lines of the blocks as a page; neighbouring rows of a table share its header."""
    lines: list[str] = []
    for header, group in groupby(blocks, key=lambda block: block.header):
        lines += header
        for block in group:
            lines += block.lines if header else [*block.lines, ""]
        lines += [""] if header else []
    return lines
