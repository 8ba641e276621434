"""`Admission`: which of the requests that came are handled now, so that no client keeps the others waiting.

A request takes a slot once its body has arrived, and gives it up when it is answered or its client is gone.
Slots that become free go to the callers that wait for one in turn. Spec: 08 §16.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterator, MutableMapping
    from typing import Self

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
    T = TypeVar("T")

#: Where an application finds, in its scope, what is done when its client is gone: a future.
GONE = "harnpy.gone"
#: Where it finds what gives up the request's slot: to be called before it waits for long.
LEAVE = "harnpy.leave"
#: Where it finds whom a request is from, if that is known: a key or an address.
CALLER = "harnpy.caller"
#: Seconds after which a client that was refused may come again.
RETRY_AFTER = 1


class Gone(Exception):
    """The client has left."""


class Refused(Exception):
    """A request that is not handled: 408 its body was slow, 429 its caller has too many, 503 all have."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason

    async def answer(self, send: Send) -> None:
        # What is left of the body isn't read.
        headers = (
            [(b"connection", b"close")] if self.status == 408 else [(b"retry-after", b"%d" % RETRY_AFTER)]
        )
        await reply(send, self.status, self.reason, headers)


async def reply(send: Send, status: int, error: str, headers: list[tuple[bytes, bytes]]) -> None:
    """Answer with ``{"error": …}``."""
    body = b'{"error": "%s"}' % error.encode()
    own = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": own + headers})
    await send({"type": "http.response.body", "body": body})


class Bounds(NamedTuple):
    """How many requests are handled at once, in all and of one caller; how many of them may wait for that.

    ``lasting``: responses that go on for long, which hold no slot, and WebSockets, at once. ``read_ahead``:
    bytes of a body that are read before it takes a slot. ``seconds``: how long those may take, and as many
    more each, and a client that doesn't read its response.
    """

    slots: int = 256
    slots_per_caller: int = 64
    waiting: int = 1024
    waiting_per_caller: int = 64
    read_ahead: int = 1 << 16
    seconds: float = 30.0
    lasting: int = 256
    lasting_per_caller: int = 128


