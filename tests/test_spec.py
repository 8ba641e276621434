"""Every citation of the specification resolves, and nothing outside the repository is cited."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from harnpy.cli.builtin_help import DIRECTORY, Citation, Section, chapters, citations, find_section

ROOT = Path(__file__).parent.parent
SPEC = ROOT / DIRECTORY
#: The [core] sections that nothing cites: what is not built yet. Remove a line when something cites it.
UNCITED = Path(__file__).parent / "spec_uncited.txt"

_FOLDERS = ("harnpy", "stdlib", "grammar", "tests", "bench", "conformance", "docs", "examples")
_SUFFIXES = {".py", ".harn", ".md", ".lark", ".toml"}
#: Citations of what a reader of this repository cannot open.
_OUTSIDE = re.compile(r"notes §|performance notes|\bissue #?\d|later issue|DESIGN|\b[Tt]he reference('s)?\b")
#: One of them is in whatever that finds.
_OUTSIDE_WORDS = ("notes", "issue", "DESIGN", "he reference")
#: In these chapters every main section is [core] unless it says otherwise.
_CORE_CHAPTERS = {"01", "02"}


@cache
def pages() -> list[tuple[Path, str]]:
    """The texts that may cite the specification, by path."""
    files = [*ROOT.glob("*.md"), *ROOT.glob("*.toml")]
    for folder in _FOLDERS:
        files += [file for file in (ROOT / folder).rglob("*") if file.suffix in _SUFFIXES]
    found = sorted(map(str, files))
    return [(Path(file), Path(file).read_text(encoding="utf-8")) for file in found if file != __file__]


@cache
def cited() -> list[tuple[Path, list[Citation]]]:
    """The citations of each page that has some."""
    return [(file, list(citations(text, home(file)))) for file, text in pages() if "§" in text]


def home(file: Path) -> str:
    """The chapter that a page is, whose own sections it cites without saying so; empty for other files."""
    return file.name[:2] if SPEC in file.parents else ""


def test_every_citation_resolves() -> None:
    broken = [
        f"{file.relative_to(ROOT)}: {citation}"
        for file, found in cited()
        for citation in found
        if find_section(citation) is None
    ]
    assert not broken, "\n".join(broken)


def test_nothing_outside_the_repository_is_cited() -> None:
    found = [
        f"{file.relative_to(ROOT)}: {match[0]}"
        for file, text in pages()
        if any(word in text for word in _OUTSIDE_WORDS) and SPEC not in file.parents
        for match in _OUTSIDE.finditer(text)
    ]
    assert not found, "\n".join(found)


def is_core(section: Section) -> bool:
    """Whether the section's own heading says so; sections without a mark belong to the one around them."""
    mark = re.search(r"\[(core|ext)", section.title)
    return mark[1] == "core" if mark else section.chapter in _CORE_CHAPTERS and section.level == 2


def test_the_core_sections_that_nothing_cites_are_listed() -> None:
    outside = {citation for file, found in cited() if SPEC not in file.parents for citation in found}
    uncited = [
        f"{section.chapter} §{section.number} {section.title}"
        for chapter in chapters().values()
        for section in chapter.sections.values()
        if is_core(section)
        and not any(
            Citation(section.chapter, inner.number) in outside for inner in chapter.within(section.number)
        )
    ]
    listed = UNCITED.read_text(encoding="utf-8").splitlines()
    assert uncited == listed, f"{UNCITED.name} should read:\n" + "\n".join(uncited)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Spec: 08 §1.4.", ["08 §1.4"]),
        ("(02 §2–4, §8)", ["02 §2", "02 §3", "02 §4", "02 §8"]),
        ("Spec: 01 §5-§7; 10 §C5, §A1.1", ["01 §5", "01 §6", "01 §7", "10 §C5", "10 §A1.1"]),
        ("steps 4–7 of 07 §6.7", ["07 §6.7"]),
        ("Spec: 07\n    # §6.1–6.2", ["07 §6.1", "07 §6.2"]),
        ("see §3", [" §3"]),
    ],
)
def test_citations(text: str, expected: list[str]) -> None:
    assert [str(citation) for citation in citations(text)] == expected


def test_a_numbered_row_is_a_section() -> None:
    row = find_section(Citation("01", "8.3"))
    assert row is not None
    assert row.title == "`name <` generic call or comparison"
