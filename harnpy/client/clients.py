"""`Client` and `AsyncClient`: the verbs of `SessionRuntime` over the API of `harnpy serve`. Spec: 11 §3."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

import httpx2

from harnpy.client import api_calls
from harnpy.client import types as t
from harnpy.client.api_calls import Call
from harnpy.client.attempts import Attempts, reply_of, server_at, tls
from harnpy.client.event_streams import Following, Pieces

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
    from typing import Self

P = ParamSpec("P")
R = TypeVar("R")
Item = TypeVar("Item", bound=t.Reply)

_OF_SESSIONS: dict[str, type[t.Event | t.Chunk]] = {"event": t.Event, "chunk": t.Chunk}
_OF_SENDS: dict[str, type[t.Event | t.Chunk | t.Turn]] = {**_OF_SESSIONS, "turn": t.Turn}
#: A client may watch any number of sessions.
_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
_OF_RUNS: dict[str, type[t.RunStep]] = {"step": t.RunStep}


class Verb(Generic[P, R]):
    """A method that makes a request of `api_calls`, and returns its reply; of an `AsyncClient` it is awaited.

    Of a class it is the function of `api_calls`, which has the documentation.
    """

    def __init__(self, call: Callable[P, Call[R]]) -> None:
        self.call = call

    @overload
    def __get__(self, client: None, owner: type) -> Callable[P, Call[R]]: ...
    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        if client is None:
            return self.call

        def verb(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client.perform(self.call(*args, **kwargs))

        return update_wrapper(verb, self.call)


class Verbs:
    """The verbs that both clients have, and what they know of the server."""

    me = Verb(api_calls.me)
    agents = Verb(api_calls.agents)

    list = Verb(api_calls.list_sessions)
    create = Verb(api_calls.create)
    get = Verb(api_calls.get)
    info = Verb(api_calls.info)
    window = Verb(api_calls.window)
    history = Verb(api_calls.history)
    events = Verb(api_calls.events)
    inject = Verb(api_calls.inject)
    send = Verb(api_calls.send)
    turn = Verb(api_calls.turn)
    cancel = Verb(api_calls.cancel)
    fork = Verb(api_calls.fork)
    rewind = Verb(api_calls.rewind)
    compact = Verb(api_calls.compact)
    close = Verb(api_calls.close)
    delete = Verb(api_calls.delete)
    shares = Verb(api_calls.shares)
    share = Verb(api_calls.share)
    unshare = Verb(api_calls.unshare)
    compare = Verb(api_calls.compare)
    search = Verb(api_calls.search)

    clients = Verb(api_calls.clients)
    attach = Verb(api_calls.attach)
    takeover = Verb(api_calls.takeover)
    heartbeat = Verb(api_calls.heartbeat)
    detach = Verb(api_calls.detach)

    requests = Verb(api_calls.requests)
    allow = Verb(api_calls.allow)
    deny = Verb(api_calls.deny)
    answer = Verb(api_calls.answer)

    runs = Verb(api_calls.runs)
    start = Verb(api_calls.start)
    run = Verb(api_calls.run)
    steps = Verb(api_calls.steps)
    steer = Verb(api_calls.steer)
    cancel_run = Verb(api_calls.cancel_run)
    resume = Verb(api_calls.resume)
    waitpoints = Verb(api_calls.waitpoints)
    complete = Verb(api_calls.complete)

    def __init__(self, url: str | Sequence[str], token: str | None, timeout: float, patience: float) -> None:
        self._server = server_at(url, token, timeout, patience)
        #: The server has answered: when it can't be reached, it may come back.
        self._met = False
        #: Whether it could be reached at the last try.
        self.reachable = True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._server.url!r})"

    def _attempts(self, call: Call[Any]) -> Attempts:
        return Attempts(call, self._server, self._met)

    def _read(self, call: Call[R], response: httpx2.Response) -> R:
        reply = reply_of(call, response, self._server)
        self._found()
        return reply

    def _found(self) -> None:
        self._met = self.reachable = True

    def _lost(self, attempts: Attempts, error: httpx2.RequestError) -> float:
        """Return the seconds until the next attempt. Raises `ApiError`."""
        self.reachable = False
        return attempts.broken(error)

    def _answer(self, call: Call[t.Turn]) -> Following[t.Event | t.Chunk | t.Turn]:
        return Following(call, self._server, _OF_SENDS, self._met)

    def _events(self, id: str, after: int) -> Following[t.Event | t.Chunk]:
        return Following(api_calls.events(id), self._server, _OF_SESSIONS, self._met, after)

    def _steps(self, id: str) -> Following[t.RunStep]:
        return Following(api_calls.steps(id), self._server, _OF_RUNS, self._met)


class Client(Verbs):
    """A client that blocks. Use it in a ``with`` block, or `disconnect` it when done. Threads may share it.

    ``url`` may be a list, of servers on one store: where one fails, the next one is asked. ``token`` is a
    static key of the server or a bearer session. A server that has answered before and can't
    be reached is asked again for ``patience`` seconds. A reply may take ``timeout`` seconds, unless it is a
    turn. Raises ValueError for what is no server's address; every verb raises `ApiError`.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        token: str | None = None,
        *,
        timeout: float = 30.0,
        patience: float = 30.0,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        super().__init__(url, token, timeout, patience)
        self._http = httpx2.Client(transport=transport, verify=tls(self._server), limits=_LIMITS)

    def perform(self, call: Call[R]) -> R:
        """Return the reply to a call of `harnpy.client.api_calls`."""
        attempts = self._attempts(call)
        while True:
            try:
                response = self._http.request(**attempts.request())
            except httpx2.RequestError as error:
                pause = self._lost(attempts, error)
            else:
                later = attempts.answered(response)
                if later is None:
                    return self._read(call, response)
                pause = later
            time.sleep(pause)

    def stream(self, id: str, prompt: t.Json, **options: Any) -> Iterator[str | t.Turn]:
        """Send a prompt, and yield the pieces of the answer as they come, in the end the turn.

        ``options`` are those of `send`. The turn goes on, and `cancel` ends it, when nobody reads any more.
        """
        call = api_calls.send(id, prompt, **{**options, "wait": False})
        pieces, following = Pieces(call.key), self._answer(call)
        while True:
            for item in self._connection(following):
                if isinstance(item, t.Turn):
                    yield item
                    return
                if piece := pieces.of(item):
                    yield piece
            time.sleep(following.attempts.ended())

    def watch(self, id: str, after: int | None = None, chunks: bool = False) -> Iterator[t.Event | t.Chunk]:
        """Yield the events of a session behind the number ``after`` (None: from now on), as they come.

        Connects again by itself: no event is lost or comes twice. With ``chunks`` also the pieces of answers
        that are being made; one with ``start`` replaces what was shown. Ends when the session is deleted.
        """
        following = self._events(id, self.info(id).seq if after is None else after)
        while not following.over:
            for item in self._connection(following):
                if chunks or isinstance(item, t.Event):
                    yield item
            if not following.over:
                time.sleep(following.attempts.ended())

    def watch_run(self, id: str) -> Iterator[t.RunStep]:
        """Yield the steps of a run as they end, until it has ended."""
        following = self._steps(id)
        while True:
            yield from self._connection(following)
            if self.run(id).ended_at is not None:
                return
            time.sleep(following.attempts.ended())

    def _connection(self, following: Following[Item]) -> Iterator[Item]:
        """Yield what comes until the server ends a connection; over another one where it breaks."""
        while True:
            try:
                with self._http.stream(**following.request()) as response:
                    if following.opened(response):
                        self._found()
                        for data in response.iter_bytes():
                            yield from following.feed(data)
                            if following.over:
                                break
                        return
                    response.read()
                    pause = following.attempts.answered(response) or 0.0
            except httpx2.RequestError as error:
                pause = self._lost(following.attempts, error)
            time.sleep(pause)

    def disconnect(self) -> None:
        """Close the connections, for good."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.disconnect()


class AsyncClient(Verbs):
    """A client whose verbs are awaited. Use it in an ``async with`` block, or `disconnect` it when done.

    The arguments are those of `Client`. Who doesn't read an iterator to its end closes it (`aclosing`).
    """

    def __init__(
        self,
        url: str | Sequence[str],
        token: str | None = None,
        *,
        timeout: float = 30.0,
        patience: float = 30.0,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(url, token, timeout, patience)
        self._http = httpx2.AsyncClient(transport=transport, verify=tls(self._server), limits=_LIMITS)

    async def perform(self, call: Call[R]) -> R:
        """Return the reply to a call of `harnpy.client.api_calls`."""
        attempts = self._attempts(call)
        while True:
            try:
                response = await self._http.request(**attempts.request())
            except httpx2.RequestError as error:
                pause = self._lost(attempts, error)
            else:
                later = attempts.answered(response)
                if later is None:
                    return self._read(call, response)
                pause = later
            await asyncio.sleep(pause)

    async def stream(self, id: str, prompt: t.Json, **options: Any) -> AsyncGenerator[str | t.Turn, None]:
        """As `Client.stream`."""
        call = api_calls.send(id, prompt, **{**options, "wait": False})
        pieces, following = Pieces(call.key), self._answer(call)
        while True:
            async with aclosing(self._connection(following)) as items:
                async for item in items:
                    if isinstance(item, t.Turn):
                        yield item
                        return
                    if piece := pieces.of(item):
                        yield piece
            await asyncio.sleep(following.attempts.ended())

    async def watch(
        self, id: str, after: int | None = None, chunks: bool = False
    ) -> AsyncGenerator[t.Event | t.Chunk, None]:
        """As `Client.watch`."""
        following = self._events(id, (await self.info(id)).seq if after is None else after)
        while not following.over:
            async with aclosing(self._connection(following)) as items:
                async for item in items:
                    if chunks or isinstance(item, t.Event):
                        yield item
            if not following.over:
                await asyncio.sleep(following.attempts.ended())

    async def watch_run(self, id: str) -> AsyncGenerator[t.RunStep, None]:
        """As `Client.watch_run`."""
        following = self._steps(id)
        while True:
            async with aclosing(self._connection(following)) as steps:
                async for step in steps:
                    yield step
            if (await self.run(id)).ended_at is not None:
                return
            await asyncio.sleep(following.attempts.ended())

    async def _connection(self, following: Following[Item]) -> AsyncGenerator[Item, None]:
        """As `Client._connection`."""
        while True:
            try:
                async with self._http.stream(**following.request()) as response:
                    if following.opened(response):
                        self._found()
                        async for data in response.aiter_bytes():
                            for item in following.feed(data):
                                yield item
                            if following.over:
                                break
                        return
                    await response.aread()
                    pause = following.attempts.answered(response) or 0.0
            except httpx2.RequestError as error:
                pause = self._lost(following.attempts, error)
            await asyncio.sleep(pause)

    async def disconnect(self) -> None:
        """Close the connections, for good."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.disconnect()
