"""What a page that is open is sent: pieces of itself, made by the server, as server-sent events.

entries  {html}          behind those that the list has; `id` is the number of the last event that was seen
all      {html}          the whole list again: what was said before isn't what it was
chunk    {text, start}   of the answer that is being made, as it comes
region   {id, html}      in place of the one with that id
gone     {}              nothing comes any more: the session is deleted, the run has ended
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

from harnpy.client import types as t
from harnpy.serve.portal.runs import requests_of, run_regions
from harnpy.serve.portal.session import regions_of, stretch
from harnpy.serve.portal.transcript import PAGE, Reader, entries, is_of_step, learn, with_steps
from harnpy.serve.refusals import Refused
from harnpy.serve.rights import OWN
from harnpy.serve.shown import SAID, entry
from harnpy.serve.streams import ALIVE, encoded
from harnpy.session import events as kinds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from harnpy.formats.markup import Markup
    from harnpy.serve.service import Caller, Service

T = TypeVar("T")

_SECOND: Final = 1.0
#: Events after which the window has another size.
_RESIZING = frozenset(
    (kinds.TURN_COMPLETED, kinds.COMPACTION_TRIGGERED, kinds.HISTORY_REPLACED, kinds.LEAF_MOVED)
)
#: Events that change no region.
_QUIET = frozenset((kinds.STEP_STARTED, kinds.TOOL_STARTED, kinds.TOOL_OUTPUT_DELTA, kinds.TOOL_COMPLETED))


def frame(event: str, data: dict[str, Any], id: int | None = None) -> bytes:
    """Return a server-sent event."""
    numbered = b"" if id is None else b"id: %d\n" % id
    return b"event: %b\n%bdata: %b\n\n" % (event.encode(), numbered, encoded(data))


async def _looking(items: AsyncIterator[T | None], is_busy: Callable[[], bool]) -> AsyncIterator[T | None]:
    """Yield what comes, and None after each second without any while ``is_busy()``: what a program asks a
    person may be in no session's log.
    """
    coming = asyncio.ensure_future(anext(items))
    try:
        while True:
            await asyncio.wait((coming,), timeout=_SECOND if is_busy() else None)
            if not coming.done():
                yield None
                continue
            try:
                yield coming.result()
            except StopAsyncIteration:
                return
            coming = asyncio.ensure_future(anext(items))
    finally:
        coming.cancel()


class Follower:
    """What a page of a session has been sent, and what it is sent next."""

    def __init__(self, service: Service, caller: Caller, session: t.Session, client: str) -> None:
        self._service = service
        self._caller = caller
        self._session = session
        self._client = client
        self._reader = Reader(session.id, OWN in session.may, {})
        self._regions: dict[str, Markup] = {}
        self._tokens = 0
        #: Events of the step that makes the next message.
        self._steps: list[t.Event] = []
        #: When the regions were made last, and whether they are older than what was said.
        self._looked, self._is_stale = 0.0, False
        #: The turn that has ended last.
        self._ended = 0

    async def frames(self, after: int) -> AsyncIterator[bytes]:
        """Yield what comes behind an event."""
        service, caller, id = self._service, self._caller, self._session.id
        earlier = await service.history(caller, id, after=max(0, after - PAGE), limit=PAGE)
        learn((each for each in earlier.entries if each.seq <= after), self._reader.names)
        await self._measure()
        for part in self._changed():
            yield part
        items: AsyncIterator[t.Event | t.Chunk | None] = _looking(
            service.watch(caller, id, after=after),
            lambda: self._is_stale or self._session.running is not None,
        )
        try:
            async for item in items:
                if item is None:
                    yield ALIVE
                elif isinstance(item, t.Chunk):
                    if item.turn != self._ended:
                        yield frame("chunk", {"text": item.text, "start": item.start})
                    continue
                else:
                    async for part in self._said(item):
                        yield part
                    if item.type in _QUIET or not self._is_due(item):
                        continue
                self._session, self._is_stale = await service.session(caller, id), False
                self._looked = asyncio.get_running_loop().time()
                for part in self._changed():
                    yield part
        except Refused as refused:
            if refused.code not in ("gone", "not_found"):
                raise
            yield frame("gone", {})

    def _is_due(self, event: t.Event) -> bool:
        """Return whether the regions are to be looked at now. Messages only change figures: a look each
        second is enough.
        """
        now = asyncio.get_running_loop().time()
        self._is_stale = event.type in SAID and now - self._looked < _SECOND
        return not self._is_stale

    async def _said(self, event: t.Event) -> AsyncIterator[bytes]:
        """Yield what an event changes of what was said."""
        if event.type == kinds.TURN_COMPLETED:
            # What it has begun to say and was kept from saying is nothing that was said.
            self._ended = event.turn or 0
            yield frame("chunk", {"text": "", "start": True}, event.seq)
        elif event.type == kinds.LEAF_MOVED:
            shown, _ = await stretch(self._service, self._caller, self._session.id, event.seq + 1)
            html = await asyncio.to_thread(entries, shown, self._reader)
            yield frame("all", {"html": str(html)}, event.seq)
        elif event.type in SAID:
            said = with_steps([entry(event)], self._steps)
            self._steps = []
            yield frame("entries", {"html": str(entries(said, self._reader))}, event.seq)
        elif is_of_step(event):
            self._steps.append(event)
        if event.type in _RESIZING:
            await self._measure()

    async def _measure(self) -> None:
        self._tokens = (await self._service.window(self._caller, self._session.id)).tokens

    def _changed(self) -> list[bytes]:
        regions = regions_of(self._session, self._tokens, self._caller, self._client)
        return _changed(regions, self._regions)


def _changed(regions: dict[str, Markup], sent: dict[str, Markup]) -> list[bytes]:
    """Return frames for the regions that aren't as they were sent."""
    changed = [(id, html) for id, html in regions.items() if sent.get(id) != html]
    sent.update(regions)
    return [frame("region", {"id": id, "html": str(html)}) for id, html in changed]


async def run_stream(service: Service, caller: Caller, run: t.Run) -> AsyncIterator[bytes]:
    """Yield what the page of a run is sent until it has ended."""
    sent: dict[str, Markup] = {}
    steps: list[t.RunStep] = []
    async for step in _looking(service.run_events(caller, run.id), lambda: True):
        if step is None:
            yield ALIVE
        else:
            steps.append(step)
            if len(steps) < run.steps:
                continue  # those that the page has already
        run = await service.run(caller, run.id)
        for part in _changed(await _regions(service, caller, run, steps), sent):
            yield part
    run = await service.run(caller, run.id)
    for part in _changed(await _regions(service, caller, run, steps), sent):
        yield part
    yield frame("gone", {})


async def _regions(service: Service, caller: Caller, run: t.Run, steps: list[t.RunStep]) -> dict[str, Markup]:
    return run_regions(run, steps, await requests_of(service, caller, run.id), caller)
