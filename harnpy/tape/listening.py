"""Listening on a tape: requests that come, what the program answers, that it is asked to stop. Spec: 13 §3.

The server runs outside. Each request is given to the program's application in its own loop; what it
receives of the client, and sends, are effects.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from harnpy.durable.journal import LISTEN, PIECE, SEND, WAIT
from harnpy.durable.values import told
from harnpy.tape.holding import Held
from harnpy.tape.tapes import TapeError
from harnpy.world.files import system_reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.tape.journal import TapeJournal
    from harnpy.workflow.engines.contract import Json
    from harnpy.world.connections import Application, AsgiMessage, Listener, Place, Receive, Send
    from harnpy.world.host import Stopping
    from harnpy.world.http import Listening


class TapedListening:
    def __init__(self, listening: Listening, journal: TapeJournal) -> None:
        self._listening = listening
        self._journal = journal

    async def listen(self, application: Application, place: Place) -> Listener:
        listener = TapedListener(self._listening, self._journal, application, place)
        await listener.open()
        return listener


class _Request:
    """A request outside, which the server holds until the program has done with it."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self.receive = receive
        self.send = send
        self.over = asyncio.Event()
        self.has_begun = self.has_failed = self.is_asked_to_end = False


class TapedListener:
    """A server that listens outside, or did when the tape was made. On a branch it listens anew."""

    def __init__(
        self, listening: Listening, journal: TapeJournal, application: Application, place: Place
    ) -> None:
        self.host, self.port = place.host, place.port
        self._listening = listening
        self._journal = journal
        self._application = application
        self._place = place
        self._held: Held[Listener] = Held(journal, lambda listener: listener.abort())
        self._is_closing = False
        self._numbers = 0
        #: Outside: requests by their numbers, and what the program doesn't know yet.
        self._requests: dict[int, _Request] = {}
        self._came: asyncio.Queue[list[Any]] = asyncio.Queue()
        #: In the program: what answers them.
        self._answering: dict[int, asyncio.Task[None]] = {}
        self._accepting: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Raises OSError when the address can't be had, ImportError without uvicorn."""
        asked = lambda: [f"{self._place.host}:{self._place.port}"]  # noqa: E731
        self.host, self.port = await self._journal.waited(LISTEN, self._open, asked)
        self._accepting = asyncio.ensure_future(self._accept())

    async def _open(self) -> list[Any]:
        async def application(scope: AsgiMessage, receive: Receive, send: Send) -> None:
            await self._hold(scope, receive, send)  # servers don't take methods for applications

        listener = await self._held.open(lambda: self._listening.listen(application, self._place))
        return [listener.host, listener.port]

    # --- outside ----------------------------------------------------------------------------------

    async def _hold(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        """Outside, as the server's application: wait until the program has answered a request."""
        self._numbers += 1
        number, request = self._numbers, _Request(receive, send)
        self._requests[number] = request
        self._came.put_nowait([number, dict(scope)])
        try:
            await self._answered(number, request)
        finally:
            del self._requests[number]
        if self._journal.is_over and scope["type"] == "http" and not request.has_begun:
            await _refuse(send)
        elif request.has_failed:
            raise RuntimeError("the program has failed to answer a request")

    async def _answered(self, number: int, request: _Request) -> None:
        """Outside: wait until the program has done with a request, or is over."""
        while not request.over.is_set():
            try:
                await request.over.wait()
            except asyncio.CancelledError:
                if self._journal.is_over:
                    return
                if request.is_asked_to_end:
                    raise
                request.is_asked_to_end = True
                self._came.put_nowait([number, None])

    async def _next(self) -> list[Any]:
        """Outside: return the number of a request that has come, and its scope.

        The scope is None for one that is to end.
        """
        if self._held.real is None and not self._is_closing:
            # A branch. It goes on where the recorded program has listened.
            self._place = self._place._replace(host=self.host, port=self.port)
            self._numbers = max(self._answering, default=self._numbers)
            await self._open()
        return await self._came.get()

    async def _receive(self, number: int, is_socket: bool) -> AsgiMessage:
        request = self._requests.get(number)
        if request is None:  # it is one of the tape's
            return (
                {"type": "websocket.disconnect", "code": 1006} if is_socket else {"type": "http.disconnect"}
            )
        return dict(await request.receive())

    async def _send(self, number: int, message: AsgiMessage) -> None:
        request = self._requests.get(number)
        if request is not None:
            request.has_begun = True
            await request.send(message)

    # --- in the program ---------------------------------------------------------------------------

    async def _accept(self) -> None:
        while True:
            try:
                number, scope = await self._journal.waited(PIECE, self._next)
            except OSError as error:
                why = TapeError(
                    f"the branch can't listen at {self.host}:{self.port} as {self._journal.tape} does: "
                    f"{system_reason(error)}: free the address, or branch before the program listens"
                )
                raise self._journal.refuse(why) from None
            self._numbers = max(self._numbers, number)
            if scope is not None:
                self._answering[number] = asyncio.ensure_future(self._answer(number, scope))
            elif number in self._answering:
                self._answering[number].cancel()

    async def _answer(self, number: int, scope: AsgiMessage) -> None:
        is_socket, has_failed = scope["type"] == "websocket", False

        async def receive() -> AsgiMessage:
            message: AsgiMessage = await self._journal.waited(PIECE, lambda: self._receive(number, is_socket))
            return message

        async def send(message: AsgiMessage) -> None:
            await self._journal.waited(SEND, lambda: self._send(number, message), lambda: _told(message))

        try:
            await self._application(scope, receive, send)
        except Exception:
            has_failed = True  # the server says so to the client
        finally:
            del self._answering[number]
            request = self._requests.get(number)
            if request is not None:
                request.has_failed = has_failed
                request.over.set()

    async def close(self, seconds: float) -> None:
        """Accept nothing more; let running requests go on for so many seconds, then cancel them."""
        self._is_closing = True
        await self._journal.waited(SEND, lambda: self._close(seconds), lambda: ["close", seconds])
        self._stop_accepting()

    async def _close(self, seconds: float) -> None:
        if self._held.real is not None:
            await self._held.real.close(seconds)

    async def abort(self) -> None:
        """Close the address and all connections at once."""
        self._is_closing = True
        self._stop_accepting()
        await self._journal.waited(SEND, self._held.close, lambda: ["abort"])

    def _stop_accepting(self) -> None:
        if self._accepting is not None:
            self._accepting.cancel()


async def _refuse(send: Send) -> None:
    """Answer a request for a program that has ended."""
    body = b"the server is shutting down"
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _told(message: AsgiMessage) -> Json:
    """Return what tells a message to a client from others, with bytes that are text as text."""
    return [_told_part(value) for value in message.values()]


def _told_part(value: Any) -> Json:
    match value:
        case bytes():
            return told(value.decode()) if value.isascii() else told(value)
        case list() | tuple():
            return [_told_part(item) for item in value]
    return told(value)


class TapedStopping:
    """That the process is asked to stop is an effect: the program hears of it where it waits."""

    def __init__(self, stopping: Stopping, journal: TapeJournal) -> None:
        self._stopping = stopping
        self._journal = journal

    def before(self, begin: Callable[[Callable[[], None]], None], seconds: float) -> Callable[[], None]:
        waiting = _ToStop(self._stopping, seconds)

        async def wait() -> None:
            await self._journal.waited(WAIT, waiting.asked, lambda: ["stop"])
            begin(waiting.done)

        task = self._journal.serve(wait())

        def forget() -> None:
            task.cancel()
            waiting.forget()

        return forget


class _ToStop:
    """Outside: what waits until the process is asked to stop. In a replay nobody asks."""

    def __init__(self, stopping: Stopping, seconds: float) -> None:
        self._stopping = stopping
        self._seconds = seconds
        self._done: Callable[[], None] | None = None
        self._forget: Callable[[], None] | None = None

    async def asked(self) -> None:
        """Return when the process is asked to stop."""
        loop = asyncio.get_running_loop()
        came: asyncio.Future[Callable[[], None]] = loop.create_future()

        def begin(done: Callable[[], None]) -> None:
            with suppress(RuntimeError):  # the loop is closed: the program has ended
                loop.call_soon_threadsafe(came.set_result, done)

        self._forget = self._stopping.before(begin, self._seconds)
        self._done = await came

    def done(self) -> None:
        """What was to be done first is done."""
        if self._done is not None:
            self._done()

    def forget(self) -> None:
        """It isn't of interest any more."""
        if self._forget is not None:
            self._forget()
