"""The report on an evaluation: of one run, a suite, a pack, or an experiment.

Spec: 08 §8.3, §8.7; 09 §8.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.formats import markup
from harnpy.formats.markup import Markup, count, element, joined, money, page, plural
from harnpy.workflow.bundle.redactor import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harnpy.formats.dicts import Dict

# A program run twice, without an experiment and with it, side by side. Spec: 09 §8.3.


def experiment(report: Dict) -> Markup:
    """Return the section of a paired report, an empty one for any other."""
    before, after = report.get("baseline"), report.get("experiment")
    if not isinstance(before, dict) or not isinstance(after, dict):
        return Markup()
    heads = ("", "Baseline", "Experiment")
    difference = report.get("output_diff")
    return markup.section(
        "Experiment",
        element("p", joined("With ", markup.mono(str(report["spec"])))),
        markup.table(heads, [*_rows(before, after), *_metrics(report.get("metrics") or [])], heads[1:]),
        element("h4", "Output"),
        markup.code(difference) if difference else element("p", "Identical.", class_="note"),
        id="experiment",
    )


def _rows(before: Dict, after: Dict) -> Iterator[Sequence[Markup | str]]:
    yield "Result", *(markup.pill("passed" if run["pass"] else "failed") for run in (before, after))
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


_COUNTS = tuple("total passed failed blocking_failed warning_failed informational_failed stage_count".split())
_FOUND = (
    ("failures", markup.BAD, "Failures"),
    ("warnings", markup.WAITING, "Warnings"),
    ("informational", markup.PLAIN, "Noted"),
)


def html_evaluation(report: Dict, env: Mapping[str, str] | None = None) -> str:
    """Return one HTML document that shows the report of an evaluation, secrets masked, those of ``env`` too.

    Of what `harnpy eval` adds it shows ``path``, ``run_id`` and ``comparison``, and of a paired experiment
    ``spec``, ``baseline``, ``experiment``, ``metrics`` and ``output_diff``.
    """
    report = without_secrets(report, env)
    name = str(report.get("pack_id") or report.get("run_id") or report.get("path") or "Evaluation")
    figures = [(_words(key), count(report[key])) for key in _COUNTS if isinstance(report.get(key), int)]
    used = report.get("usage")
    if isinstance(used, dict) and used["calls"]:
        figures.append(("Calls of judges", joined(count(used["calls"]), ", ", money(used["cost_usd"]))))
    header = joined(
        element("div", element("h1", name), _verdict(report), class_="title"),
        markup.facts(figures),
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
            yield title, markup.section(title, cards, id=title.lower(), note=plural(len(group), "case"))


def _case(case: Dict) -> Markup:
    name = case.get("label") or case.get("id") or case.get("run_id") or "case"
    severity = case.get("severity")
    head = element(
        "header", element("h3", str(name)), _verdict(case), markup.tag(severity) if severity else None
    )
    stages = case.get("stage_count")
    facts = markup.apart(
        case.get("workflow_id"),
        markup.mono(case["run_id"]) if case.get("run_id") else None,
        plural(stages, "stage") if isinstance(stages, int) else None,
        case.get("source_path"),
    )
    return element(
        "article",
        head,
        element("p", facts, class_="facts-line") if facts else None,
        list(_found(case)),
        _judgements(case),
        _comparison(case.get("comparison")),
        class_=f"card slim {markup.GOOD if case.get('pass') else markup.BAD}",
    )


def _found(report: Dict) -> Iterator[Markup]:
    for key, mood, title in _FOUND:
        said = report.get(key)
        if isinstance(said, list) and said:
            yield markup.callout(mood, element("strong", title), markup.listed(str(item) for item in said))


def _judgements(case: Dict) -> Markup | None:
    """Return what judges said of a case; a score that is missing is among the failures."""
    said = [each for each in case.get("judgements") or [] if each["score"] is not None]
    if not said:
        return None
    heads = ("Rubric", "Score", "Passes at", "Reason", "Judge")
    rows = [
        (each["rubric"], f"{each['score']:g}", f"{each['threshold']:g}", each["reason"], each["model"])
        for each in said
    ]
    return markup.table(heads, rows, heads[1:3])


def _comparison(diff: Any) -> Markup | None:
    if not isinstance(diff, dict):
        return None
    if diff.get("identical"):
        return element("p", "Identical to its baseline.", class_="note")
    changes = [
        element(
            "li", markup.mono(str(change["node_id"])), f" {change['change']}: ", "; ".join(change["details"])
        )
        for change in diff.get("stage_diffs") or []
    ]
    return markup.folded(
        "Differs from its baseline", element("ul", changes), note=plural(len(changes), "stage change")
    )


def _verdict(report: Dict) -> Markup:
    return markup.pill(_word(report), markup.GOOD if report.get("pass") else markup.BAD)


def _word(report: Dict) -> str:
    return "passed" if report.get("pass") else "failed"


def _words(key: str) -> str:
    return key.replace("_", " ").capitalize()
