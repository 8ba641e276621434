"""Rubrics: assertions about a run beyond its replay fixture. Spec: 08 §8.7."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from harnpy.workflow.evals import thresholds
from harnpy.workflow.evals.thresholds import BLOCKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from harnpy.workflow.evals.pack_types import Rubric, RubricAssertion
    from harnpy.workflow.records.record_types import RunRecord


_LOCAL = ("", "deterministic", "replay", "budget", "hitl", "side-effect")
_JUDGED = ("llm-judge", "llm-as-judge", "judge")


class Verdict(NamedTuple):
    """``failures`` count against a run, ``warnings`` don't."""

    failures: list[str]
    warnings: list[str]


def apply(rubric: Rubric, run: RunRecord | None, severity: str) -> Verdict:
    """Judge a run by a rubric. ``run`` is None for a case without one.

    ``severity`` is the case's, for rubrics without their own.
    """
    name, kind = f"rubric '{rubric['id']}'", _dashed(rubric["kind"])
    if kind in _LOCAL:
        found = [*_assertion_failures(rubric, run, name)]
        return Verdict(found + ([*thresholds.failures(rubric["thresholds"], run)] if run else []), [])
    if kind not in _JUDGED:
        return Verdict([], [f"{name} has unknown kind '{rubric['kind']}' and was not run locally"])
    text = f"{name} requires an external LLM judge and was not run locally"
    blocking = thresholds.severity(rubric["thresholds"]["severity"], severity) == BLOCKING
    return Verdict([text], []) if blocking else Verdict([], [text])


def _assertion_failures(rubric: Rubric, run: RunRecord | None, name: str) -> Iterator[str]:
    for assertion in rubric["assertions"]:
        kind = _dashed(assertion["kind"])
        check = _ASSERTIONS.get(kind)
        if check is not None and run is not None:
            found = check(assertion, run)
            if found is not None:
                yield f"{name} {found}"
        elif kind:
            yield f"{name} has unsupported assertion kind '{assertion['kind']}'"


def _dashed(kind: str | None) -> str:
    return (kind or "").replace("_", "-")


# Each returns what is wrong, or None.


def _run_status(assertion: RubricAssertion, run: RunRecord) -> str | None:
    expected = assertion["expected"]
    if not isinstance(expected, str) or expected == run["status"]:
        return None
    return f"expected run status {expected}, got {run['status']}"


def _stage_status(assertion: RubricAssertion, run: RunRecord) -> str | None:
    name, expected = assertion["stage"], assertion["expected"]
    if not name:
        return "stage-status assertion missing stage"
    if not isinstance(expected, str):
        return "stage-status assertion missing expected string"
    status = {stage["node_id"]: stage["status"] for stage in run["stages"]}.get(name)
    if status is None:
        return f"expected stage {name} to exist"
    return None if status == expected else f"expected stage {name} status {expected}, got {status}"


def _visible_text(assertion: RubricAssertion, run: RunRecord) -> str | None:
    text, name = assertion["contains"], assertion["stage"]
    if text is None:
        return "visible-text assertion missing contains"
    texts = (stage["visible_text"] or "" for stage in run["stages"] if name in (None, stage["node_id"]))
    return None if any(text in each for each in texts) else f'expected visible text to contain "{text}"'


def _question(assertion: RubricAssertion, run: RunRecord) -> str | None:
    text = assertion["contains"]
    if text is None:
        return "HITL assertion missing contains"
    asked = any(text in question["prompt"] for question in run["hitl_questions"])
    return None if asked else f'expected HITL question to contain "{text}"'


_ASSERTIONS: Mapping[str, Callable[[RubricAssertion, RunRecord], str | None]] = {
    "run-status": _run_status,
    "status": _run_status,
    "stage-status": _stage_status,
    "visible-text-contains": _visible_text,
    "hitl-question-contains": _question,
}
