"""`RunFeeds`: the steps of runs, to whoever reads them as they are recorded. Spec: 11 §1.3.

Readers of a run share what was read of it, and all of them one look at the store: whoever reads costs no
thread. All of it belongs to the loop.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from harnpy.faults import Fault
from harnpy.serve import shown
from harnpy.workflow.engines.contract import ENDED
from harnpy.workflow.engines.run_log import KIND, RunLog, read_head

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from harnpy.client import types as t
    from harnpy.storage.contract import Store

    Blocking = Callable[[Callable[[], Any]], Awaitable[Any]]

_log = logging.getLogger(__name__)

#: Seconds that one look at the store waits for news, and between two looks.
WAIT: Final = 0.25
PAUSE: Final = 0.02


class _News(NamedTuple):
    """What a look has found of a run: steps up to record number ``version``."""

    version: int
    steps: list[t.RunStep]
    is_over: bool
    failure: Exception | None = None


class _Feed:
    """What the readers of one run share."""

    def __init__(self) -> None:
        self.version = 0
        self.steps: list[t.RunStep] = []
        self.is_over = False
        self.failure: Exception | None = None
        self.readers = 0
        self.changed = asyncio.Event()

    def take(self, news: _News) -> None:
        self.version, self.failure = news.version, news.failure
        self.steps += news.steps
        self.is_over = self.is_over or news.is_over
        if news.steps or self.is_over or self.failure is not None:
            self.changed.set()
            self.changed = asyncio.Event()


class RunFeeds:
    """The feeds of the runs of a store. ``blocking`` carries out what may wait for that."""

    def __init__(self, store: Store, blocking: Blocking) -> None:
        self._store = store
        self._blocking = blocking
        self._feeds: dict[str, _Feed] = {}
        self._looking: asyncio.Task[None] | None = None

    async def steps(self, id: str, *, after: int, quiet: float) -> AsyncIterator[t.RunStep | None]:
        """Yield the steps behind number ``after`` until the run has ended, and None after each ``quiet``
        seconds without any."""
        feed = self._feeds.setdefault(id, _Feed())
        feed.readers += 1
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            while True:
                changed = feed.changed
                for step in feed.steps[after:]:
                    after = step.n
                    yield step
                if feed.failure is not None:
                    raise feed.failure
                if feed.is_over and after >= len(feed.steps):
                    return
                try:
                    await asyncio.wait_for(changed.wait(), quiet)
                except TimeoutError:
                    yield None
        finally:
            feed.readers -= 1
            if not feed.readers and self._feeds.get(id) is feed:
                del self._feeds[id]

    def close(self) -> None:
        """Look at the store no more."""
        if self._looking is not None:
            self._looking.cancel()

    async def _look(self) -> None:
        """Look at all runs that somebody reads, again and again, as long as there are some."""
        while self._feeds:
            feeds = dict(self._feeds)
            known = {id: feed.version for id, feed in feeds.items() if not feed.is_over}
            try:
                news = await self._blocking(partial(self._news, known))
            except Exception as error:  # it may be back by the next look
                _log.warning("looking for the steps of runs failed: %s", error)
                news = {}
            for id, found in news.items():
                feeds[id].take(found)
            await asyncio.sleep(PAUSE if news else WAIT)

    def _news(self, known: dict[str, int]) -> dict[str, _News]:
        """Return what is new of runs whose records are ``known`` up to a number, after a moment's wait."""
        old = {id: version for id, version in known.items() if version}
        if len(old) == len(known):  # of one that nobody has looked at yet there is news
            self._store.news(KIND, old, WAIT)
        versions = self._store.versions(KIND, [*known])
        changed = (id for id, version in known.items() if versions.get(id) != version)
        return {id: self._read(id, known[id]) for id in changed}

    def _read(self, id: str, after: int) -> _News:
        try:
            head = self._store.head(KIND, id)  # before the steps: if it has ended, those are all
            if head is None:
                return _News(after, [], True)
            found = [*RunLog(self._store, id, lambda: 0.0).step_infos(after)]
        except Fault as error:
            return _News(after, [], False, error)
        version = max(head.version, found[-1][0] if found else 0)
        return _News(version, [shown.step(step) for _, step in found], read_head(head).status in ENDED)
