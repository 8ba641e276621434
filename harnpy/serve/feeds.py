"""Live feeds: a session's events and the answers that are being made, for any number of readers.

A reader costs a task and no thread. What it hasn't read yet isn't kept for it: it knows how far it is, and
reads on in the last events of its session, which all readers share, or in the log. So a slow one holds up
nobody, and nothing is lost. All of it belongs to the loop, but what the session calls. Spec: 11 §1.4.

Events and pieces of this process come from the session's object as they are made. Those of others are found
by one look at the store for all sessions that are watched.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Protocol

from harnpy.client import types as t
from harnpy.serve import shown
from harnpy.serve.streams import encoded
from harnpy.session import events as kinds
from harnpy.session.log import KIND
from harnpy.session.registers import DELETED
from harnpy.session.watch import Feed as SessionFeed
from harnpy.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from harnpy.session.chunks import Answer, SharedAnswers
    from harnpy.session.events import Event
    from harnpy.session.live import LiveSession
    from harnpy.session.runtime import SessionRuntime

    Blocking = Callable[[Callable[[], Any]], Awaitable[Any]]
    Item = t.Event | t.Chunk

_log = logging.getLogger(__name__)

#: How many events of a session are at hand for its readers, and how many are read from the log at once.
RECENT: Final = 256
#: How many bytes of events, at most, but for the last one.
RECENT_BYTES: Final = 1024 * 1024
#: How many answers of a session are.
ANSWERS: Final = 4
#: Seconds that one look at the store waits for news, and that one does while an answer may be made elsewhere.
WAIT: Final = 0.25
ANSWERED: Final = 0.05
#: Seconds between two looks, at least; else so many times what a look takes.
PAUSE: Final = 0.02
SHARE: Final = 4.0
#: Seconds without anything to say after which a reader gets None.
QUIET: Final = 15.0


class Gone(Exception):
    """Raised to a reader for whom a session isn't there any more."""


class Sight(Protocol):
    """Whether a reader may still read a session."""

    @property
    def is_lost(self) -> bool: ...

    async def look(self) -> None:
        """Take notice of what has happened so far."""

    def take(self, event: t.Event) -> None:
        """Take notice of an event."""


class Feed:
    """What the readers of one session share."""

    def __init__(self, live: LiveSession) -> None:
        self.live = live
        self.version = live.version
        self.recent: deque[t.Event] = deque()
        self._sizes: deque[int] = deque()
        self._size = 0
        self.answers: deque[Answer] = deque(live.answers, ANSWERS)
        #: The turns that have no end, by the numbers of their first events.
        self.turns = set(live.view.open_turns)
        #: The answers that other processes make, once there may be some.
        self.shared: SharedAnswers | None = None
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
            self._keep(event)
            if event.type == kinds.TURN_STARTED:
                self.turns.add(event.seq)
            elif event.type == kinds.TURN_COMPLETED and event.turn is not None:
                self.turns.discard(event.turn)
            elif event.type == kinds.STATUS_CHANGED and event.data.get("to") == DELETED:
                self.is_gone = True
            for observe in tuple(self.observers):
                observe(event)
        self.wake()

    def _keep(self, event: t.Event) -> None:
        self.recent.append(event)
        self._sizes.append(len(encoded(event)))
        self._size += self._sizes[-1]
        while len(self.recent) > RECENT or (self._size > RECENT_BYTES and len(self.recent) > 1):
            self.recent.popleft()
            self._size -= self._sizes.popleft()

    def show(self, answers: Sequence[Answer]) -> None:
        """Know that there is more of some answers."""
        for answer in answers:
            if answer not in self.answers:
                self.answers.append(answer)
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
        await asyncio.wait((future,), timeout=seconds)
        if not future.done():
            self._waiting = [each for each in self._waiting if each is not future]
        return future.done()


