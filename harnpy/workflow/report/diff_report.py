"""The report on the differences between two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.formats import markup
from harnpy.formats.markup import Markup, count, element, joined, page, plural
from harnpy.workflow.bundle.redactor import without_secrets
from harnpy.workflow.report.run_report import figures_of, known, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harnpy.formats.dicts import Dict
    from harnpy.workflow.records.record_shapes import RunRecord


def html_diff(
    left: Mapping[str, Any],
    right: Mapping[str, Any],
    diff: Mapping[str, Any],
    env: Mapping[str, str] | None = None,
) -> str:
    """Return one HTML document that shows the result of `run_record_diff(left, right)`.

    Secrets are masked, those of ``env`` too.
    """
    before, after, found = known(left, env), known(right, env), without_secrets(diff, env)
    name = name_of(after)
    verdict = "identical" if found["identical"] else "different"
    header = joined(
        element("div", element("h1", name), markup.pill(verdict), class_="title"),
        element("div", _run("Before", before), _run("After", after), class_="two"),
    )
    return page(f"{name} – two runs compared", "Two runs compared", header, _sections(before, after, found))


def _run(side: str, run: RunRecord) -> Markup:
    head = element("header", element("h3", side), markup.pill(run["status"]))
    return element(
        "article",
        head,
        element("p", markup.mono(run["id"]), class_="facts-line"),
        markup.facts(figures_of(run)),
        class_="card slim",
    )


def _sections(left: RunRecord, right: RunRecord, diff: Dict) -> Iterator[tuple[str, Markup]]:
    if diff["identical"]:
        yield "", markup.callout(markup.GOOD, "The same stages, outcomes, branches, tools and results.")
    yield _changes("Stages", [_stage(change, left, right) for change in diff["stage_diffs"]])
    yield _changes("Tools", [_tool(change) for change in diff["tool_diffs"]])
    yield "Observed", _observed(diff["observability_diffs"])
    yield "Counts", _counts(left, right, diff)


def _changes(title: str, cards: Sequence[Markup]) -> tuple[str, Markup]:
    """Return a section with a card for each change, and its name; an empty one without changes."""
    note = plural(len(cards), "change")
    return title, markup.section(title, cards, id=title.lower(), note=note) if cards else Markup()


def _observed(changes: Sequence[Dict]) -> Markup:
    rows = [
        (change["section"].replace("_", " "), change["label"], markup.listed(change["details"]))
        for change in changes
    ]
    table = markup.table(("Section", "What", "Details"), rows)
    return markup.section("Observed", table, id="observed") if rows else Markup()


def _counts(left: Mapping[str, Any], right: Mapping[str, Any], diff: Dict) -> Markup:
    rows = [
        (
            f"{what.capitalize()}s",
            f"{diff[f'{what}_count_delta']:+d}",
            count(len(left[f"{what}s"])),
            count(len(right[f"{what}s"])),
        )
        for what in ("transition", "artifact", "checkpoint")
        if diff[f"{what}_count_delta"]
    ]
    heads = ("Count of", "Change", "Before", "After")
    table = markup.table(heads, rows, heads[1:])
    return markup.section("Counts", table, id="counts") if rows else Markup()


def _stage(change: Dict, left: RunRecord, right: RunRecord) -> Markup:
    mood = {"added": markup.GOOD, "removed": markup.BAD}.get(change["change"], markup.WAITING)
    said = [_said(run, change["node_id"]) for run in (left, right)]
    texts = None
    if said[0] != said[1]:
        texts = element(
            "div",
            [
                _side(title, markup.prose(text) if text else None)
                for title, text in zip(("Before", "After"), said, strict=True)
            ],
            class_="two",
        )
    return element(
        "article",
        element("header", element("h3", change["node_id"]), markup.pill(change["change"], mood)),
        markup.listed(change["details"]),
        texts,
        class_="card",
    )


def _said(run: RunRecord, node_id: str) -> str | None:
    """Return the visible text of a node's last stage; None if it never ran."""
    texts = [stage["visible_text"] or "" for stage in run["stages"] if stage["node_id"] == node_id]
    return texts[-1] if texts else None


def _side(title: str, shown: Markup | None) -> Markup:
    return element("div", element("h5", title), shown or element("p", "none", class_="note"))


def _tool(change: Dict) -> Markup:
    head = element(
        "header", element("h3", change["tool_name"]), markup.tag(f"arguments {change['args_hash']}")
    )
    sides = [
        _side(title, None if result is None else markup.value(result))
        for title, result in (("Before", change["left_result"]), ("After", change["right_result"]))
    ]
    return element("article", head, element("div", sides, class_="two"), class_="card slim")
