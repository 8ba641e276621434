"""Replay fixtures: the expected outcome of a run, and whether a run has it. Spec: 08 §8.3.

Questions that a run asked are compared word by word: lower case, letters and digits only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from harnpy.formats.dicts import errors_after
from harnpy.formats.shapes import made, read
from harnpy.workflow.records.record_shapes import ExpectedQuestion, ReplayFixture
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.agent.people import Question
    from harnpy.formats.dicts import Dict
    from harnpy.workflow.records.record_shapes import RunRecord, StageAssertion, StageRecord
    from harnpy.world import World

_WORD = re.compile(r"[^\W_]+")


def clarifying_failures(questions: Sequence[Question], given: ExpectedQuestion | None) -> Iterator[str]:
    """Report how the questions differ from what was expected."""
    wanted = given or made(ExpectedQuestion, {})
    least = max(1, wanted["min_questions"] or 0)
    most = 1 if wanted["max_questions"] is None else wanted["max_questions"]
    count = len(questions)
    if count < least:
        yield f"expected at least {least} clarifying question(s), got {count}"
    if count > most:
        yield f"expected at most {most} clarifying question(s), got {count}"
    prompts = [question["prompt"] for question in questions]
    if prompts and not any(_matches(prompt, wanted) for prompt in prompts):
        shown = ", ".join(f'"{prompt}"' for prompt in prompts)
        yield f"no clarifying question matched fixture; actual questions: {shown}"


def _matches(prompt: str, wanted: ExpectedQuestion) -> bool:
    accepted = [text for text in (wanted["expected_question"], *wanted["accepted_questions"]) if text]
    said = _words(prompt)
    return (
        (not accepted or said in map(_words, accepted))
        and all(_words(term) in said for term in wanted["required_terms"])
        and not any(_words(term) in said for term in wanted["forbidden_terms"])
    )


def _words(text: str) -> str:
    """Return the words, each between spaces, so that a term is found where its words follow each other."""
    return f" {' '.join(_WORD.findall(text.lower()))} "


REPLAY, CLARIFYING = "replay", "clarifying_question"
_SNIPPET = 80


def fixture_of(run: RunRecord, world: World) -> ReplayFixture:
    """Return the fixture that this run passes: one assertion for the last stage of each node."""
    return fixture_made(run, f"fixture_{world.ids.new()}", rfc3339(world.clock.now()))


def fixture_made(run: RunRecord, id: str, created_at: str) -> ReplayFixture:
    """Return that fixture as it was made at that time."""
    return made(
        ReplayFixture,
        {
            "id": id,
            "source_run_id": run["id"],
            "workflow_id": run["workflow_id"],
            "workflow_name": run["workflow_name"],
            "created_at": created_at,
            "expected_status": run["status"],
            "stage_assertions": [_assertion(stage) for stage in _by_node(run).values()],
        },
    )


def read_fixture(given: Any, caller: str) -> ReplayFixture:
    """Return a fixture with every key. Raise `MisuseError`, which names ``caller``."""
    with errors_after(f"{caller} parse error at "):
        return read(ReplayFixture, given, "fixture")


def evaluate_fixture(run: RunRecord, fixture: ReplayFixture) -> Dict:
    """Return `{pass, failures, stage_count}`. Empty fields of a fixture expect nothing."""
    failures = list(_failures(run, fixture))
    return {"pass": not failures, "failures": failures, "stage_count": len(run["stages"])}


def _assertion(stage: StageRecord) -> StageAssertion:
    return {
        "node_id": stage["node_id"],
        "expected_status": stage["status"],
        "expected_outcome": stage["outcome"],
        "expected_branch": stage["branch"],
        "required_artifact_kinds": list(dict.fromkeys(artifact["kind"] for artifact in stage["artifacts"])),
        "visible_text_contains": (stage["visible_text"] or "")[:_SNIPPET] or None,
    }


def _by_node(run: RunRecord) -> dict[str, StageRecord]:
    return {stage["node_id"]: stage for stage in run["stages"]}


def _failures(run: RunRecord, fixture: ReplayFixture) -> Iterator[str]:
    yield from _mismatch("run status", fixture["expected_status"], run["status"])
    stages = _by_node(run)
    for assertion in fixture["stage_assertions"]:
        stage = stages.get(assertion["node_id"])
        if stage is None:
            yield f"missing stage {assertion['node_id']}"
        else:
            yield from _stage_failures(stage, assertion)
    kind = fixture["eval_kind"] or REPLAY
    if kind == CLARIFYING:
        yield from clarifying_failures(run["hitl_questions"], fixture["clarifying_question"])
    elif kind != REPLAY:
        yield f"unknown eval_kind '{kind}'"


def _stage_failures(stage: StageRecord, assertion: StageAssertion) -> Iterator[str]:
    name = f"stage {stage['node_id']}"
    yield from _mismatch(f"{name} status", assertion["expected_status"], stage["status"])
    yield from _mismatch(f"{name} outcome", assertion["expected_outcome"], stage["outcome"])
    expected = assertion["expected_branch"]
    if expected != stage["branch"]:
        yield f"{name} branch mismatch: expected {option(expected)}, got {option(stage['branch'])}"
    kinds = {artifact["kind"] for artifact in stage["artifacts"]}
    for kind in assertion["required_artifact_kinds"]:
        if kind not in kinds:
            yield f"{name} missing artifact kind {kind}"
    snippet = assertion["visible_text_contains"]
    if snippet and snippet not in (stage["visible_text"] or ""):
        yield f'{name} visible text does not contain expected snippet "{snippet}"'


def _mismatch(what: str, expected: str, actual: str) -> Iterator[str]:
    if expected and expected != actual:
        yield f"{what} mismatch: expected {expected}, got {actual}"


def option(value: str | None) -> str:
    """Return an optional text, as messages show it."""
    return "None" if value is None else f'Some("{value}")'
