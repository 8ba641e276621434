"""Live feeds: a session's events and the answer that is being made, for any number of readers. Spec: 11 §1.4.

A reader costs a task and no thread. What it hasn't read yet isn't kept for it: it knows how far it is, and
reads on in the last events of its session, which all readers share, or in the log. So a slow one holds up
nobody, and nothing is lost. All but `Feeds.on_loop` belongs to the loop.

Events of this process come from the session's object as they are appended. Those of others are found by one
look at the store for all sessions that are watched.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from harnpy.client import types as t
from harnpy.serve import shown
from harnpy.session import events as kinds
from harnpy.session.log import KIND
from harnpy.session.registers import DELETED
from harnpy.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from harnpy.session.events import Event
    from harnpy.session.live import LiveSession
    from harnpy.session.runtime import SessionRuntime

    Blocking = Callable[[Callable[[], Any]], Awaitable[Any]]

_log = logging.getLogger(__name__)

#: How many events of a session are at hand for its readers, and how many are read from the log at once.
RECENT: Final = 256
#: Seconds between two looks at the store, at least; else so many times what a look takes.
LOOK: Final = 0.1
SHARE: Final = 20.0
#: Seconds without anything to say after which a reader gets None.
QUIET: Final = 15.0


class Gone(Exception):
    """Raised to a reader whose session is deleted."""


class Answer:
    """An answer that is being made, or the last one that was: ``until`` is the event that holds it."""

    __slots__ = ("text", "turn", "until")

    def __init__(self, turn: int) -> None:
        self.turn = turn
        self.text = ""
        self.until: int | None = None


class Feed:
    """What the readers of one session share."""

    def __init__(self, live: LiveSession) -> None:
        self.live = live
        self.version = live.version
        self.recent: deque[t.Event] = deque(maxlen=RECENT)
        self.answer: Answer | None = None
        self.is_gone = False
        self.readers = 0
        #: Called with each event.
        self.observers: list[Callable[[t.Event], object]] = []
        self._waiting: list[asyncio.Future[None]] = []

    def take(self, events: Sequence[t.Event]) -> None:
        """Take the next events of the log."""
        for event in events:
            if event.seq <= self.version:
                continue
            if event.seq != self.version + 1:
                return  # the next look reads what is missing
            self.version = event.seq
            self.recent.append(event)
            self._look_at(event)
            for observe in tuple(self.observers):
                observe(event)
        self.wake()

    def _look_at(self, event: t.Event) -> None:
        answer = self.answer
        if event.type == kinds.STATUS_CHANGED and event.data.get("to") == DELETED:
            self.is_gone = True
        elif answer is None or answer.until is not None or event.turn != answer.turn:
            return
        elif event.type == kinds.TURN_COMPLETED or (
            event.type == kinds.MESSAGE_ADDED and event.data.get("role") == "assistant"
        ):
            answer.until = event.seq

    def piece(self, turn: int, text: str) -> None:
        """Take the next piece of an answer."""
        answer = self.answer
        if answer is None or answer.until is not None or answer.turn != turn:
            answer = self.answer = Answer(turn)
        answer.text += text
        self.wake()

    def wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def news(self, seconds: float) -> bool:
        """Wait until something has come. Return False if nothing has within so many seconds."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await asyncio.wait_for(future, seconds)
        except TimeoutError:
            self._waiting = [each for each in self._waiting if each is not future]
            return False
        return True


class Reader:
    """How far one reader is: the last event, and how much of which answer."""

    def __init__(self, feed: Feed, after: int, types: frozenset[str] | None, *, chunks: bool) -> None:
        self._feed = feed
        self.after = after
        self._types = types
        self._chunks = chunks
        self._answer: Answer | None = None
        self._shown = 0

    @property
    def is_in_log(self) -> bool:
        """Return whether the next events aren't at hand any more."""
        recent = self._feed.recent
        first = recent[0].seq if recent else self._feed.version + 1
        return self.after < first - 1

    def take(self) -> list[t.Event | t.Chunk]:
        """Return what is at hand and wasn't read yet."""
        feed, found = self._feed, list[t.Event | t.Chunk]()
        if self.after < feed.version:
            # The newest are at the end, and a reader is seldom far behind.
            news = []
            for event in reversed(feed.recent):
                if event.seq <= self.after:
                    break
                news.append(event)
            for event in reversed(news):
                found += self.passed(event)
        answer = feed.answer
        if self._chunks and answer is not None and answer.until is None:
            found += self._pieces(answer)
        return found

    def passed(self, event: t.Event) -> list[t.Event | t.Chunk]:
        """Return an event, behind what is missing of the answer that it ends, if that was begun."""
        found = list[t.Event | t.Chunk]()
        answer = self._answer
        if answer is not None and answer.until == event.seq:
            found += self._pieces(answer)
        self.after = event.seq
        if self._types is None or event.type in self._types:
            found.append(event)
        return found

    def _pieces(self, answer: Answer) -> list[t.Event | t.Chunk]:
        is_new = answer is not self._answer
        if is_new:
            self._answer, self._shown = answer, 0
        text = answer.text[self._shown :]
        self._shown = len(answer.text)
        return [t.Chunk(turn=answer.turn, text=text, start=is_new)] if text else []


