"""What each code means, with a wrong and a right program: the texts of `harnpy explain`. Spec: 09 §4.4.

They are read from the files beside this module. A file is a family: a title, what its codes have in common,
and a section a code:

    ## the-code

    What is wrong, in a sentence.

    Why that matters, in one paragraph or several.

    Wrong:

    (a `harn` block)

    Right:

    (a `harn` block)

`page` makes docs/diagnostics.md of them.
"""

from __future__ import annotations

import os
import re
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_HERE = os.path.dirname(os.path.abspath(__file__))
_SECTION = re.compile(
    r"\A(?P<code>[A-Za-z0-9_-]+)\n\n(?P<what>.+?)\n\n(?P<why>.+?)\n\n"
    r"Wrong:\n+```harn\n(?P<wrong>.*?)^```\n+Right:\n+```harn\n(?P<right>.*?)^```\n*\Z",
    re.MULTILINE | re.DOTALL,
)


#: The family of the codes that only a running program meets.
AT_RUN_TIME = "tool-surface"


class Explanation:
    """A code: ``what`` is wrong, ``why`` that matters, a ``wrong`` program and a ``right`` one."""

    __slots__ = ("code", "family", "right", "what", "why", "wrong")

    def __init__(self, family: str, code: str, what: str, why: str, wrong: str, right: str) -> None:
        self.family = family
        self.code = code
        self.what = what
        self.why = why
        self.wrong = wrong
        self.right = right

    @property
    def summary(self) -> str:
        """The first sentence, on one line."""
        return re.split(r"(?<=\.)\s", self.what, maxsplit=1)[0].replace("\n", " ")


class Family:
    """The codes of one file: ``types``, ``syntax``, ``lint-style`` …"""

    __slots__ = ("explanations", "introduction", "name", "title")

    def __init__(self, name: str, text: str) -> None:
        """Raises ValueError, which names the section that has another form."""
        head, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
        title, _, introduction = head.partition("\n")
        self.name = name
        self.title = title.removeprefix("# ")
        self.introduction = introduction.strip()
        self.explanations = [_explanation(name, section) for section in sections]


def _explanation(family: str, section: str) -> Explanation:
    found = _SECTION.match(section)
    if found is None:
        raise ValueError(f"{family}.md: the section `{section.partition(chr(10))[0]}` has another form")
    return Explanation(family, *found.group("code", "what", "why", "wrong", "right"))


@cache
def families() -> tuple[Family, ...]:
    """Every family, in the order of their names."""
    names = sorted(name.removesuffix(".md") for name in os.listdir(_HERE) if name.endswith(".md"))
    return tuple(Family(name, _text(name)) for name in names)


@cache
def explanations() -> dict[str, Explanation]:
    """Every explanation, by its code."""
    return {found.code: found for family in families() for found in family.explanations}


def _text(family: str) -> str:
    with open(os.path.join(_HERE, f"{family}.md"), encoding="utf-8") as file:
        return file.read()


_HEAD = """\
# Diagnostics

Every code that `harnpy check`, `harnpy lint`, `harnpy run` and the others show beside the carets, by family,
and those of surfaces of tools (`TOOL_SURFACE_…`). `harnpy explain CODE` shows an entry of this page. The
first program of an entry has the diagnostic, the second has none; the tests see to it. The comment
`// harnpy: allow CODE` silences some of them ([checking.md](checking.md#silencing-a-finding)).

`harnpy explain --markdown` writes this page.
"""


def page() -> str:
    """Return the page as Markdown."""
    index = [f"- [{family.title}](#{_anchor(family.title)})" for family in families()]
    return "\n".join([_HEAD, *index, "", *_sections()])


def _anchor(title: str) -> str:
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -")
    return kept.replace(" ", "-")


def _sections() -> Iterator[str]:
    for family in families():
        yield f"## {family.title}\n"
        if family.introduction:
            yield f"{family.introduction}\n"
        for found in family.explanations:
            yield from _section(found)


def _section(found: Explanation) -> Iterator[str]:
    yield f"### {found.code}\n\n{found.what}\n\n{found.why}\n"
    for title, program in ("Wrong:", found.wrong), ("Right:", found.right):
        yield f"{title}\n\n```harn\n{program}```\n"