class Reader:
    """How far one reader is: the last event, and how much of which answers."""

    def __init__(self, feed: Feed, after: int, types: frozenset[str] | None, *, chunks: bool) -> None:
        self._feed = feed
        self.after = self._begin = after
        self._types = types
        self._chunks = chunks
        #: How many pieces of each answer were read.
        self._read: dict[Answer, int] = {}

    @property
    def is_in_log(self) -> bool:
        """Return whether the next events aren't at hand any more."""
        recent = self._feed.recent
        first = recent[0].seq if recent else self._feed.version + 1
        return self.after < first - 1

    def take(self) -> list[Item]:
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
        for answer in feed.answers if self._chunks else ():
            if not answer.is_over and answer.behind <= self.after:
                found += self._pieces(answer)
        return found

    def passed(self, event: t.Event) -> list[Item]:
        """Return an event, behind what is missing of the answers before it."""
        found = list[t.Event | t.Chunk]()
        for answer in self._feed.answers if self._chunks else ():
            # Of one that was over before the reader began, its message says all.
            if answer.behind < event.seq and (answer in self._read or answer.behind >= self._begin):
                found += self._pieces(answer)
        self.after = event.seq
        if self._types is None or event.type in self._types:
            found.append(event)
        return found

    def _pieces(self, answer: Answer) -> list[Item]:
        read, count = self._read.get(answer, 0), len(answer.pieces)
        if read == count:
            return []
        self._read = {each: number for each, number in self._read.items() if each in self._feed.answers}
        self._read[answer] = count
        return [t.Chunk(turn=answer.turn, text="".join(answer.pieces[read:count]), start=read == 0)]


class Feeds:
    """The feeds of the sessions of a runtime. ``blocking`` carries out what may wait for the store."""

    def __init__(self, runtime: SessionRuntime, blocking: Blocking) -> None:
        self._runtime = runtime
        self._store = runtime.store
        self._blocking = blocking
        self._feeds: dict[str, Feed] = {}
        self._opening: dict[str, asyncio.Future[tuple[Feed, Listener]]] = {}
        self._listeners: dict[str, Listener] = {}
        self._looking: asyncio.Task[None] | None = None

    @property
    def readers(self) -> int:
        """Return how many there are."""
        return sum(feed.readers for feed in self._feeds.values())

    async def watch(
        self,
        id: str,
        *,
        after: int | None = None,
        types: frozenset[str] | None = None,
        chunks: bool = True,
        until: Callable[[], bool] = lambda: False,
        quiet: float = QUIET,
        sight: Sight | None = None,
    ) -> AsyncIterator[Item | None]:
        """Yield the events behind ``after`` (None: those to come) and pieces of answers, and None after each
        ``quiet`` seconds without any. It ends once all is read and ``until`` says so.

        Raises `SessionNotFound`, and `Gone` once the session is deleted, or ``sight`` of it is lost.
        """
        feed = await self.open(id)
        if sight is not None:
            feed.observers.append(sight.take)
        try:
            if sight is not None:
                await sight.look()
            reader = Reader(feed, feed.version if after is None else after, types, chunks=chunks)
            while True:
                if reader.is_in_log:
                    for event in await self._blocking(partial(_read, feed, reader.after)):
                        for item in reader.passed(event):
                            _check(sight)
                            yield item
                    continue
                found = reader.take()
                for item in found:
                    _check(sight)
                    yield item
                if found:
                    continue
                _check(sight)
                if feed.is_gone:
                    raise Gone
                if until():
                    return
                if not await feed.news(quiet):
                    yield None
        finally:
            if sight is not None:
                feed.observers.remove(sight.take)
            self.leave(id, feed)

    async def open(self, id: str) -> Feed:
        """Return the feed of a session, which is kept up to date until `leave`."""
        feed = self._feeds.get(id)
        if feed is None:
            opening = self._opening.get(id)
            if opening is None:
                begin = partial(self._begin, id, asyncio.get_running_loop())
                opening = self._opening[id] = asyncio.ensure_future(self._blocking(begin))
                opening.add_done_callback(lambda _: self._opening.pop(id, None))
            begun, listener = await asyncio.shield(opening)
            feed = self._feeds.setdefault(id, begun)
            if feed is begun:
                self._listeners[id] = listener
        feed.readers += 1
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        return feed

    def _begin(self, id: str, loop: asyncio.AbstractEventLoop) -> tuple[Feed, Listener]:
        live = self._runtime.get(id)
        with live.lock:
            feed = Feed(live)
            listener = Listener(feed, loop)
            live._ensure_observers().join(listener)
        return feed, listener

    def leave(self, id: str, feed: Feed) -> None:
        """Let go of a feed that was opened."""
        feed.readers -= 1
        if not feed.readers and self._feeds.get(id) is feed:
            del self._feeds[id]
            observers = feed.live.observers
            if observers is not None:
                observers.leave(self._listeners.pop(id))

    def close(self) -> None:
        """Look at the store no more."""
        if self._looking is not None:
            self._looking.cancel()

    # What other processes append.

    async def _look(self) -> None:
        """Look at all sessions that are watched, again and again, as long as there are some."""
        while self._feeds:
            feeds = list(self._feeds.items())
            took = 0.0
            try:
                await self._blocking(partial(self._wait, feeds))
                began = monotonic()
                news = await self._blocking(partial(self._news, feeds))
                took = monotonic() - began
            except StorageError as error:  # it may be back by the next look
                _log.warning("looking for what others have appended failed: %s", error)
                news, took = [], WAIT
            except Exception:
                _log.exception("looking for what others have appended failed")
                news, took = [], WAIT
            for feed, events, answers in news:
                if events is None:
                    feed.is_gone = True
                    feed.wake()
                    continue
                feed.show(answers)
                feed.take(events)
            await asyncio.sleep(max(PAUSE, SHARE * took))

    def _wait(self, feeds: list[tuple[str, Feed]]) -> None:
        """Wait until a session may have more than its feed, or for a moment."""
        known = {id: feed.version for id, feed in feeds}
        is_answered = any(feed.turns for _, feed in feeds)
        self._store.news(KIND, known, ANSWERED if is_answered else WAIT)

    def _news(self, feeds: list[tuple[str, Feed]]) -> list[tuple[Feed, list[t.Event] | None, list[Answer]]]:
        found: list[tuple[Feed, list[t.Event] | None, list[Answer]]] = []
        versions = self._store.versions(KIND, [id for id, _ in feeds])
        for id, feed in feeds:
            answers: list[Answer] = []
            if feed.turns and not feed.live.answers:
                feed.shared = feed.shared or feed.live.shared_answers()
                answers = [] if feed.shared is None else feed.shared.read(feed.turns)
            version = versions.get(id)
            if version is None:
                found.append((feed, None, answers))
            elif version > feed.version:
                found.append((feed, _appended(feed), answers))
            elif answers:
                found.append((feed, [], answers))
        return found