class Admission:
    """The slots of one server, in one asyncio loop."""

    def __init__(self, bounds: Bounds | None = None) -> None:
        self.bounds = Bounds() if bounds is None else bounds
        self._taken: dict[Hashable, int] = {}
        self._queues: dict[Hashable, deque[asyncio.Future[None]]] = {}
        self._in_all = 0
        self.waiting = 0
        self._deadlines = _Deadlines(self.bounds.seconds)

    async def receive(
        self, receive: Receive, send: Send, handle: Callable[[Incoming], Awaitable[None]]
    ) -> None:
        """Have ``handle`` take in a request that begins to arrive; answer it if it is refused."""
        try:
            async with Incoming(receive, self.bounds) as request:
                await handle(request)
        except Gone:
            return
        except Refused as refusal:
            await refusal.answer(send)

    async def serve(
        self,
        app: App,
        scope: MutableMapping[str, Any],
        request: Incoming,
        send: Send,
        caller: Hashable,
        *,
        to_the_end: bool = False,
    ) -> None:
        """Have ``app`` handle the request when it is its turn. Raises Gone, and Refused.

        ``to_the_end``: it holds its slot until the response has ended, and not only until that begins.
        """
        await request.arrive()
        slot = await self._slot(caller, request)
        await self._run(app, {**scope, GONE: request.gone}, request.receive, send, slot, to_the_end)

    def serve_at_once(
        self, app: App, scope: MutableMapping[str, Any], receive: Receive, send: Send, caller: Hashable
    ) -> Awaitable[None] | None:
        """Have ``app`` handle a request without a body; None where it has to wait for a slot.

        Nobody watches whether its client leaves: what is awaited in vain is short, or reads ``receive``.
        """
        if self._queues.get(caller) or not self._has_slot(caller):
            return None
        self._take(caller)
        return self._run(app, scope, receive, send, _Slot(self, caller), False)

    async def _run(
        self,
        app: App,
        scope: MutableMapping[str, Any],
        receive: Receive,
        send: Send,
        slot: _Slot,
        to_the_end: bool,
    ) -> None:
        has_begun = False

        async def sent(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            if not to_the_end or not message.get("more_body", message["type"] != "http.response.body"):
                slot.give_up()
            with _Deadline(self._deadlines):
                await send(message)

        try:
            scope[LEAVE] = slot.give_up
            await app(scope, receive, sent)
        except Refused:
            if has_begun:
                raise Gone from None
            raise
        finally:
            slot.give_up()

    async def _slot(self, caller: Hashable, request: Incoming) -> _Slot:
        """Return a slot when there is one for the request. Raises Gone, and Refused."""
        turn = self.ask(caller)
        slot = _Slot(self, caller)
        try:
            await request.while_there(turn)
        except BaseException:
            if turn.done() and not turn.cancelled():
                slot.give_up()
            raise
        request.gone.add_done_callback(lambda _: slot.give_up())
        return slot

    def ask(self, caller: Hashable) -> asyncio.Future[None]:
        """Return what is done when the caller has a slot, which `leave` gives up. Raises Refused.

        Cancelled, it waits no longer.
        """
        turn = asyncio.get_running_loop().create_future()
        queue = [each for each in self._queues.get(caller, ()) if not each.done()]
        if not queue and self._has_slot(caller):
            self._enter(caller, turn)
            return turn
        if len(queue) >= self.bounds.waiting_per_caller:
            raise Refused(429, "too many requests of this caller")
        if self.waiting >= self.bounds.waiting:
            raise Refused(503, "too many requests")
        self._queues.setdefault(caller, deque()).append(turn)
        self.waiting += 1
        turn.add_done_callback(lambda _: self._step_out(caller, turn))
        return turn

    def leave(self, caller: Hashable) -> None:
        """Give up a slot; who waits for one has it, callers in turn."""
        self._in_all -= 1
        self._taken[caller] -= 1
        if not self._taken[caller]:
            del self._taken[caller]
        for each in [*self._queues]:
            if self._in_all == self.bounds.slots:
                return
            # Whoever has had a turn is the last to have the next one.
            turn = next((turn for turn in self._queues[each] if not turn.done()), None)
            if turn is not None and self._has_slot(each):
                self._queues[each] = self._queues.pop(each)
                self._enter(each, turn)

    def _step_out(self, caller: Hashable, turn: asyncio.Future[None]) -> None:
        self._queues[caller].remove(turn)
        self.waiting -= 1
        if not self._queues[caller]:
            del self._queues[caller]

    def _has_slot(self, caller: Hashable) -> bool:
        return self._in_all < self.bounds.slots and self._taken.get(caller, 0) < self.bounds.slots_per_caller

    def _enter(self, caller: Hashable, turn: asyncio.Future[None]) -> None:
        self._take(caller)
        turn.set_result(None)

    def _take(self, caller: Hashable) -> None:
        self._in_all += 1
        self._taken[caller] = self._taken.get(caller, 0) + 1


class Lasting:
    """The responses of one server that go on for long, and its WebSockets, by their callers."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._in_all = 0
        #: What each of them waits for: that it is to end.
        self._open: dict[str, set[asyncio.Future[None]]] = {}

    @property
    def callers(self) -> list[str]:
        return list(self._open)

    @contextmanager
    def place(self, caller: str, *, stands_for_many: bool = False) -> Iterator[asyncio.Future[None]]:
        """Hold a place, and return what is done when `end` is called. Raises Refused.

        A caller that ``stands_for_many`` is bounded only by what there is in all.
        """
        if not stands_for_many and len(self._open.get(caller, ())) >= self._bounds.lasting_per_caller:
            raise Refused(429, "too many open streams of this caller")
        if self._in_all >= self._bounds.lasting:
            raise Refused(503, "too many open streams")
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open.setdefault(caller, set()).add(over)
        self._in_all += 1
        try:
            yield over
        finally:
            self._in_all -= 1
            self._open[caller].remove(over)
            if not self._open[caller]:
                del self._open[caller]

    def end(self, caller: str) -> None:
        """Have all end that a caller has open."""
        for over in self._open.get(caller, ()):
            if not over.done():
                over.set_result(None)


class _Deadlines:
    """What must end within so many seconds, all watched by one timer: a timer for each would cost more than
    most of what it watches."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        #: The first to end comes first.
        self.open: dict[_Deadline, None] = {}
        self.timer: asyncio.TimerHandle | None = None

    def ring(self) -> None:
        loop = asyncio.get_running_loop()
        self.timer = None
        for deadline in self.open:
            if deadline.at > loop.time():
                self.timer = loop.call_at(deadline.at, self.ring)
                return
            deadline.pass_by()


class _Deadline:
    """A context manager, as `asyncio.timeout` is an asynchronous one."""

    __slots__ = ("_all", "_cancelling", "_is_past", "_task", "at")

    def __init__(self, all: _Deadlines) -> None:
        self._all = all

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None, "a response is sent in a task"
        loop = task.get_loop()
        self._task, self._cancelling, self._is_past = task, task.cancelling(), False
        self.at = loop.time() + self._all.seconds
        self._all.open[self] = None
        if self._all.timer is None:
            self._all.timer = loop.call_at(self.at, self._all.ring)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        del self._all.open[self]
        if self._is_past and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def pass_by(self) -> None:
        if not self._is_past:
            self._is_past = True
            self._task.cancel()


class _Slot:
    def __init__(self, admission: Admission, caller: Hashable) -> None:
        self._admission: Admission | None = admission
        self._caller = caller

    def give_up(self) -> None:
        admission, self._admission = self._admission, None
        if admission is not None:
            admission.leave(self._caller)


class Incoming:
    """A request as it arrives: its body is read ahead, up to a bound, and its client's leaving is noticed.

    An asynchronous context manager.
    """

    def __init__(self, receive: Receive, bounds: Bounds) -> None:
        self._receive = receive
        self._bounds = bounds
        self._messages: deque[Message] = deque()
        self._size = 0
        self._is_whole = False
        self._news, self._room = asyncio.Event(), asyncio.Event()

    async def __aenter__(self) -> Self:
        #: Done when the client has left, or the request is over.
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._reading.cancel()
        (failure,) = await asyncio.gather(self._reading, return_exceptions=True)
        if isinstance(failure, Exception):
            raise failure

    async def while_there(self, work: Awaitable[T]) -> T:
        """Return what ``work`` returns, unless the client leaves first: then it is cancelled. Raises Gone."""
        working = asyncio.ensure_future(work)
        try:
            if not working.done():
                await asyncio.wait((working, self.gone), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise Gone
        finally:
            if not working.done():
                working.cancel()
                await asyncio.gather(working, return_exceptions=True)
        return working.result()

    async def arrive(self) -> None:
        """Wait until the body is there, or as much of it as is read ahead. Raises Gone, and Refused."""
        if self._is_full:
            return
        try:
            async with asyncio.timeout(self._bounds.seconds):
                await self.while_there(self._arrived())
        except TimeoutError:
            raise Refused(408, "the request took too long to arrive") from None

    async def receive(self) -> Message:
        """Return the next message, for the application. Raises Refused."""
        if not self._messages and not self._is_whole:
            with suppress(Gone):
                await self.arrive()
        if not self._messages:
            await asyncio.shield(self.gone)
            return {"type": "http.disconnect"}
        message = self._messages.popleft()
        self._size -= len(message.get("body", b""))
        self._room.set()
        return message

    async def _arrived(self) -> None:
        while not self._is_full:
            self._news.clear()
            await self._news.wait()

    @property
    def _is_full(self) -> bool:
        return self._is_whole or self._size >= self._bounds.read_ahead

    async def _read(self) -> None:
        try:
            while (message := await self._receive())["type"] == "http.request":
                self._messages.append(message)
                self._size += len(message.get("body", b""))
                self._is_whole = not message.get("more_body", False)
                self._news.set()
                while self._is_full and not self._is_whole:
                    self._room.clear()
                    await self._room.wait()
        finally:
            if not self.gone.done():
                self.gone.set_result(None)
