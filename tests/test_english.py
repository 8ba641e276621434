"""Documentation is in plain English, as far as a search can tell; CONTRIBUTING.md ("Style") says the rest.

A rule is a pattern that no sentence may match, and what to write instead. Headings and code aren't sentences;
list items and the cells of tables are.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import harnpy

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

RULES = {
    r"^(?:Who|Whoever|Whose)\b.*[^?]$": "name the subject: 'A caller that …', 'If you …'",
    r"[:;] whoever\b.*[^?]$": "name the subject: 'a caller that …', 'if you …'",
    r"^What\b.*[^?]$": "begin with a noun: 'Values that …', 'A result that …'",
    r"\b(?:gets?|got|has|have) (?:an|its) end\b": "ends, is closed",
    r"(?<![Tt]here )\b(?:is|was) no (?!longer\b|more\b)": "isn't a",
    r"\b(?:what|which) (?:it|he|she|they|\w+ \w+) (?:came|comes?) to\b": "its result, its outcome",
    r"\bfor want of\b": "without, because … is missing",
    r"\blets? go of\b": "release, disconnect",
    r"\band (?:its|their) kin\b": "and related builtins",
    r"\banew\b": "again",
    r"\bmend(?:s|ed|ing)?\b": "repair, fix",
    r"\bmint(?:s|ed)?\b": "generate",
    r"\btwins?\b": "version, counterpart",
    r"\bverbs?\b": "method, builtin, subcommand",
}

#: How many sentences of a page may still match: pages that nobody has revised yet. A revised page goes.
UNREVISED = {"README.md": 1}

_CODE_BLOCK = re.compile(r"^\s*```.*?^\s*```$", re.MULTILINE | re.DOTALL)
_CODE_SPAN = re.compile(r"(`+).+?\1")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
#: Where a paragraph, a list item or a row of a table ends.
_BLOCK_END = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) |\||#)")
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")
_SENTENCE_END = re.compile(r"(?<=[.?!:])(?:\)|\*\*)* +(?=[A-Z(\"])")


def sentences(page: str) -> Iterator[str]:
    """The sentences of Markdown text, each on one line, with `x` for code and without other markup."""
    for block in _BLOCK_END.split(_CODE_BLOCK.sub("\n\n", page)):
        if block.lstrip().startswith("#"):
            continue
        text = _LINK.sub(r"\1", _CODE_SPAN.sub("`x`", _ITEM.sub("", block.strip(), count=1)))
        for part in text.split("|") if text.startswith("|") else [text]:
            yield from _SENTENCE_END.split(" ".join(part.replace("*", "").split()))


def findings(page: str) -> list[str]:
    """The sentences of a text that match a rule, with what to write instead."""
    return [
        f"{sentence!r}: {instead}"
        for sentence in sentences(page)
        for pattern, instead in RULES.items()
        if re.search(pattern, sentence)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(page: Path) -> None:
    found = findings(page.read_text(encoding="utf-8"))
    assert len(found) <= UNREVISED.get(page.name, 0), "\n".join(found)


@pytest.mark.parametrize("name", ["__doc__", *sorted(set(harnpy.__all__) - {"__version__"})])
def test_docstrings_of(name: str) -> None:
    """Of the package, of a public name and of its public methods."""
    public = getattr(harnpy, name)
    members = vars(public).items() if inspect.isclass(public) else ()
    methods = [member for key, member in members if not key.startswith("_")]
    documented = [public] if name == "__doc__" else map(inspect.getdoc, (public, *methods))
    assert findings("\n\n".join(filter(None, documented))) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Who waits longer gets an error.", 1),
        ("Who may come in?", 0),
        ("## Who may come in", 0),
        ("```text\nWho waits longer gets an error.\n```", 0),
        ("One is first. Whoever loses a token\ngets a new one.", 1),
        ("- Stored: whoever asks gets it.", 1),
        ("| `a` | What is stored stays. |", 1),
        ("What is stored? It stays.", 0),
        ("Its turn gets an end.", 1),
        ("A refusal is no failure; there is no error, and it is no longer open.", 1),
        ("Call `twin`, or read [the page](twin.md).", 0),
    ],
)
def test_rules(text: str, count: int) -> None:
    assert len(findings(text)) == count