class Feeds:
    """The feeds of the sessions of a runtime. ``blocking`` carries out what may wait for the store."""

    def __init__(self, runtime: SessionRuntime, blocking: Blocking) -> None:
        self._runtime = runtime
        self._store = runtime.store
        self._blocking = blocking
        self._feeds: dict[str, Feed] = {}
        self._opening: dict[str, asyncio.Future[Feed]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leaving: set[asyncio.Future[Any]] = set()

    @property
    def readers(self) -> int:
        """Return how many there are."""
        return sum(feed.readers for feed in self._feeds.values())

    # The side of whoever makes an answer, in any thread.

    def on_loop(self, call: Callable[..., object], *args: Any) -> None:
        """Have something called on the loop, behind the events that this thread has appended."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(call, *args)

    # The side of readers.

    async def watch(
        self,
        id: str,
        *,
        after: int | None = None,
        types: frozenset[str] | None = None,
        chunks: bool = True,
        until: Callable[[], bool] = lambda: False,
        quiet: float = QUIET,
    ) -> AsyncIterator[t.Event | t.Chunk | None]:
        """Yield the events behind ``after`` (None: those to come) and pieces of answers, and None after each
        ``quiet`` seconds without any. It ends once all is read and ``until`` says so.

        Raises `SessionNotFound`, and `Gone` once the session is deleted."""
        feed = await self.open(id)
        try:
            reader = Reader(feed, feed.version if after is None else after, types, chunks=chunks)
            while True:
                if reader.is_in_log:
                    for event in await self._blocking(lambda: self._read(feed, reader.after)):
                        for item in reader.passed(event):
                            yield item
                    continue
                found = reader.take()
                for item in found:
                    yield item
                if found:
                    continue
                if feed.is_gone:
                    raise Gone
                if until():
                    return
                if not await feed.news(quiet):
                    yield None
        finally:
            self.leave(id, feed)

    def _read(self, feed: Feed, after: int) -> list[t.Event]:
        return [shown.event(event) for event in feed.live.read(after, min(after + RECENT, feed.version))]

    async def open(self, id: str) -> Feed:
        """Return the feed of a session, which is kept up to date until `leave`."""
        feed = self._feeds.get(id)
        if feed is None:
            opening = self._opening.get(id)
            if opening is None:
                opening = self._opening[id] = asyncio.ensure_future(self._opened(id))
                opening.add_done_callback(lambda _: self._opening.pop(id, None))
            feed = self._feeds.setdefault(id, await asyncio.shield(opening))
        feed.readers += 1
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        return feed

    async def _opened(self, id: str) -> Feed:
        loop = self._loop = asyncio.get_running_loop()

        def begin() -> Feed:
            live = self._runtime.get(id)
            with live.lock:
                feed = Feed(live)
                live.listeners = (*live.listeners, _Listener(feed, loop))
            return feed

        feed: Feed = await self._blocking(begin)
        return feed

    def leave(self, id: str, feed: Feed) -> None:
        """Let go of a feed that was opened."""
        feed.readers -= 1
        if feed.readers or self._feeds.get(id) is not feed:
            return
        del self._feeds[id]
        live = feed.live

        def leave() -> None:
            with live.lock:
                live.listeners = tuple(
                    one for one in live.listeners if getattr(one, "feed", None) is not feed
                )

        leaving = asyncio.ensure_future(self._blocking(leave))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    # What other processes append.

    async def _look(self) -> None:
        """Look at all sessions that are watched, again and again, as long as there are some."""
        pause = LOOK
        while self._feeds:
            await asyncio.sleep(pause)
            began = monotonic()
            feeds = list(self._feeds.items())
            try:
                news = await self._blocking(partial(self._news, feeds))
            except StorageError as error:  # it may be back by the next look
                _log.warning("looking for what others have appended failed: %s", error)
                news = []
            for feed, events in news:
                if events is None:
                    feed.is_gone = True
                    feed.wake()
                else:
                    feed.take(events)
            pause = max(LOOK, SHARE * (monotonic() - began))

    def _news(self, feeds: list[tuple[str, Feed]]) -> list[tuple[Feed, list[t.Event] | None]]:
        found: list[tuple[Feed, list[t.Event] | None]] = []
        for id, feed in feeds:
            head = self._store.head(KIND, id)
            if head is None:
                found.append((feed, None))
            elif head.version > feed.version:
                feed.live.refresh()  # which tells its listeners, so this session's memory is up to date
                found.append((feed, self._read_all(feed)))
        return found

    def _read_all(self, feed: Feed) -> list[t.Event]:
        return [shown.event(event) for event in feed.live.read(after=feed.version)]


class _Listener:
    """Called with what is appended to a session, in whatever thread, under its lock."""

    def __init__(self, feed: Feed, loop: asyncio.AbstractEventLoop) -> None:
        self.feed = feed
        self._loop = loop

    def __call__(self, events: Sequence[Event]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.feed.take, [shown.event(event) for event in events])
