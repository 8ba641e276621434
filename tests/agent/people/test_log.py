"""Approvals and answers are in the log of the session that asks. Spec: 10 §A1.18, §C16.1."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy import Vm

LOOP = """
    let reg = tool_define(tool_registry(), "push", "Push", {parameters: {}, handler: { args -> BODY }})
    llm_mock({tool_calls: [{name: "push", arguments: {to: "main"}}]})
    llm_mock({text: "done"})
    agent_loop("go", nil, {provider: "mock", tools: reg, tool_format: "native", session_id: "s", OPTIONS})
"""


def events(body: str, options: str = "", setup: str = "", **vm: Any) -> list[Any]:
    program = Vm(**vm)
    program.run_source(setup + LOOP.replace("BODY", body).replace("OPTIONS", options))
    session = program.sessions.session("s")
    assert session
    wanted = ("approval", "external", "wait_", "tool_")
    return [event for event in session.events() if event.type.startswith(wanted)]


def test_a_question_is_an_external_input_that_the_session_waits_for() -> None:
    asked = events('ask_user("Which branch?")', setup='host_mock("hitl", "question", {answer: "main"})')
    assert [event.type for event in asked] == [
        "tool_started",
        "external_input",
        "wait_started",
        "wait_resolved",
        "external_input",
        "tool_completed",
    ]
    pending, waiting, answered = asked[1].data, asked[2].data, asked[4].data
    assert (pending["status"], pending["prompt"]) == ("pending", "Which branch?")
    assert waiting == {**waiting, "reason": "input", "external_id": pending["request_id"]}
    assert (answered["status"], answered["input"]) == ("received", "main")
    assert len({event.turn_id for event in asked}) == 1


@pytest.mark.parametrize(("approved", "decision"), [("true", "allow"), ("false", "deny")])
def test_an_approval_is_requested_and_resolved(approved: str, decision: str) -> None:
    mock = f'host_mock("hitl", "approval", {{approved: {approved}, reviewer: "ann"}})'
    requested, resolved = events('request_approval("push", {args: {to: "main"}})', setup=mock)[1:3]
    assert (requested.type, resolved.type) == ("approval_requested", "approval_resolved")
    assert requested.data.items() >= {"session_id": "s", "tool": "push", "kind": "approval"}.items()
    assert (resolved.data["id"], resolved.data["decision"]) == (requested.data["id"], decision)
    assert resolved.data["reviewers"] == ["ann"]


def test_a_question_without_an_answer_is_waited_for_no_more() -> None:
    asked = events('ask_user("Well?", {timeout: 1ms, default: "no"})')
    assert [event.type for event in asked[1:-1]] == ["external_input", "wait_started", "wait_resolved"]
    assert asked[3].data["reason"] == "timed out"
