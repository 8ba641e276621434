"""Dynamic permissions: rules, matchers, escalation, what is remembered (07 §8.3)."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.agent.rules.permissions import (
    PermissionDecision,
    Permissions,
    permission_events,
    read_permissions,
)
from harnpy.faults import MisuseError

ALLOWED = PermissionDecision(True, "permission allow rule matched")


def permissions(*given: dict[str, Any]) -> Permissions:
    read = [read_permissions(each, "agent_loop") for each in given]
    return Permissions([each for each in read if each is not None], "s1")


def granted(rules: Any, tool: str = "t", **arguments: Any) -> bool:
    decision = permissions({"allow": rules}).decide(tool, arguments)
    assert decision is not None
    return decision.granted


# Reading.


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("all", ": permissions must be a dict"),
        ({"allow": [1]}, ".allow: list entries must be strings"),
        ({"deny": [None]}, ".deny: list entries must be strings"),
        ({"allow": "x"}, ".allow: expected a list or dict, got string"),
        ({"deny": 3}, ".deny: expected a list or dict, got int"),
        ({"allow": {"t": {"arg_key": "p"}}}, ".allow: dict matchers must include arg_key and patterns"),
        ({"allow": {"t": {"patterns": ["p"]}}}, ".allow: dict matchers must include arg_key and patterns"),
        ({"allow": {"t": 1.5}}, ".allow: unsupported matcher type float"),
        ({"allow": {"t": ["a", 1]}}, ".allow: list entries must be strings"),
    ],
)
def test_what_cannot_be_read(given: Any, message: str) -> None:
    with pytest.raises(MisuseError) as error:
        read_permissions(given, "agent_loop")
    assert str(error.value) == "agent_loop" + message


# Rules.


def test_without_a_policy_there_is_no_decision() -> None:
    assert permissions().decide("t", {}) is None


def test_a_policy_without_rules_grants() -> None:
    assert permissions({}).decide("t", {}) == ALLOWED
    assert permissions({"allow": []}).decide("t", {}) == ALLOWED


def test_what_is_not_allowed_is_denied() -> None:
    rules = permissions({"allow": ["read_*"]})
    assert rules.decide("read_file", {}) == ALLOWED
    reason = "permission denied: tool 'exec' is not allowed by this agent's permissions"
    assert rules.decide("exec", {}) == PermissionDecision(False, reason)


def test_deny_rules_come_first() -> None:
    rules = permissions({"allow": ["*"], "deny": ["db_*"]})
    assert rules.decide("db_drop", {}) == PermissionDecision(False, "permission denied by deny rule: db_*")
    assert rules.decide("read", {}) == ALLOWED


@pytest.mark.parametrize(
    ("matcher", "arguments", "expected"),
    [
        (None, {}, True),
        (True, {}, True),
        (False, {}, False),
        ("src/*", {"path": "src/a"}, True),
        ("src/*", {"path": "/etc/a"}, False),
        (["a*", "*z"], {"deep": [{"x": "xyz"}]}, True),
        ('{"n":1}', {"n": 1}, True),
        ('{"n":2}', {"n": 1}, False),
        ({"arg_key": "path", "patterns": ["src/*"]}, {"path": "src/a", "text": "no"}, True),
        ({"arg_key": "path", "patterns": ["src/*"]}, {"path": "/etc", "text": "src/a"}, False),
        ({"key": "path", "arg_patterns": "src/*"}, {"path": "src/a"}, True),
        ({"key": "n", "allow": ["4*"]}, {"n": 42}, True),
        ({"key": "path", "allow": ["*"]}, {}, False),
        (lambda arguments: arguments.get("n"), {"n": 1}, True),
        (lambda arguments: arguments.get("n"), {"n": 0}, False),
    ],
)
def test_matchers(matcher: Any, arguments: dict[str, Any], expected: bool) -> None:
    assert granted({"t": matcher}, **arguments) is expected
    denied = permissions({"deny": {"t": matcher}}).decide("t", arguments)
    assert denied is not None
    assert denied.granted is not expected


def test_all_policies_must_grant() -> None:
    rules = permissions({"deny": ["b"]}, {"allow": ["a", "b"]}, {})
    assert rules.decide("a", {}) == ALLOWED
    assert rules.decide("b", {}) == PermissionDecision(False, "permission denied by deny rule: b")
    inner = rules.decide("c", {})
    assert inner is not None
    assert not inner.granted


# Escalation.


def asked(answer: Any) -> PermissionDecision | None:
    return permissions({"deny": ["t"], "on_escalation": lambda request: answer}).decide("t", {})


@pytest.mark.parametrize(
    ("answer", "granted", "reason"),
    [
        (True, True, "permission escalation granted"),
        ("once", True, "permission escalation granted"),
        ("session", True, "permission escalation granted"),
        (False, False, "permission escalation denied"),
        (None, False, "permission escalation denied"),
        ({"grant": True, "reason": "ok by Ada", "approver": "Ada"}, True, "ok by Ada"),
        ({"grant": "session"}, True, "permission escalation granted"),
        ({"granted": "once", "reason": ""}, True, "permission escalation granted"),
        ({"grant": False, "reason": 7}, False, "7"),
        ({}, False, "permission escalation denied"),
    ],
)
def test_answers_to_an_escalation(answer: Any, granted: bool, reason: str) -> None:
    assert asked(answer) == PermissionDecision(granted, reason, escalated=True)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (1, "must return false, true, 'once', 'session', or {grant}, got int"),
        ([], "must return false, true, 'once', 'session', or {grant}, got list"),
        ({"grant": 1}, "grant must be false, true, 'once', or 'session', got int"),
        ("always", "unsupported grant scope 'always'"),
        ({"grant": "always"}, "unsupported grant scope 'always'"),
        ("deny", "string denial must return false"),
        ("denied", "string denial must return false"),
        ({"grant": "false"}, "string denial must return false"),
    ],
)
def test_answers_that_are_none(answer: Any, message: str) -> None:
    with pytest.raises(MisuseError) as error:
        asked(answer)
    assert str(error.value) == f"permissions on_escalation {message}"


def test_the_request_tells_what_is_asked_for() -> None:
    requests: list[Any] = []
    permissions({"deny": ["t"], "on_escalation": requests.append}).decide("t", {"n": 1})
    assert requests == [
        {
            "_type": "PermissionRequest",
            "tool": "t",
            "args": {"n": 1},
            "session_id": "s1",
            "reason": "permission denied by deny rule: t",
            "grant_options": ["once", "session", False],
        }
    ]


def test_a_callback_that_is_no_function_denies() -> None:
    reason = "permission escalation callback is not callable"
    decision = permissions({"deny": ["t"], "on_escalation": "ask"}).decide("t", {})
    assert decision == PermissionDecision(False, reason, escalated=True)


def test_session_grants_are_remembered_for_the_same_call() -> None:
    answers = iter(["session", False, True])
    rules = permissions({"allow": ["other"], "on_escalation": lambda request: next(answers)})
    assert rules.decide("t", {"n": 1}) == PermissionDecision(True, "permission escalation granted", True)
    assert rules.decide("t", {"n": 1}) == PermissionDecision(True, "session grant")
    assert rules.decide("t", {"n": 2}) == PermissionDecision(False, "permission escalation denied", True)
    assert rules.decide("t", {"n": 2}) == PermissionDecision(True, "permission escalation granted", True)


def test_a_session_grant_of_one_policy_is_none_of_another() -> None:
    inner: list[Any] = []
    rules = permissions(
        {"deny": ["t"], "on_escalation": lambda request: "session"},
        {"deny": ["t"], "on_escalation": inner.append},
    )
    for _ in range(2):
        assert rules.decide("t", {}) == PermissionDecision(False, "permission escalation denied", True)
    assert len(inner) == 2


# Events.


def test_events_of_a_plain_decision() -> None:
    (event,) = permission_events("t", {"n": 1}, ALLOWED)
    assert (event["kind"], event["role"], event["visibility"], event["text"]) == (
        "PermissionGrant",
        "tool",
        "internal",
        "permission allow rule matched",
    )
    assert event["metadata"] == {
        "tool_name": "t",
        "arguments": {"n": 1},
        "reason": "permission allow rule matched",
        "escalated": False,
    }


def test_an_escalated_decision_has_an_event_before_it() -> None:
    events = permission_events("t", {}, PermissionDecision(False, "no", escalated=True))
    assert [(event["kind"], event["text"], event["metadata"]["escalated"]) for event in events] == [
        ("PermissionEscalation", "no", True),
        ("PermissionDeny", "no", True),
    ]
