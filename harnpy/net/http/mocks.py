"""Responses without a network, and the calls that got them. Spec: 04 §21.3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.net.http.errors import HttpError
from harnpy.net.http.reading import Given
from harnpy.net.http.targets import check_header
from harnpy.text.display import display
from harnpy.world.net.redaction import redacted_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harnpy.net.http.request import Request
    from harnpy.reading.dicts import Dict

_SECRET_HEADERS = frozenset(
    "authorization proxy-authorization cookie set-cookie x-api-key api-key x-auth-token x-csrf-token "
    "x-xsrf-token".split()
)
_REDACTED = "[redacted]"


class MockedResponse(NamedTuple):
    """``headers``: by names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class _Mock:
    method: str
    pattern: str
    responses: Sequence[MockedResponse]
    used: int = 0

    def next(self) -> MockedResponse:
        response = self.responses[min(self.used, len(self.responses) - 1)]
        self.used += 1
        return response


class Mocks:
    """The mocks of one program. The first that was registered and matches answers."""

    def __init__(self) -> None:
        self._mocks: dict[tuple[str, str], _Mock] = {}
        self._calls: list[Request] = []

    def add(self, method: str, pattern: str, responses: Sequence[MockedResponse]) -> None:
        """Register a mock in the place of one for the same; ``method`` may be `*`."""
        self._mocks[method.upper(), pattern] = _Mock(method.upper(), pattern, responses)

    def clear(self) -> None:
        """Forget mocks and calls."""
        self._mocks.clear()
        self._calls.clear()

    def answer(self, request: Request) -> MockedResponse | None:
        """Return the next response to such a request, and note the call; None when no mock matches."""
        for mock in self._mocks.values():
            if mock.method in ("*", request.method) and (
                matches(mock.pattern, request.url) or matches(mock.pattern, request.canonical)
            ):
                self._calls.append(request)
                return mock.next()
        return None

    def calls(self, reveal: bool) -> list[Dict]:
        """Return what was asked for, in order; secrets are masked unless ``reveal``."""
        return [_call(request, reveal) for request in self._calls]


def _call(request: Request, reveal: bool) -> Dict:
    body = request.body
    return {
        "method": request.method,
        "url": request.url if reveal else redacted_url(request.url),
        "headers": dict(request.headers) if reveal else masked(request.headers),
        "body": None if body is None else body.decode("utf-8", "replace"),
    }


def masked(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers, whose names are in lower case, without the values of those that hold secrets."""
    return {name: _REDACTED if name in _SECRET_HEADERS else value for name, value in headers}


def matches(pattern: str, text: str) -> bool:
    """Whether ``text`` is ``pattern``, in which each `*` stands for any characters."""
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    *middle, last = others
    if not text.startswith(first) or len(text) < len(first) + len(last) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in middle:
        at = text.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True


def read_responses(response: Any) -> list[MockedResponse]:
    """Return the responses that `http_mock` was given, one or several. Raises `HttpError`."""
    if type(response) is not dict:
        raise HttpError("http_mock: response must be a dict")
    several = Given("http_mock", response).items("responses")
    if several is None:
        return [_response(response)]
    if not several or not all(type(each) is dict for each in several):
        raise HttpError("http_mock: responses must be a list of dicts, at least one")
    return [_response(each) for each in several]


def _response(response: Dict) -> MockedResponse:
    given = Given("http_mock", response)
    status, body = given.count("status", default=200), given.value("body")
    if not 100 <= status <= 599:
        raise HttpError(f"http_mock: status must be from 100 to 599, got {status}")
    headers = {}
    for name, value in given.mapping("headers").items():
        check_header(name, display(value))
        headers[name.lower()] = display(value)
    if type(body) is not bytes:
        body = b"" if body is None else display(body).encode("utf-8", "surrogatepass")
    return MockedResponse(status, headers, body)
