"""Assertions and error categories. Spec: 04 §24, 02 §19.8."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.builtins.language.errors import classify
from harnpy.llm.errors import CATEGORIES


def test_assert(vm: Any) -> None:
    assert vm.run("assert", 1) is None
    assert vm.failure("assert", 0) == "Assertion failed"
    assert vm.failure("assert") == "Assertion failed"
    assert vm.failure("assert", [], "why") == "why"
    assert vm.failure("assert", False, 7) == "7"


def test_assert_eq(vm: Any) -> None:
    assert vm.run("assert_eq", [1, {"a": 2}], [1.0, {"a": 2}]) is None
    assert vm.run("assert_eq", None, None) is None
    assert vm.failure("assert_eq", 1, "1") == "Assertion failed: expected 1, got 1"
    assert vm.failure("assert_eq", [2], None) == "Assertion failed: expected nil, got [2]"
    assert vm.failure("assert_eq", True, 1, "no") == "no"
    assert vm.failure("assert_eq", True, 1, None) == "Assertion failed: expected 1, got true"
    assert vm.failure("assert_eq", None) == "assert_eq requires at least 2 arguments"


def test_assert_ne(vm: Any) -> None:
    assert vm.run("assert_ne", 1, "1") is None
    assert vm.failure("assert_ne", [1], [1]) == "Assertion failed: values should not be equal: [1]"
    assert vm.failure("assert_ne", 1, 1, "same") == "same"
    assert vm.failure("assert_ne") == "assert_ne requires at least 2 arguments"


def test_throw_error(vm: Any) -> None:
    assert vm.failure("throw_error", "slow", "timeout") == {"category": "timeout", "message": "slow"}
    assert vm.failure("throw_error", [1], "odd") == {"category": "generic", "message": "[1]"}
    assert vm.failure("throw_error", "x") == {"category": "generic", "message": "x"}
    assert vm.failure("throw_error", "x", None) == {"category": "generic", "message": "x"}


@pytest.mark.parametrize(
    ("message", "category"),
    [
        ("HTTP 401 unauthorized", "auth"),
        ("status=403", "auth"),
        ("404", "not_found"),
        ("(410)", "not_found"),
        ("408 504", "timeout"),
        ("x522y", "timeout"),
        ("524", "timeout"),
        ("429: slow down", "rate_limit"),
        ("503", "overloaded"),
        ("529", "overloaded"),
        ("500", "server_error"),
        ("502", "server_error"),
        ("418 then 429", "rate_limit"),
        ("id 14299", "generic"),
        ("5000 ms", "generic"),
        ("Deadline exceeded", "timeout"),
        ("context deadline exceeded", "timeout"),
        ("deadline exceeded", "generic"),
        ("overloaded_error", "overloaded"),
        ("api_error", "server_error"),
        ("insufficient_quota", "rate_limit"),
        ("billing_hard_limit_reached", "rate_limit"),
        ("invalid_api_key", "auth"),
        ("authentication_error", "auth"),
        ("not_found_error", "not_found"),
        ("model_not_found", "not_found"),
        ("circuit_open", "circuit_open"),
        ("Connection RESET by peer", "transient_network"),
        ("Broken pipe", "transient_network"),
        ("unexpected EOF", "transient_network"),
        ("connection refused: 404", "not_found"),
        ("", "generic"),
    ],
)
def test_classification(vm: Any, message: str, category: str) -> None:
    assert classify(message) == category
    assert category in CATEGORIES
    assert vm.run("error_category", message) == category
    assert vm.run("is_timeout", message) == (category == "timeout")
    assert vm.run("is_rate_limited", message) == (category == "rate_limit")


def test_categories_of_other_values(vm: Any) -> None:
    assert vm.run("error_category", {"category": "tool_error"}) == "tool_error"
    assert vm.run("error_category", {"category": 5}) == "5"
    assert vm.run("error_category", {"message": "429"}) == "generic"
    assert vm.run("error_category", 429) == "generic"
    assert vm.run("error_category") == "generic"
    assert vm.run("is_timeout", {"category": "timeout"})
    assert vm.run("is_rate_limited", {"category": "rate_limit"})
    assert not vm.run("is_timeout", 504)
