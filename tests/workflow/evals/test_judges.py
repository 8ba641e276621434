"""Rubrics of the kind `llm-judge`: what the judge's service is sent, and `judge_run` for Python (08 §8.7)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harnpy.faults import MisuseError
from harnpy.llm.call import Models, models_alone
from harnpy.workflow.evaluation import JudgeScore, judge_run, normalised_pack, run_pack
from harnpy.workflow.records.record import normalised_run
from tests.llm.test_real_calls import entry, environment
from tests.llm.wire import OPENAI, Answer, Fail, Say, Wire
from tests.worlds import models_with, world_with

Dict = dict[str, Any]

RUN = {
    "id": "r1",
    "task": "How long does a refund take?",
    "status": "completed",
    "stages": [{"node_id": "answer", "status": "completed", "visible_text": "A week."}],
}
RUBRIC = {"id": "tone", "kind": "llm-judge", "prompt": "Is it polite?"}
PACK = {"fixtures": [{"id": "r", "inline": RUN}], "cases": [{"run": "r", "rubrics": ["tone"]}]}
GOOD = json.dumps({"reason": "It is polite.", "score": 1})

_UNSTRUCTURED = "[[capabilities.provider.acme]]\nmodel_match = '*'\nstructured_output = false\n"
_THINKS = "[[capabilities.provider.acme]]\nmodel_match = '*'\nthinking_modes = ['adaptive']\n"


def answer(score: float, **more: Any) -> Dict:
    return {"text": json.dumps({"reason": "So it is.", "score": score, **more})}


def mocked(*replies: Dict) -> Models:
    models = models_with({"HARN_LLM_PROVIDER": "mock"})
    for reply in replies:
        models.mock.add(reply)
    return models


# Over a socket.


class Service:
    """Judges by a service that gives these answers; `bodies` are the requests that it got."""

    def __init__(self, directory: Path, more: str = "") -> None:
        self.directory = directory
        self.more = more
        self.bodies: list[Dict] = []

    def report(self, *answers: Answer, env: dict[str, str] | None = None, **rubric: Any) -> Dict:
        with Wire(OPENAI, *answers) as wire:
            given = environment(wire, self.directory, **(env or {}))
            (self.directory / "providers.toml").write_text(entry(wire) + self.more, encoding="utf-8")
            world = world_with(get=given.get)
            pack = normalised_pack({**PACK, "rubrics": [{**RUBRIC, **rubric}]}, world)
            with models_alone(world) as models:
                report = run_pack(pack, world, models)
            self.bodies = [request.body for request in wire.requests]
        return report


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(tmp_path)


def test_the_criteria_are_the_system_prompt_and_the_run_is_the_message(service: Service) -> None:
    report = service.report(Say(GOOD, input_tokens=50, output_tokens=5))
    (case,), (body,) = report["cases"], service.bodies
    (found,) = case["judgements"]
    assert (case["pass"], found["score"], found["reason"]) == (True, 1.0, "It is polite.")
    assert (found["model"], body["model"]) == ("wire-1", "m-1")
    system, message = body["messages"]
    assert "Is it polite?" in system["content"]
    assert "A week." not in system["content"]
    assert json.loads(message["content"]) == {
        "task": "How long does a refund take?",
        "status": "completed",
        "stages": [{"stage": "answer", "status": "completed", "text": "A week."}],
    }
    assert body["temperature"] == 0
    used = {"calls": 1, "input_tokens": 50, "output_tokens": 5, "cost_usd": 0.0, "unpriced": 1}
    assert report["usage"] == used == found["usage"]


def test_a_service_is_sent_a_schema_without_bounds(service: Service) -> None:
    assert service.report(Say(GOOD))["pass"]
    form = service.bodies[0]["response_format"]["json_schema"]
    assert form["strict"]
    assert form["schema"]["properties"] == {"reason": {"type": "string"}, "score": {"type": "number"}}


def test_a_service_that_takes_no_schema_is_told_in_words(tmp_path: Path) -> None:
    service = Service(tmp_path, _UNSTRUCTURED)
    assert service.report(Say(f"Here it is:\n{GOOD}"))["pass"]
    assert "response_format" not in service.bodies[0]


def test_an_answer_of_another_form_is_asked_for_again(service: Service) -> None:
    report = service.report(Say("I like it."), Say('{"reason": "r", "score": 7}'), Say(GOOD))
    assert report["pass"]
    assert [len(body["messages"]) for body in service.bodies] == [2, 3, 3]
    assert report["usage"]["calls"] == 3
    assert report["usage"]["input_tokens"] == 33


def test_a_model_that_takes_no_temperature_is_asked_without_one(service: Service) -> None:
    refusal = Fail(400, "Unsupported parameter: 'temperature' is not supported with this model.")
    assert service.report(refusal, Say(GOOD))["pass"]
    assert ["temperature" in body for body in service.bodies] == [True, False]


def test_a_model_that_always_thinks_is_sent_no_temperature(tmp_path: Path) -> None:
    service = Service(tmp_path, _THINKS)
    assert service.report(Say(GOOD))["pass"]
    assert "temperature" not in service.bodies[0]


def test_an_experiment_changes_no_judge(service: Service) -> None:
    assert service.report(Say(GOOD))["pass"]
    plain = service.bodies
    assert service.report(Say(GOOD), env={"HARN_STRUCTURAL_EXPERIMENT": "doubled_prompt"})["pass"]
    assert service.bodies == plain


def test_a_temperature_that_the_pack_sets_is_kept(service: Service) -> None:
    refusal = Fail(400, "Unsupported parameter: 'temperature' is not supported with this model.")
    report = service.report(refusal, Say(GOOD), judge={"temperature": 0.5})
    assert [body["temperature"] for body in service.bodies] == [0.5]
    (failure,) = report["cases"][0]["failures"]
    assert failure.startswith("rubric 'tone' could not be judged: ")


def test_a_call_that_fails_fails_the_case(service: Service) -> None:
    report = service.report(Fail(401, "no"))
    (failure,) = report["cases"][0]["failures"]
    assert failure.startswith("rubric 'tone' could not be judged: ")
    assert (report["pass"], report["usage"]["calls"]) == (False, 0)


# For Python: any run instead of the case's.


def score(run: Any, models: Models, case: int | None = 0, **pack: Any) -> JudgeScore:
    whole = normalised_pack({**PACK, "rubrics": [RUBRIC], **pack}, models.world)
    return judge_run(whole, None if case is None else whole["cases"][case], run, models)


def test_a_text_is_judged() -> None:
    models = mocked(answer(0.75))
    found = score("You are welcome.", models)
    assert (found.score, found.passed, found.reason) == (0.75, True, "tone: So it is.")
    assert (found.usage.calls, len(found.judgements)) == (1, 1)
    (call,) = models.mock.calls()
    shown = json.loads(call["messages"][0]["content"])
    assert [stage["text"] for stage in shown["stages"]] == ["You are welcome."]


def test_a_record_is_judged_by_all_rubrics_of_a_pack() -> None:
    rubrics = [
        {**RUBRIC, "judge": {"scale": [1, 5]}},
        {"id": "short", "assertions": [{"kind": "visible-text-contains", "contains": "month"}]},
        {"id": "done", "assertions": [{"kind": "run-status", "expected": "completed"}]},
    ]
    found = score(_record(), mocked(answer(4)), None, rubrics=rubrics)
    assert found.score == (0.75 + 0 + 1) / 3
    assert not found.passed
    assert found.reason == "rubric 'short' expected visible text to contain \"month\"; tone: So it is."


def test_a_judge_that_fails_gives_no_score() -> None:
    found = score("x", mocked({"error": {"category": "auth", "message": "no such key"}}))
    assert (found.score, found.passed) == (None, False)
    assert found.reason == "rubric 'tone' could not be judged: no such key"


def test_thresholds_of_the_case_hold() -> None:
    cases = [{"rubrics": ["tone"], "thresholds": {"max_stage_count": 0}}]
    found = score("x", mocked(answer(1)), cases=cases)
    assert (found.score, found.passed) == (1.0, False)
    assert found.reason == "stage count 1 exceeds threshold 0; tone: So it is."


def test_a_pack_without_rubrics_judges_nothing() -> None:
    with pytest.raises(MisuseError, match=r"^eval pack 'p' has no rubric to judge by$"):
        score("x", mocked(), None, id="p", rubrics=[])


def _record() -> Any:
    return normalised_run(RUN, world_with())
