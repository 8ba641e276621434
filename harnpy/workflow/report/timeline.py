"""A timeline: when each stage ran and for how long, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.workflow.report.figures import duration, elapsed, moment
from harnpy.workflow.report.markup import Markup, element
from harnpy.workflow.report.parts import pill

if TYPE_CHECKING:
    from harnpy.workflow.records.record_types import RunRecord, StageRecord


_LEAST_PERCENT = 0.6


def timeline(run: RunRecord) -> Markup:
    """Show the bars of all stages; a stage without times has none."""
    stages = run["stages"]
    starts = [moment(stage["started_at"]) for stage in stages]
    known = [at for at in (*starts, *(moment(stage["finished_at"]) for stage in stages)) if at is not None]
    first, last = (min(known), max(known)) if known else (0.0, 0.0)
    rows = [
        _row(at, stage, start, first, last - first)
        for at, (stage, start) in enumerate(zip(stages, starts, strict=True), 1)
    ]
    scale = (
        element("p", element("span", "0"), element("span", duration(last - first)), class_="scale")
        if known
        else None
    )
    return element("div", element("ol", rows, class_="timeline"), scale)


def _row(number: int, stage: StageRecord, start: float | None, first: float, span: float) -> Markup:
    took = elapsed(stage)
    bar = None
    if start is not None and took is not None:
        left = 100 * (start - first) / span if span else 0.0
        width = max(100 * took / span if span else 100.0, _LEAST_PERCENT)
        left = min(left, 100 - width)
        bar = element("i", class_=f"bar {kind_of(stage)}", style=f"left:{left:.2f}%;width:{width:.2f}%")
    place = element("span", str(number), class_="number")
    name = element("a", stage["node_id"] or "(unnamed)", href=f"#stage-{number}")
    return element(
        "li",
        element("span", place, name, element("span", stage["kind"], class_="kind"), class_="who"),
        element("span", bar, class_="track", aria_hidden="true"),
        element("span", duration(took), class_="took"),
        element("span", pill(stage["status"]), class_="how"),
    )


def kind_of(stage: StageRecord) -> str:
    """Return the style of a bar: a failure, a verification, or other work."""
    if stage["status"] == "failed":
        return "failed"
    return "verify" if stage["kind"] == "verify" else "work"
