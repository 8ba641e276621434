"""The report of two runs and what changes from the one to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.workflow.bundle.redaction import without_secrets
from harnpy.workflow.report import parts
from harnpy.workflow.report.figures import count, plural
from harnpy.workflow.report.html import Markup, element, joined
from harnpy.workflow.report.page import page
from harnpy.workflow.report.run import figures_of, known, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    Dict = dict[str, Any]


def html_diff(left: Dict, right: Dict, diff: Dict) -> str:
    """One HTML document that shows what `run_record_diff(left, right)` found, secrets masked."""
    left, right, diff = known(left), known(right), without_secrets(diff)
    name = name_of(right)
    verdict = "identical" if diff["identical"] else "different"
    header = joined(
        element("div", element("h1", name), parts.pill(verdict), class_="title"),
        element("div", _run("Before", left), _run("After", right), class_="two"),
    )
    return page(f"{name} – two runs compared", "Two runs compared", header, _sections(left, right, diff))


def _run(side: str, run: Dict) -> Markup:
    head = element("header", element("h3", side), parts.pill(run["status"]))
    return element(
        "article",
        head,
        element("p", parts.mono(run["id"]), class_="facts-line"),
        parts.facts(figures_of(run)),
        class_="card slim",
    )


def _sections(left: Dict, right: Dict, diff: Dict) -> Iterator[tuple[str, Markup]]:
    if diff["identical"]:
        yield "", parts.callout(parts.GOOD, "The same stages, outcomes, branches, tools and results.")
    changed = diff["stage_diffs"]
    if changed:
        cards = [_stage(change, left, right) for change in changed]
        yield "Stages", parts.section("Stages", cards, id="stages", note=plural(len(changed), "change"))
    tools = diff["tool_diffs"]
    if tools:
        yield (
            "Tools",
            parts.section(
                "Tools", [_tool(change) for change in tools], id="tools", note=plural(len(tools), "change")
            ),
        )
    observed = diff["observability_diffs"]
    if observed:
        rows = [
            (change["section"].replace("_", " "), change["label"], parts.listed(change["details"]))
            for change in observed
        ]
        yield (
            "Observed",
            parts.section("Observed", parts.table(("Section", "What", "Details"), rows), id="observed"),
        )
    deltas = [
        (
            f"{what.capitalize()}s",
            f"{diff[f'{what}_count_delta']:+d}",
            count(len(left[f"{what}s"])),
            count(len(right[f"{what}s"])),
        )
        for what in ("transition", "artifact", "checkpoint")
        if diff[f"{what}_count_delta"]
    ]
    if deltas:
        heads = ("Count of", "Change", "Before", "After")
        yield "Counts", parts.section("Counts", parts.table(heads, deltas, heads[1:]), id="counts")


def _stage(change: Dict, left: Dict, right: Dict) -> Markup:
    mood = {"added": parts.GOOD, "removed": parts.BAD}.get(change["change"], parts.WAITING)
    said = [_said(run, change["node_id"]) for run in (left, right)]
    texts = None
    if said[0] != said[1]:
        texts = element(
            "div",
            [
                _side(title, parts.prose(text) if text else None)
                for title, text in zip(("Before", "After"), said, strict=True)
            ],
            class_="two",
        )
    return element(
        "article",
        element("header", element("h3", change["node_id"]), parts.pill(change["change"], mood)),
        parts.listed(change["details"]),
        texts,
        class_="card",
    )


def _said(run: Dict, node_id: str) -> str | None:
    """The visible text of the last stage of a node; None if it was never entered."""
    texts = [stage["visible_text"] or "" for stage in run["stages"] if stage["node_id"] == node_id]
    return texts[-1] if texts else None


def _side(title: str, said: Any) -> Markup:
    nothing = element("p", "none", class_="note")
    shown = (
        nothing if said in (None, "") else parts.prose(said) if isinstance(said, str) else parts.value(said)
    )
    return element("div", element("h5", title), shown)


def _tool(change: Dict) -> Markup:
    head = element(
        "header", element("h3", change["tool_name"]), parts.tag(f"arguments {change['args_hash']}")
    )
    sides = [
        _side(title, None if result is None else parts.value(result))
        for title, result in (("Before", change["left_result"]), ("After", change["right_result"]))
    ]
    return element("article", head, element("div", sides, class_="two"), class_="card slim")
