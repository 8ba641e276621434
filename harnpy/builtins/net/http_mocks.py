"""Responses without a network. Spec: 04 §21.3."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.live_http import http_calls_of
from harnpy.builtins.bridge.option_tables import check_options
from harnpy.builtins.net.http_arguments import options_of
from harnpy.net.http.mocks import read_responses
from harnpy.net.http.reading import Given
from harnpy.vm.declare.builtin import builtin as declare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

    Dict = dict[str, Value]

#: What all declarations here have in common.
builtin = partial(declare, family="http_server")


@builtin("http_mock(method: string, url_pattern: string, response?: dict) -> nil")
def http_mock(vm: Vm, method: str, url_pattern: str, response: Value) -> None:
    """Answer requests to matching URLs without a network.

    `*` as a method is any, and in a pattern any characters.

    `response`: `{status, body, headers}`, or `{responses: [..]}`, of which the last one stays. A mock for the
    same method and pattern is replaced; among several the first that matches answers.

    Example:
        http_mock("GET", "https://api.test/*", {responses: [{status: 503}, {body: "up"}]})
        http_get("https://api.test/health", {retry: {max: 1, backoff_ms: 1}}).body  // "up"
    """
    response = {} if response is None else response
    check_options(vm, "http_mock", response)
    http_calls_of(vm).mocks.add(method, url_pattern, read_responses(response))


@builtin("http_mock_clear() -> nil")
def http_mock_clear(vm: Vm) -> None:
    """Forget all mocks and the calls that they answered.

    Example:
        http_mock_clear()
        http_mock_calls()  // []
    """
    http_calls_of(vm).mocks.clear()


@builtin("http_mock_calls(opts?: dict) -> list")
def http_mock_calls(vm: Vm, opts: Value) -> list[Dict]:
    """The calls that mocks answered, in order: `[{method, url, headers, body}]`, with secrets masked.

    `opts`: `{redact_sensitive: false}` or `{include_sensitive: true}` shows them.

    Example:
        http_mock_clear()
        http_mock("POST", "https://api.test/notes", {status: 201})
        http_post("https://api.test/notes", "hi", {auth: {bearer: "secret"}})
        http_mock_calls()[0].headers.authorization  // "[redacted]"
    """
    given = Given("http_mock_calls", options_of(vm, "http_mock_calls", opts))
    reveal = given.flag("include_sensitive", False) or not given.flag("redact_sensitive", True)
    return http_calls_of(vm).mocks.calls(reveal)
