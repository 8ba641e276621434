"""Building blocks of all reports: pills, facts, tables, texts, collapsible parts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harnpy.workflow.report.markup import Markup, element, joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harnpy.workflow.report.markup import Child

GOOD, BAD, WAITING, PLAIN = "good", "bad", "waiting", "plain"

_TONES = {
    **dict.fromkeys(
        "completed complete success done passed pass verified identical approved accepted answered "
        "ok".split(),
        GOOD,
    ),
    **dict.fromkeys(
        "failed error fail denied rejected cancelled timed_out stuck verification_failed".split(), BAD
    ),
    **dict.fromkeys(
        "running paused pending waiting partial warning budget_exhausted different".split(), WAITING
    ),
}
_SIGNS = {GOOD: "✓", BAD: "✗", WAITING: "…", PLAIN: "·"}
_SIGNS_OF_WORDS = {"different": "≠", "changed": "≠", "added": "+", "removed": "−"}


def tone(status: str | None) -> str:
    return _TONES.get((status or "").lower(), PLAIN)


def pill(status: str | None, mood: str | None = None) -> Markup:
    """Show a status as a word with a sign, so that it doesn't depend on colour."""
    mood = mood or tone(status)
    shown = _SIGNS_OF_WORDS.get(status or "", _SIGNS[mood])
    sign = element("span", shown, class_="sign", aria_hidden="true")
    return element("span", sign, status or "unknown", class_=f"pill {mood}")


def tag(word: str) -> Markup:
    return element("span", word, class_="tag")


def facts(pairs: Iterable[tuple[str, Child]]) -> Markup:
    """Show names with their values, without empty ones."""
    shown = [
        element("div", element("dt", name), element("dd", value))
        for name, value in pairs
        if value not in (None, "")
    ]
    return element("dl", shown, class_="facts") if shown else Markup()


def section(title: str, *content: Child, id: str, note: str | None = None) -> Markup:
    heading = element("h2", title, element("span", note, class_="note") if note else None)
    return element("section", heading, *content, id=id)


def folded(title: str, *content: Child, note: str | None = None, opened: bool = False) -> Markup:
    """Show content that is collapsed until the reader opens it."""
    summary = element("summary", title, element("span", note, class_="note") if note else None)
    return element("details", summary, element("div", *content, class_="inside"), open=opened)


def prose(said: str) -> Markup:
    """Show a text as it was written; a long one scrolls."""
    return element("div", said, class_="prose", tabindex="0" if _is_long(said) else None)


def code(said: str) -> Markup:
    return element("pre", said, tabindex="0")


def value(given: Any) -> Markup:
    """Show any JSON value: a text as it is, anything else as JSON."""
    if isinstance(given, str):
        return code(given)
    return code(json.dumps(given, indent=2, ensure_ascii=False, default=str))


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[Child]],
    numbers: Sequence[str] = (),
    foot: Sequence[Child] = (),
) -> Markup:
    """Show a table that scrolls if it is too wide; the columns in ``numbers`` are right-aligned."""
    kinds = ["number" if head in numbers else None for head in heads]
    head = [element("th", title, class_=kind, scope="col") for title, kind in zip(heads, kinds, strict=True)]
    shown = element(
        "table",
        element("thead", element("tr", head)),
        element("tbody", [_row(cells, kinds) for cells in rows]),
        element("tfoot", _row(foot, kinds)) if foot else None,
    )
    label = ", ".join(heads)
    return element("div", shown, class_="wide", tabindex="0", role="region", aria_label=label)


def _row(cells: Sequence[Child], kinds: Sequence[str | None]) -> Markup:
    return element("tr", [element("td", cell, class_=kind) for cell, kind in zip(cells, kinds, strict=True)])


def callout(mood: str, *content: Child) -> Markup:
    return element("div", *content, class_=f"callout {mood}")


def listed(items: Iterable[Child], bare: bool = False) -> Markup:
    """Show a list, without bullets if ``bare``."""
    return element("ul", [element("li", item) for item in items], class_="bare" if bare else None)


def mono(word: str) -> Markup:
    return element("code", word)


def apart(*parts: Child) -> Markup:
    """Show parts on one line, separated by dots, without None."""
    shown = [part for part in parts if part is not None and part != ""]
    dotted = [joined(" · " if at else None, part) for at, part in enumerate(shown)]
    return joined(dotted)


def _is_long(said: str) -> bool:
    return len(said) > 1200 or said.count("\n") > 20
