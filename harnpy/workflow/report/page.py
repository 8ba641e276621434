"""The frame of every report: one HTML document with its style inside, which loads nothing."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from harnpy.workflow.report.markup import Markup, element

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.workflow.report.markup import Child

#: Hostile content could neither run nor load anything, even if it got into the page.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


#: What a report of run records says of itself.
MASKED = "Secrets are masked in this report. Made by harnpy."


def page(
    title: str,
    kind: str,
    header: Child,
    sections: Iterable[tuple[str, Markup]],
    foot: str = MASKED,
    more_style: str = "",
) -> str:
    """Return the document; each section comes with its name in the navigation, empty for none."""
    style = files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Markup(style + more_style)),
    )
    shown = [(name, section) for name, section in sections if section]
    ways = [element("a", name, href=f"#{_anchor(name)}") for name, _ in shown if name]
    body = element(
        "body",
        element("header", element("p", kind, class_="eyebrow"), header),
        element("nav", ways, aria_label="Sections") if len(ways) > 1 else None,
        element("main", [section for _, section in shown]),
        element("footer", foot),
    )
    document = element("html", head, body, lang="en")
    return f"<!doctype html>\n{document}\n"


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")
