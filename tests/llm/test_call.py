"""One model call: options, budgets, retries, errors and the result dict (07 §1)."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from harnpy.faults import Fault, OptionError
from harnpy.llm.call import Models
from harnpy.llm.call_result import result_dict
from harnpy.llm.errors import BudgetExceeded, CallError, cause, retryable
from harnpy.llm.text_format import parse_reply, visible_text
from tests.worlds import models_with


@pytest.fixture
def models() -> Models:
    return models_with({})


def request(models: Models, options: dict[str, Any], prompt: str = "hi", system: str | None = None) -> Any:
    return models.request(prompt, system, models.options({"provider": "mock", **options}))


def test_the_defaults(models: Models) -> None:
    made = request(models, {})
    assert (made.provider, made.model, made.max_tokens) == ("mock", "claude-sonnet-4-20250514", 16384)
    assert (made.retries, made.backoff_ms, made.thinking) == (0, 250, {"mode": "disabled"})


def test_wrong_types_read_as_absent_and_unknown_keys_are_ignored(models: Models) -> None:
    made = request(models, {"max_tokens": 1.5, "seed": "x", "temperature": 1, "unheard": 3, "stop": []})
    assert (made.max_tokens, made.sampling) == (16384, {"temperature": 1.0})


@pytest.mark.parametrize("name", ["auto", "AUTO"])
def test_the_environment_names_the_provider(name: str) -> None:
    models = models_with({"HARN_LLM_PROVIDER": "mock"})
    assert models.request("hi", None, models.options({})).provider == "mock"
    assert models.request("hi", None, models.options({"provider": name})).provider == "mock"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"transcript": None},
            OptionError,
            "llm_call / agent_loop: the `transcript` option was removed. Open or open-and-resume a session "
            "with agent_session_open(id) and pass `session_id: id` instead.",
        ),
        (
            {"provider": "openai"},
            OptionError,
            "Missing API key: set OPENAI_API_KEY environment variable (provider 'openai', configured ",
        ),
        (
            {"response_format": "xml"},
            OptionError,
            'response_format: expected "json", "json_object", or "text", got "xml"',
        ),
        (
            {"tools": [1]},
            OptionError,
            "tools must be declared as tool definition dicts or a tool_registry",
        ),
        ({"thinking": "loud"}, OptionError, 'thinking: expected bool, dict, or one of "enabled" |'),
        ({"thinking": {"mode": "x"}}, OptionError, 'thinking.mode: expected "disabled" | "enabled" |'),
        (
            {"thinking": {"mode": "effort"}},
            OptionError,
            'thinking.level is required when thinking.mode is "effort"',
        ),
        (
            {"thinking": {"budget_tokens": -1}},
            OptionError,
            "thinking.budget_tokens: expected a non-negative int",
        ),
        (
            {"reasoning_effort": "max"},
            OptionError,
            'reasoning_effort: expected "low" | "medium" | "high", got "max"',
        ),
        (
            {"reasoning_effort": "low", "thinking": True},
            OptionError,
            "reasoning_effort cannot be combined with a non-disabled thinking option",
        ),
        (
            {"budget": 3},
            OptionError,
            "budget: expected a dict "
            "{max_cost_usd?, total_budget_usd?, max_input_tokens?, max_output_tokens?}",
        ),
        ({"max_cost_usd": None}, OptionError, "budget.max_cost_usd: expected a non-negative number"),
        (
            {"budget": {"max_cost_usd": float("inf")}},
            OptionError,
            "budget.max_cost_usd: expected a non-negative finite number",
        ),
        ({"max_input_tokens": 1.5}, OptionError, "budget.max_input_tokens: expected a non-negative integer"),
    ],
)
def test_options_that_make_no_request(
    models: Models, options: dict[str, Any], error: type[Fault], message: str
) -> None:
    with pytest.raises(error) as caught:
        request(models, options)
    assert str(caught.value).startswith(message)
    assert models.mock.calls() == []


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"thinking": False}, {"mode": "disabled"}),
        ({"thinking": "off"}, {"mode": "disabled"}),
        ({"thinking": {"enabled": False}}, {"mode": "disabled"}),
        ({"thinking": True}, {"mode": "enabled", "budget_tokens": None}),
        ({"thinking": {"budget_tokens": 5}}, {"mode": "enabled", "budget_tokens": 5}),
        ({"thinking": "adaptive"}, {"mode": "adaptive"}),
        ({"thinking": "high"}, {"mode": "effort", "level": "high"}),
        ({"thinking": {"mode": "effort", "level": "low"}}, {"mode": "effort", "level": "low"}),
        ({"reasoning_effort": "medium"}, {"mode": "effort", "level": "medium"}),
    ],
)
def test_thinking(models: Models, given: dict[str, Any], read: dict[str, Any]) -> None:
    models.mock.add({"text": "x"})  # so that no model's modes matter
    assert request(models, given).thinking == read


# Budgets.


@pytest.mark.parametrize(
    ("limits", "which", "sentence"),
    [
        ({"max_input_tokens": 1}, "max_input_tokens", "projected input tokens 5 would"),
        ({"max_output_tokens": 9}, "max_output_tokens", "projected output tokens 10 would"),
        ({"budget": {"max_cost_usd": 0.0001}}, "max_cost_usd", "projected cost $0.000165 would"),
        ({"total_budget_usd": 0}, "total_budget_usd", "projected session cost $0.000165 would"),
    ],
)
def test_a_budget_forbids_the_call_before_it_is_made(
    models: Models, limits: dict[str, Any], which: str, sentence: str
) -> None:
    models.mock.add({"text": "kept"})
    made = request(models, {"max_tokens": 10, **limits})
    with pytest.raises(BudgetExceeded) as caught:
        models.ask(made)
    error = caught.value.as_dict("mock", "m")
    assert sentence in error["message"]
    assert error["message"].endswith(f"would exceed {which}")
    assert (error["limit"], error["category"], error["projected_output_tokens"]) == (
        which,
        "budget_exceeded",
        10,
    )
    assert models.mock.calls() == []
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_reaching_a_budget_exactly_is_allowed(models: Models) -> None:
    models.ask(request(models, {"max_tokens": 10, "max_input_tokens": 5.0, "max_output_tokens": 10}))


# Retries and errors.


def test_a_transient_failure_is_tried_again(models: Models) -> None:
    for category in ("overloaded", "timeout"):
        models.mock.add({"error": {"category": category, "message": "x"}})
    models.mock.add({"text": "at last"})
    assert models.ask(request(models, {"llm_retries": 2})).text == "at last"
    assert len(models.mock.calls()) == 3


def test_a_terminal_failure_is_not(models: Models) -> None:
    models.mock.add({"error": {"category": "auth", "message": "x"}})
    with pytest.raises(CallError):
        models.ask(request(models, {"llm_retries": 2}))
    assert len(models.mock.calls()) == 1


@pytest.mark.parametrize(
    ("category", "message", "kind", "reason"),
    [
        ("generic", "kind: transient, rate", "transient", "rate_limit"),
        ("generic", "context window exceeded", "terminal", "context_overflow"),
        ("generic", "blocked by policy", "terminal", "content_policy"),
        ("generic", "Unauthorized", "terminal", "auth_failure"),
        ("generic", "model not found", "terminal", "model_unavailable"),
        ("auth", "too many requests", "transient", "rate_limit"),
        ("generic", "Bad Gateway", "transient", "server_error"),
        ("generic", "timed out", "transient", "timeout"),
        ("generic", "unexpected eof", "transient", "network_error"),
        ("generic", "bad request", "terminal", "invalid_request"),
        ("overloaded", "x", "transient", "server_error"),
        ("transient_network", "x", "transient", "network_error"),
        ("not_found", "x", "terminal", "model_unavailable"),
        ("tool_error", "x", "terminal", "unknown"),
    ],
)
def test_causes(category: str, message: str, kind: str, reason: str) -> None:
    assert cause(category, message) == (kind, reason)
    assert retryable(category, message) == (kind == "transient")


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("x\nretry-after: 1.5", 1500),
        ("Retry-After: 600", 60000),
        ("retry-after: -3", 0),
        ("retry-after: nan", None),
        ("retry-after: soon", None),
        ("nothing", None),
    ],
)
def test_retry_after(text: str, ms: int | None) -> None:
    assert CallError("rate_limit", text).as_dict("p", "m").get("retry_after_ms") == ms


def test_call_errors_pickle() -> None:
    error = pickle.loads(pickle.dumps(CallError("auth", "no")))
    assert (str(error), error.category, error.reason) == ("no", "auth", "auth_failure")


# Results.


def test_a_plain_result(models: Models) -> None:
    result = result_dict(models.ask(request(models, {}, "Hello world")))
    text = "Mock response to 2-word prompt: Hello world"
    assert (result["text"], result["prose"], result["visible_text"]) == (text, text, text)
    assert result["blocks"] == [{"type": "output_text", "text": text, "visibility": "public"}]
    assert (result["input_tokens"], result["output_tokens"], result["provider"]) == (11, 30, "mock")
    assert result["usage"].items() <= result.items()
    for absent in ("data", "tool_calls", "thinking", "stop_reason", "protocol_violations", "done_marker"):
        assert absent not in result


def test_a_tagged_result(models: Models) -> None:
    text = "stray <assistant_prose> a </assistant_prose>\n<odd><user_response>b</user_response><done>X</done>"
    models.mock.add({"text": text, "thinking": "t", "stop_reason": "stop"})
    result = result_dict(models.ask(request(models, {})))
    assert (result["prose"], result["visible_text"], result["done_marker"]) == ("b", "b", "X")
    assert result["canonical_text"] == (
        "<assistant_prose>\na\n</assistant_prose>\n\n<user_response>\nb\n</user_response>\n\n<done>X</done>"
    )
    assert [violation.partition(":")[0] for violation in result["protocol_violations"]] == [
        "Stray text outside response tags",
        'Unknown top-level tag "<odd>". Use <tool_call>, <assistant_prose>, <user_response>, or <done> — '
        "no other tags are accepted at the top level.",
    ]
    assert (result["private_reasoning"], result["stop_reason"]) == ("t", "stop")


def test_a_tool_call_is_an_error_where_no_tool_is_known() -> None:
    assert parse_reply("<tool_call>\nadd({})\n</tool_call>").errors == [
        "Unknown tool 'add'. Available tools: []"
    ]
    assert parse_reply("<tool_call>what</tool_call>").errors == [
        '<tool_call> body did not contain a bare `name({ ... })` expression. Got: "what"'
    ]


@pytest.mark.parametrize(
    ("text", "violation"),
    [
        ("<done> </done>", "<done> block is empty. Emit the configured done sentinel"),
        ("<open", 'Unclosed tag starting at "<open". Close it or remove it;'),
        ("<think>x</think>  \n<assistant_prose></assistant_prose>", "Response contained no <tool_call>"),
        ("x" * 130, f'Stray text outside response tags: "{"x" * 120}…". Wrap all prose'),
    ],
)
def test_violations(text: str, violation: str) -> None:
    assert [v[: len(violation)] for v in parse_reply(text).violations] == [violation]


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("<think>a</think>b<think>c", "b"),
        ("a<tool_call>x</tool_call><done>y</done>b", "ab"),
        ('<tool_result id="1">x</tool_result>ok', "ok"),
        ("[result of f]\nx\n[end of f result]\nok", "ok"),
        ("a\n ##DONE## \nb", "a\nb"),
        ("Finished. ##DONE##", "Finished. ##DONE##"),
        ("<assistant_prose> a </assistant_prose>b", "ab"),
        ("x<user_response> a </user_response><user_response>b</user_response>", "a\n\nb"),
        ("<user_response> </user_response>x", "<user_response> </user_response>x"),
        ('a\n```json\n{"steps": []}\n```\nb', "a\n\nb"),
        ('```json\n{"x": 1}\n```', '```json\n{"x": 1}\n```'),
        ('a {"mode": "ask_user", "q": {"x": 1}} b', "a  b"),
        ("a\r\n\n\nb", "a\n\nb"),
    ],
)
def test_visible_text(text: str, visible: str) -> None:
    assert visible_text(text) == visible
