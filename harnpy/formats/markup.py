"""The HTML of every page: elements, figures, building blocks, and one page that loads nothing.

Anything but `Markup` is text and is escaped.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Child = str | None | Iterable["Child"]

_VOID = frozenset(("br", "img", "input", "meta", "col", "link"))
#: Characters that HTML can't contain: controls except tab and line ends, and lone surrogates.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """Return an element. ``class_`` is its class; None and False omit attributes, True sets no value."""
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{text(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    inside = joined(*children)
    return Markup(f"<{name}{written}>" if name in _VOID else f"<{name}{written}>{inside}</{name}>")


def joined(*children: Child) -> Markup:
    """Return the children one after the other."""
    return Markup("".join(_written(child) for child in children))


def text(given: str) -> Markup:
    return Markup(escape(writable(given)))


def writable(given: str) -> str:
    """Return a text without the characters that HTML can't contain."""
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", given)


def _written(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, str):
        return child if isinstance(child, Markup) else text(child)
    return "".join(_written(inner) for inner in child)


NONE = "–"


def duration(ms: float | None) -> str:
    """Format a duration: ``84 ms``, ``1.2 s``, ``3 min 5 s``, ``2 h 4 min``."""
    if ms is None:
        return NONE
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 59_950:
        return f"{ms / 1000:.1f} s"
    seconds = round(ms / 1000)
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


def money(cost: float | None) -> str:
    if cost is None:
        return NONE
    return f"${cost:.2f}" if cost >= 1 or not cost else f"${cost:.4f}"


def count(number: int | None) -> str:
    return NONE if number is None else f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def plural(number: int, what: str) -> str:
    return f"{count(number)} {what}{'' if number == 1 else 's'}"


def moment(stamp: Any) -> float | None:
    """Return an RFC 3339 time as ms since 1970; None for anything else."""
    try:
        read = datetime.fromisoformat(stamp)
    except (TypeError, ValueError):
        return None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp() * 1000


def elapsed(part: Mapping[str, Any]) -> float | None:
    """Return how long something with a start and an end took."""
    started, finished = moment(part.get("started_at")), moment(part.get("finished_at"))
    return None if started is None or finished is None else max(0.0, finished - started)


def clock(stamp: Any) -> str:
    """Format a time to the second; anything else is returned unchanged."""
    at = moment(stamp)
    if at is None:
        return str(stamp) if stamp else NONE
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


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


def diff(said: str) -> Markup:
    """Show a unified diff. Its signs stay, so that it doesn't depend on colour."""
    lines = [element("span", line, class_=_DIFFERS.get(line[:1])) for line in said.splitlines(keepends=True)]
    return element("pre", lines, class_="diff", tabindex="0")


_DIFFERS = {"+": GOOD, "-": BAD, "@": PLAIN}


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


def track(kind: str | None, left: float = 0.0, width: float = 0.0) -> Markup:
    """Show a bar of a kind from ``left`` percent on, without a kind none. It has no style of its own, which
    pages may be forbidden to have.
    """
    bar = element("i", class_=f"bar {kind}") if kind else None
    place = {"x": f"{left:.2f}%", "width": f"{width:.2f}%", "height": "100%"}
    shown = element("foreignObject", bar, **place) if bar else None
    return element("svg", shown, class_="track", aria_hidden="true")


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


#: Hostile content could neither run nor load anything, even if it got into the page.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


#: What a report of run records says of itself.
MASKED = "Secrets are masked in this report. Made by harnpy."


# A cell of a notebook: a piece of somebody else's page, so it brings its style, in the colours of that page.


_CELL = "font: 13px/1.45 system-ui, sans-serif; color: inherit; text-align: left; vertical-align: top"
_LINE = "1px solid rgba(128, 128, 128, .35)"
#: The longest text of a cell's table, in characters.
_SHORT = 240


class Cell:
    """A table that notebooks show in place of the ``repr``."""

    def __init__(self, html: str) -> None:
        self.html = html

    def _repr_html_(self) -> str:
        return self.html


def cell(
    title: str, pairs: Iterable[tuple[str, Child]], heads: Sequence[str], rows: Iterable[Sequence[Child]]
) -> Cell:
    """Return a table under a title and some facts, as a cell of a notebook. Long texts are shortened."""
    facts_of_it = [
        element("span", f" · {name} ".replace("  ", " "), element("b", shown))
        for name, shown in pairs
        if shown
    ]
    padded = f"{_CELL}; padding: 3px 10px; border-top: {_LINE}"
    return Cell(
        element(
            "div",
            element("div", element("b", title), facts_of_it, style=f"{_CELL}; margin-bottom: 4px"),
            element(
                "table",
                element("tr", [element("th", head, style=f"{padded}; opacity: .7") for head in heads]),
                [
                    element(
                        "tr",
                        [
                            element("td", _shortened(child), style=f"{padded}; white-space: pre-wrap")
                            for child in row
                        ],
                    )
                    for row in rows
                ],
                style="border-collapse: collapse; border: 0; background: none; color: inherit",
            ),
            class_="harnpy",
        )
    )


def _shortened(child: Child) -> Child:
    if isinstance(child, str) and not isinstance(child, Markup) and len(child) > _SHORT:
        return child[:_SHORT].rstrip() + " …"
    return child


def page(
    title: str,
    kind: str,
    header: Child,
    sections: Iterable[tuple[str, Markup]],
    foot: str = MASKED,
    more_style: str = "",
) -> str:
    """Return the document; each section comes with its name in the navigation, empty for none."""
    head = [
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("style", Markup(stylesheet() + more_style)),
    ]
    shown = [(name, section) for name, section in sections if section]
    ways = [element("a", name, href=f"#{_anchor(name)}") for name, _ in shown if name]
    body = [
        element("header", element("p", kind, class_="eyebrow"), header),
        element("nav", ways, aria_label="Sections") if len(ways) > 1 else None,
        element("main", [section for _, section in shown]),
        element("footer", foot),
    ]
    return document(title, head, body)


def stylesheet() -> str:
    """Return the style of every building block."""
    return files(__package__).joinpath("markup.css").read_text(encoding="utf-8")


def document(title: str, head: Child, body: Child, **attributes: str | None) -> str:
    """Return a document; ``head`` is added to what every page has, ``attributes`` are its body's."""
    known = [
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
    ]
    made = element("html", element("head", known, head), element("body", body, **attributes), lang="en")
    return f"<!doctype html>\n{made}\n"


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")
