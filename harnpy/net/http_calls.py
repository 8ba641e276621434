"""Sending requests: again where a response or a failure says so, unless a mock has the response.

Each attempt is one coroutine, and the pauses between them are the calling task's: others run meanwhile.
Spec: 04 §21.1–21.3.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from harnpy.net.errors import RequestFailed
from harnpy.net.http_replies import HttpMocks, Mocked, Reply, Response, Stream, Streams, Times, at_once
from harnpy.net.http_request import PASSING, Request
from harnpy.net.http_sessions import Clients, Session, Sessions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from harnpy.world import World
    from harnpy.world.egress import Egress
    from harnpy.world.files import Files
    from harnpy.world.http import Http

T = TypeVar("T")


class Waiting(Protocol):
    """Waits for a call: other tasks run while the calling one does."""

    def sleep(self, seconds: float) -> None: ...

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """Return the result of a coroutine."""


class Cap(NamedTuple):
    """``bytes``: what the embedder lets a response have; ``excess()`` is what is raised for more."""

    bytes: int
    excess: Callable[[], BaseException]


class Call(NamedTuple):
    """A request that ``surface`` makes, as 04 §21.4 names it, perhaps in a session."""

    surface: str
    request: Request
    session: Session | None


class HttpCalls:
    """The HTTP of one program: its mocks, sessions and streams, and the connections for them."""

    def __init__(
        self, http: Http, egress: Egress, waiting: Waiting, world: World, cap: Cap | None = None
    ) -> None:
        self._egress = egress
        self._waiting = waiting
        self._world = world
        self._cap = cap
        self._clients = Clients(http)
        self.mocks = HttpMocks()
        self.sessions = Sessions(http)
        self.streams = Streams()

    async def aclose(self) -> None:
        """Close what is open. A session goes on with new connections, a stream doesn't."""
        await self.streams.aclose()
        await self.sessions.aclose()
        await self._clients.aclose()

    # Each raises `RequestFailed` when there is no response, and `EgressBlocked`.

    def reply(self, call: Call) -> Reply:
        """Return the response with its body."""
        return self._sent(call, lambda response: Reply.read(response, self._most(call.request)))

    def download(self, call: Call, files: Files, path: str) -> tuple[Response, int]:
        """Write the body to a file, as a whole or not at all; return the response and the number of bytes."""

        async def written(response: Response) -> tuple[Response, int]:
            return response, await files.pour(path, response.pieces(self._most(call.request)))

        return self._sent(call, written)

    def stream(self, call: Call) -> str:
        """Return the handle of a response whose body is read later."""
        request = call.request

        async def opened(response: Response) -> Stream:
            times = Times(request.read or request.whole, None)
            # A mock takes no time, and is opened where no loop runs.
            if request.is_total and not isinstance(response, Mocked):
                from asyncio import get_running_loop

                times = times._replace(ends_at=get_running_loop().time() + request.whole)
            return Stream(response, self._most(request), times)

        # The connection's own timeout would end the stream: a read that takes too long may be tried again.
        unhurried = call._replace(request=replace(request, read=None))
        return self.streams.add(self._sent(unhurried, opened))

    def read(self, stream: Stream, most: int) -> bytes | None:
        """Return the next bytes of a stream; None at its end."""
        return self._waited(stream.read(most))

    def close_stream(self, stream: Stream) -> None:
        self._waiting.wait(stream.aclose())

    def close_session(self, session: Session) -> None:
        self._waiting.wait(session.clients.end())

    def _sent(self, call: Call, finish: Callable[[Response], Awaitable[T]]) -> T:
        """Return what ``finish`` makes of the response to the last attempt."""
        retries, method = call.request.retries, call.request.method
        attempt = 0
        while True:
            try:
                return self._attempt(call, attempt, finish)
            except _Again as again:
                pause = again.pause
            except RequestFailed as error:
                if error.category not in PASSING or not retries.after_failure(attempt, method):
                    raise
                pause = None
            if pause is None:
                pause = retries.pause(attempt, self._world.random.random())
            self._waiting.sleep(pause)
            attempt += 1

    def _attempt(self, call: Call, attempt: int, finish: Callable[[Response], Awaitable[T]]) -> T:
        request = call.request
        retries = request.retries

        async def taken(response: Response) -> T:
            if retries.after_status(attempt, request.method, response.status):
                after = response.headers.get("retry-after")
                raise _Again(retries.asked_for(response.status, after, self._world.clock.now()))
            return await finish(response)

        self._egress.admit(call.surface, request.canonical)
        mocked = self.mocks.answer(request)
        if mocked is not None:
            return at_once(taken(Mocked(mocked)))
        clients = self._clients if call.session is None else call.session.clients
        return self._waited(_exchanged(clients.of(request.settings), call, taken))

    def _waited(self, coroutine: Coroutine[Any, Any, T]) -> T:
        from harnpy.world.connections import Failed, TooMuch

        failed: BaseException
        try:
            result: T = self._waiting.wait(coroutine)
            return result
        except TooMuch as error:
            failed = RequestFailed(error.category, error.text)
            if self._cap is not None and error.most == self._cap.bytes:
                failed = self._cap.excess()
        except Failed as error:
            failed = RequestFailed(error.category, error.text)
        raise failed

    def _most(self, request: Request) -> int | None:
        bounds = (request.most, None if self._cap is None else self._cap.bytes)
        return min((bound for bound in bounds if bound is not None), default=None)


async def _exchanged(client: Any, call: Call, taken: Callable[[Response], Awaitable[T]]) -> T:
    """Return what ``taken`` makes of a response; it is closed if that fails, or takes too long."""
    from asyncio import timeout

    from harnpy.world.connections import too_slow
    from harnpy.world.http_client import exchange

    request, response = call.request, None
    try:
        async with timeout(request.whole):
            response = await exchange(client, call.surface, request)
            return await taken(response)
    except TimeoutError:
        problem: BaseException = too_slow("total_timeout_ms" if request.is_total else "timeout_ms")
    except BaseException as error:
        problem = error
    if response is not None:
        await response.aclose()
    raise problem


class _Again(Exception):
    """The response isn't taken: the request is sent again, after the seconds that it asks for, if any."""

    def __init__(self, pause: float | None) -> None:
        self.pause = pause
