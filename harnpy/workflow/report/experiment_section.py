"""A program run twice, without an experiment and with it, side by side. Spec: 09 §8.3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.workflow.report import parts
from harnpy.workflow.report.figures import count, money
from harnpy.workflow.report.markup import Markup, element, joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.reading.dicts import Dict


def experiment(report: Dict) -> Markup:
    """Return the section of a paired report, an empty one for any other."""
    before, after = report.get("baseline"), report.get("experiment")
    if not isinstance(before, dict) or not isinstance(after, dict):
        return Markup()
    heads = ("", "Baseline", "Experiment")
    difference = report.get("output_diff")
    return parts.section(
        "Experiment",
        element("p", joined("With ", parts.mono(str(report["spec"])))),
        parts.table(heads, [*_rows(before, after), *_metrics(report.get("metrics") or [])], heads[1:]),
        element("h4", "Output"),
        parts.code(difference) if difference else element("p", "Identical.", class_="note"),
        id="experiment",
    )


def _rows(before: Dict, after: Dict) -> Iterator[Sequence[Markup | str]]:
    yield "Result", *(parts.pill("passed" if run["pass"] else "failed") for run in (before, after))
    for name, key in (
        ("Model calls", "llm_calls"),
        ("Input tokens", "input_tokens"),
        ("Output tokens", "output_tokens"),
    ):
        yield name, count(before[key]), count(after[key])
    yield "Cost", money(before["cost"]), money(after["cost"])
    if before["failure"] or after["failure"]:
        yield "Failure", before["failure"], after["failure"]


def _metrics(metrics: Sequence[Dict]) -> Iterator[Sequence[str]]:
    for metric in metrics:
        yield metric["name"], metric["baseline"], metric["experiment"]
