"""Errors with a category, the category that a message suggests, and assertions. Spec: 02 §19.8, 04 §24."""

from __future__ import annotations

import re

from harnpy.builtins.language.arguments import PIECE, data_of
from harnpy.faults import pieces
from harnpy.llm.errors import CATEGORIES, GENERIC
from harnpy.vm.declare import ABSENT, builtin
from harnpy.vm.errors import Thrown
from harnpy.vm.values import display
from harnpy.vm.values.equality import equal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

# The error category that a message suggests. Pure: knows neither Vm nor provider. Spec: 02 §19.8.


_STATUS = re.compile(r"(?<![0-9])[45][0-9][0-9](?![0-9])")
_BY_STATUS = {
    "401": "auth",
    "403": "auth",
    "404": "not_found",
    "410": "not_found",
    "408": "timeout",
    "504": "timeout",
    "522": "timeout",
    "524": "timeout",
    "429": "rate_limit",
    "503": "overloaded",
    "529": "overloaded",
    "500": "server_error",
    "502": "server_error",
}
_BY_WORDS = {
    "Deadline exceeded": "timeout",
    "context deadline exceeded": "timeout",
    "overloaded_error": "overloaded",
    "api_error": "server_error",
    "insufficient_quota": "rate_limit",
    "billing_hard_limit_reached": "rate_limit",
    "invalid_api_key": "auth",
    "authentication_error": "auth",
    "not_found_error": "not_found",
    "model_not_found": "not_found",
    "circuit_open": "circuit_open",
}
_NETWORK = (
    "connection reset",
    "connection refused",
    "connection closed",
    "broken pipe",
    "dns error",
    "stream error",
    "unexpected eof",
)


def classify(message: str) -> str:
    """Return the category of an error message: by HTTP status, then by known words, else `generic`."""
    for status in _STATUS.findall(message):
        if status in _BY_STATUS:
            return _BY_STATUS[status]
    for words, category in _BY_WORDS.items():
        if words in message:
            return category
    lowered = message.lower()
    return "transient_network" if any(words in lowered for words in _NETWORK) else GENERIC


@builtin('throw_error(message: string, category: string = "generic") -> any', family="types")
def throw_error(vm: Vm, message: str, category: str) -> NoReturn:
    """Throw `{category, message}`; an unknown category becomes `generic`.

    Example: try { throw_error("no such user", "not_found") } catch (e) { e.category }  // "not_found"
    """
    raise Thrown({"category": category if category in CATEGORIES else GENERIC, "message": message})


@builtin("error_category(error: any) -> string", family="types")
def error_category(vm: Vm, error: Value) -> str:
    """Return the `category` of an error dict, or the one that an error text suggests; otherwise `generic`.

    Example: error_category("HTTP 429: too many requests")  // "rate_limit"
    """
    return category_of(error)


@builtin("is_timeout(error: any) -> bool", family="types")
def is_timeout(vm: Vm, error: Value) -> bool:
    """Return true if the error's category is `timeout`.

    Example: is_timeout({category: "timeout"})  // true
    """
    return category_of(error) == "timeout"


@builtin("is_rate_limited(error: any) -> bool", family="types")
def is_rate_limited(vm: Vm, error: Value) -> bool:
    """Return true if the error's category is `rate_limit`.

    Example: is_rate_limited("HTTP 429: too many requests")  // true
    """
    return category_of(error) == "rate_limit"


def category_of(error: Value) -> str:
    """Return the category of an error as `catch` sees it."""
    if type(error) is str:
        return classify(error)
    return display(error["category"]) if type(error) is dict and "category" in error else GENERIC


# Assertions. Spec: 04 §24.


@builtin("assert(cond: any, msg?: string) -> nil", family="testing")
def assert_true(vm: Vm, cond: Value, msg: str | None) -> None:
    """Throw `msg` unless `cond` is truthy.

    Example: try { assert(1 > 2, "no order") } catch (e) { e }  // "no order"
    """
    if not cond:
        raise Thrown("Assertion failed" if msg is None else msg)


@builtin("assert_eq(actual: any, expected: any, msg?: string) -> nil", family="testing", counted=True)
def assert_eq(vm: Vm, actual: Value = ABSENT, expected: Value = ABSENT, msg: Value = None) -> None:
    """Throw `msg` unless `actual == expected`.

    Example: try { assert_eq(1 + 1, 3) } catch (e) { e }  // "Assertion failed: expected 3, got 2"
    """
    if expected is ABSENT:
        raise Thrown("assert_eq requires at least 2 arguments")
    if not equal(actual, expected):
        text = f"Assertion failed: expected {display(expected)}, got {display(actual)}"
        failure = Thrown(text if msg is None else display(msg))
        failure.compared = actual, expected
        raise failure


@builtin("assert_ne(a: any, b: any, msg?: string) -> nil", family="testing", counted=True)
def assert_ne(vm: Vm, a: Value = ABSENT, b: Value = ABSENT, msg: Value = None) -> None:
    """Throw `msg` if `a == b`.

    Example: assert_ne(1, 2)  // nil
    """
    if b is ABSENT:
        raise Thrown("assert_ne requires at least 2 arguments")
    if equal(a, b):
        text = f"Assertion failed: values should not be equal: {display(a)}"
        raise Thrown(text if msg is None else display(msg))


@builtin("parse_junit_xml(report: string | bytes) -> list", family="testing")
def parse_junit_xml(vm: Vm, report: Value) -> list[Value]:
    """Return the tests of a JUnit XML report: `{name, status, duration_ms, message, stdout, stderr}` each.

    `status` is `passed`, `failed`, `errored` or `skipped`. Any other text has none.

    Example:
        parse_junit_xml("<testsuite><testcase name='adds' time='0.5'/></testsuite>")[0].duration_ms  // 500
    """
    from harnpy.formats.junit import read_cases

    encoding = None if type(report) is bytes else "utf-8"
    try:
        return read_cases(pieces(data_of(report), PIECE), encoding)
    except ValueError:
        return []