def _check(sight: Sight | None) -> None:
    """Raise `Gone` to a reader who may read no more."""
    if sight is not None and sight.is_lost:
        raise Gone


def _read(feed: Feed, after: int) -> list[t.Event]:
    """Return the next events of the log: `RECENT`, or about `RECENT_BYTES` of them."""
    found, size = list[t.Event](), 0
    for event, own in shown.sized(feed.live, after, until=min(after + RECENT, feed.version)):
        found.append(event)
        size += own
        if size >= RECENT_BYTES:
            break
    return found


def _appended(feed: Feed) -> list[t.Event]:
    """Return what the log has and the feed hasn't."""
    live = feed.live
    with live.lock:
        if feed.shared is not None:
            # Before the session tells of them: what ends an answer says what was missing of it.
            feed.shared.end(list(live.stream.read(feed.version)))
        live.refresh()
    return [shown.event(event) for event in live.read(after=feed.version)]


class Listener(SessionFeed):
    """What a session tells of its events and answers, in whatever thread, under its lock."""

    def __init__(self, feed: Feed, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(1, None, lossy=True, pushed=False)
        self._feed = feed
        self._loop = loop
        self._news: dict[Answer, None] = {}

    def offer(self, events: Sequence[Event]) -> None:
        try:
            told = [shown.event(event) for event in events]
        except Exception:  # who appends has stored them: what can't be shown is no concern of theirs
            _log.exception("events of session %s can't be shown", self._feed.live.id)
            return
        self._call(self._feed.take, told)

    def show(self, answer: Answer) -> None:
        is_first = not self._news
        self._news[answer] = None
        if is_first:  # else the loop will come to it
            self._call(self._show)

    def _show(self) -> None:
        news, self._news = self._news, {}
        self._feed.show([*news])

    def _call(self, call: Callable[..., object], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:
            self.close()  # the loop is: nobody reads any more
