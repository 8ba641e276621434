"""docs/diagnostics.md: every code, with a wrong and a right program. Spec: 09 §4.4."""

from __future__ import annotations

from harnpy.check.explanations.reading import Explanation, families

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = """\
# Diagnostics

Every code that `harnpy check`, `harnpy lint`, `harnpy run` and the others show beside the carets, by family.
`harnpy explain CODE` shows an entry of this page. The first program of an entry has the diagnostic, the
second has none; the tests see to it. What can be silenced is silenced by `// harnpy: allow CODE`
([checking.md](checking.md#silencing-a-finding)).

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
