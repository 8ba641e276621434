"""What programs can't see of structured output: warnings, what providers and loops are given (07 §1.6)."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.llm.call_options import Output
from harnpy.llm.structured import nudge_text, read_answer, settle
from tests.worlds import models_with

SCHEMA = {"type": "object", "required": ["a"]}


class Asked:
    """Models that warn into a list."""

    def __init__(self) -> None:
        self.warnings: list[tuple[str, str]] = []
        self.models = models_with({}, warn=lambda *warning: self.warnings.append(warning))

    def request(self, **options: Any) -> Any:
        return self.models.request("q", None, self.models.options({"provider": "mock", **options}))

    def answer(self, text: str, **options: Any) -> Any:
        self.models.mock.add({"text": text})
        answer = self.models.answer(self.request(schema_retries=0, **options))
        return settle(answer, self.models.world.warn)


@pytest.fixture
def asked() -> Asked:
    return Asked()


def test_warn_warns_of_what_stays_invalid(asked: Asked) -> None:
    asked.answer("{}", json_schema=SCHEMA, output_validation="warn")
    [(topic, message)] = asked.warnings
    assert topic == "llm"
    assert message == (
        "LLM output failed schema validation: at root: missing required key 'a' (hint: set "
        "`schema_retries: N` in the llm_call options to automatically re-prompt the "
        "model with a corrective nudge)"
    )


def test_only_warn_warns_and_only_of_what_is_invalid(asked: Asked) -> None:
    asked.answer('{"a": 1}', json_schema=SCHEMA, output_validation="warn")
    asked.answer("{}", json_schema=SCHEMA, output_validation="off")
    asked.answer("{}", json_schema=SCHEMA)
    assert asked.warnings == []


def test_a_provider_is_told_kind_schema_and_strictness(asked: Asked) -> None:
    def told(**options: Any) -> tuple[Any, ...]:
        output = asked.request(**options).output
        return output.kind, output.schema, output.strict

    assert told() == ("text", None, True)
    assert told(response_format="json") == ("json_object", None, True)
    assert told(json_schema=SCHEMA, response_format="json") == ("json_schema", SCHEMA, True)
    assert told(output_schema=SCHEMA) == ("text", None, True)
    assert told(output_format={"kind": "schema", "schema": SCHEMA, "strict": False}) == (
        "json_schema",
        SCHEMA,
        False,
    )
    assert told(json_schema=SCHEMA, output_format="json") == ("json_object", SCHEMA, True)


def test_a_request_that_is_asked_again_is_left_as_it_was(asked: Asked) -> None:
    request = asked.request(json_schema=SCHEMA, schema_retries=2)
    for text in ("no", "no", '{"a": 1}'):
        asked.models.mock.add({"text": text})
    answer = asked.models.answer(request)
    assert len(request.messages) == 1
    assert (len(answer.request.messages), answer.attempts) == (2, 3)


def test_a_loop_can_judge_and_nudge_by_itself(asked: Asked) -> None:
    request = asked.request(json_schema=SCHEMA, schema_retry_nudge="Again.")
    asked.models.mock.add({"text": "{}"})
    reading = read_answer(asked.models.ask(request), request, asked.models.values)
    assert (reading.found, reading.data, reading.errors) == (True, {}, ("at root: missing required key 'a'",))
    expected = "Again.\n\nValidation errors: at root: missing required key 'a'"
    assert nudge_text(request.output, reading.errors) == expected


def test_a_nudge_without_errors_says_so() -> None:
    assert nudge_text(Output(nudge="Again."), []) == "Again.\n\nValidation errors: (no detailed errors)"
    assert nudge_text(Output(nudge=False), []) is None
