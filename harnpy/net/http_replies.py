"""Responses, whether a server or a mock gave them, whole or piece by piece. Spec: 04 §21.1–21.3."""

from __future__ import annotations

import codecs
import re
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from harnpy.faults import paced
from harnpy.formats.display import display
from harnpy.formats.globs import glob_matches
from harnpy.net.errors import HttpError
from harnpy.net.http_options import Given
from harnpy.net.http_request import Request, check_header
from harnpy.net.http_sessions import Closing
from harnpy.world.egress import redacted_url

if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping, Sequence

    from harnpy.formats.dicts import Dict

    T = TypeVar("T")

# Responses without a network, and the calls that got them. Spec: 04 §21.3.


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


class HttpMocks:
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
                glob_matches(mock.pattern, request.url) or glob_matches(mock.pattern, request.canonical)
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
        "headers": dict(request.headers) if reveal else masked_headers(request.headers),
        "body": None if body is None else body.decode("utf-8", "replace"),
    }


def masked_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers, whose names are in lower case, without the values of those that hold secrets."""
    return {name: _REDACTED if name in _SECRET_HEADERS else value for name, value in headers}


def read_responses(response: Any) -> list[MockedResponse]:
    """Return the responses that `http_mock` was given, one or several. Raises `HttpError`."""
    if type(response) is not dict:
        raise HttpError("http_mock: response must be a dict")
    several = Given("http_mock", response).items("responses")
    if several is None:
        return [_response(response)]
    if not several or not all(type(each) is dict for each in paced(several)):
        raise HttpError("http_mock: responses must be a list of dicts, at least one")
    return [_response(each) for each in paced(several)]


def _response(response: Dict) -> MockedResponse:
    given = Given("http_mock", response)
    status, body = given.count("status", default=200), given.value("body")
    if not 100 <= status <= 599:
        raise HttpError(f"http_mock: status must be from 100 to 599, got {status}")
    headers = {}
    for name, value in paced([*given.mapping("headers").items()]):
        check_header(name, display(value))
        headers[name.lower()] = display(value)
    if type(body) is not bytes:
        body = b"" if body is None else display(body).encode("utf-8", "surrogatepass")
    return MockedResponse(status, headers, body)


#: The encodings of texts on the web; Python has others that are none.
_CHARSETS = re.compile(
    r"utf-8|utf-16(-[bl]e)?|utf-32(-[bl]e)?|ascii|iso8859-\d+|cp125\d|koi8-[ru]|shift_jis|euc_\w+|gb\w*|big5|mac-\w+"
)


class Response(Protocol):
    """A response whose body has yet to be read. ``headers``: by names in lower case."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def charset(self) -> str | None: ...

    def pieces(self, most: int | None) -> AsyncGenerator[bytes, None]:
        """Yield the body, which may have ``most`` bytes."""

    async def aclose(self) -> None: ...


class Mocked:
    """A mock's response."""

    charset = None

    def __init__(self, response: MockedResponse) -> None:
        self.status, self.headers, self._body = response

    async def pieces(self, most: int | None) -> AsyncGenerator[bytes, None]:
        if self._body:
            yield self._body

    async def aclose(self) -> None:
        """There is nothing to close."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A response with its body."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    charset: str | None

    @staticmethod
    async def read(response: Response, most: int | None) -> Reply:
        async with aclosing(response.pieces(most)) as pieces:
            body = b"".join([piece async for piece in pieces])
        return Reply(response.status, response.headers, body, response.charset)

    @property
    def ok(self) -> bool:
        return is_ok(self.status)

    def text(self) -> str:
        """The body as text; what is no text in its encoding is U+FFFD, and a byte order mark is left out."""
        return self.body.decode(_encoding(self.charset), "replace").removeprefix("\ufeff")


def is_ok(status: int) -> bool:
    return 200 <= status <= 299


def _encoding(charset: str | None) -> str:
    try:
        name = codecs.lookup(charset or "utf-8").name
    except (LookupError, ValueError):
        return "utf-8"
    return name if _CHARSETS.fullmatch(name) else "utf-8"


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise RuntimeError("it waits")


# Responses that a program reads piece by piece. Spec: 04 §21.2.
#
# Nothing is read before it is asked for: who sends too fast waits.


class Times(NamedTuple):
    """``read``: seconds that a piece may take. ``ends_at``: when all must be there, on the loop's clock."""

    read: float
    ends_at: float | None


class Stream:
    """A response, and what has come of its body."""

    def __init__(self, response: Response, most: int | None, times: Times) -> None:
        self.status: int = response.status
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._times = times
        self._pieces = response.pieces(most)
        self._coming: Task[bytes] | None = None
        self._left = memoryview(b"")
        self._failure: Exception | None = None
        self._has_ended = False
        self._is_closed = False

    async def read(self, most: int) -> bytes | None:
        """Return the next bytes, at most so many; None at the end. Raises `Failed`, and then again."""
        while not self._left and not self._has_ended:
            if self._failure is not None:
                raise self._failure
            await self._next()
        if not self._left:
            return None
        taken, self._left = bytes(self._left[:most]), self._left[most:]
        return taken

    async def _next(self) -> None:
        """Wait for the next piece. Who stops waiting loses nothing: the next one waits for the same piece."""
        import asyncio

        if self._coming is None:
            self._coming = asyncio.ensure_future(anext(self._pieces))
        coming = self._coming
        try:
            async with asyncio.timeout(self._times.read), asyncio.timeout_at(self._times.ends_at):
                piece = await asyncio.shield(coming)
        except TimeoutError:
            from harnpy.world.connections import too_slow

            problem = too_slow("read_timeout_ms" if self._times.ends_at is None else "total_timeout_ms")
        except StopAsyncIteration:
            self._has_ended = True
            return
        except asyncio.CancelledError:
            if not self._is_closed:
                raise
            from harnpy.world.connections import cut_off

            problem = self._failure = cut_off()
        except Exception as error:
            self._failure = error
            raise
        else:
            # Two tasks may have waited for it.
            if self._coming is coming:
                self._coming, self._left = None, memoryview(piece)
            return
        raise problem

    async def aclose(self) -> None:
        self._is_closed = True
        if self._coming is not None:
            self._coming.cancel()
        await self._response.aclose()


class Streams(Closing[Stream]):
    """The open streams of one program."""

    kind, noun = "http-stream", "stream"
