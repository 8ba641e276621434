"""The report on an evaluation: of one run, a suite or a pack. Spec: 08 §8.3, §8.7."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.workflow.bundle.redactor import without_secrets
from harnpy.workflow.report import parts
from harnpy.workflow.report.experiment_section import experiment
from harnpy.workflow.report.figures import count, plural
from harnpy.workflow.report.markup import Markup, element, joined
from harnpy.workflow.report.page import page

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harnpy.reading.dicts import Dict


_COUNTS = (
    "total",
    "passed",
    "failed",
    "blocking_failed",
    "warning_failed",
    "informational_failed",
    "stage_count",
)
_FOUND = (
    ("failures", parts.BAD, "Failures"),
    ("warnings", parts.WAITING, "Warnings"),
    ("informational", parts.PLAIN, "Noted"),
)


def html_evaluation(report: Dict, env: Mapping[str, str] | None = None) -> str:
    """Return one HTML document that shows the report of an evaluation, secrets masked, those of ``env`` too.

    Of what `harnpy eval` adds it shows ``path``, ``run_id`` and ``comparison``, and of a paired experiment
    ``spec``, ``baseline``, ``experiment``, ``metrics`` and ``output_diff``.
    """
    report = without_secrets(report, env)
    name = str(report.get("pack_id") or report.get("run_id") or report.get("path") or "Evaluation")
    figures = [(_words(key), count(report[key])) for key in _COUNTS if isinstance(report.get(key), int)]
    header = joined(
        element("div", element("h1", name), _verdict(report), class_="title"),
        parts.facts(figures),
        list(_found(report)),
        _comparison(report.get("comparison")),
    )
    return page(f"{name} – {_word(report)}", "Evaluation", header, _sections(report))


def _sections(report: Dict) -> Iterator[tuple[str, Markup]]:
    yield "Experiment", experiment(report)
    cases = report.get("cases") or []
    failed, passed = ([case for case in cases if bool(case.get("pass")) is kept] for kept in (False, True))
    for title, group in (("Failed", failed), ("Passed", passed)):
        if group:
            cards = [_case(case) for case in group]
            yield title, parts.section(title, cards, id=title.lower(), note=plural(len(group), "case"))


def _case(case: Dict) -> Markup:
    name = case.get("label") or case.get("id") or case.get("run_id") or "case"
    severity = case.get("severity")
    head = element(
        "header", element("h3", str(name)), _verdict(case), parts.tag(severity) if severity else None
    )
    stages = case.get("stage_count")
    facts = parts.apart(
        case.get("workflow_id"),
        parts.mono(case["run_id"]) if case.get("run_id") else None,
        plural(stages, "stage") if isinstance(stages, int) else None,
        case.get("source_path"),
    )
    return element(
        "article",
        head,
        element("p", facts, class_="facts-line") if facts else None,
        list(_found(case)),
        _comparison(case.get("comparison")),
        class_=f"card slim {parts.GOOD if case.get('pass') else parts.BAD}",
    )


def _found(report: Dict) -> Iterator[Markup]:
    for key, mood, title in _FOUND:
        said = report.get(key)
        if isinstance(said, list) and said:
            yield parts.callout(mood, element("strong", title), parts.listed(str(item) for item in said))


def _comparison(diff: Any) -> Markup | None:
    if not isinstance(diff, dict):
        return None
    if diff.get("identical"):
        return element("p", "Identical to its baseline.", class_="note")
    changes = [
        element(
            "li", parts.mono(str(change["node_id"])), f" {change['change']}: ", "; ".join(change["details"])
        )
        for change in diff.get("stage_diffs") or []
    ]
    return parts.folded(
        "Differs from its baseline", element("ul", changes), note=plural(len(changes), "stage change")
    )


def _verdict(report: Dict) -> Markup:
    return parts.pill(_word(report), parts.GOOD if report.get("pass") else parts.BAD)


def _word(report: Dict) -> str:
    return "passed" if report.get("pass") else "failed"


def _words(key: str) -> str:
    return key.replace("_", " ").capitalize()
