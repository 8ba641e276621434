"""What a page that is open is sent: pieces of itself, made by the server, as server-sent events.

entries  {html}          behind those that the list has; `id` is the number of the last event that was seen
all      {html}          the whole list again: what was said before isn't what it was
chunk    {text, start}   of the answer that is being made, as it comes
region   {id, html}      in place of the one with that id
gone     {}              nothing comes any more: the session is deleted, the run has ended
"""

from __future__ import annotations

from asyncio import to_thread
from typing import TYPE_CHECKING, Any

from harnpy.client import types as t
from harnpy.serve.portal.runs import requests_of, run_regions
from harnpy.serve.portal.session import regions_of, stretch
from harnpy.serve.portal.transcript import PAGE, Reader, entries, learn
from harnpy.serve.refusals import Refused
from harnpy.serve.shown import SAID, entry
from harnpy.serve.streams import ALIVE, encoded
from harnpy.session import events as kinds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from harnpy.formats.markup import Markup
    from harnpy.serve.service import Caller, Service

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


async def session_stream(
    service: Service, caller: Caller, session: t.Session, client: str, after: int
) -> AsyncIterator[bytes]:
    """Yield what the page of a session is sent, from behind an event."""
    id = session.id
    reader = Reader(id, caller.may("write"), {})
    earlier = await service.history(caller, id, after=max(0, after - PAGE), limit=PAGE)
    learn((each for each in earlier.entries if each.seq <= after), reader.names)
    tokens = (await service.window(caller, id)).tokens
    ended = 0
    sent: dict[str, Markup] = {}
    for part in _changed(regions_of(session, tokens, caller, client), sent):
        yield part
    try:
        async for event in service.watch(caller, id, after=after):
            if event is None:
                yield ALIVE
            elif isinstance(event, t.Chunk):
                if event.turn != ended:
                    yield frame("chunk", {"text": event.text, "start": event.start})
            else:
                if event.type == kinds.TURN_COMPLETED:
                    # What it has begun to say and was kept from saying is nothing that was said.
                    ended = event.turn or 0
                    yield frame("chunk", {"text": "", "start": True}, event.seq)
                if event.type == kinds.LEAF_MOVED:
                    shown, _ = await stretch(service, caller, id, event.seq + 1)
                    yield frame("all", {"html": str(await to_thread(entries, shown, reader))}, event.seq)
                elif event.type in SAID:
                    yield frame("entries", {"html": str(entries([entry(event)], reader))}, event.seq)
                if event.type in _RESIZING:
                    tokens = (await service.window(caller, id)).tokens
                if event.type not in _QUIET:
                    session = await service.session(caller, id)
                    for part in _changed(regions_of(session, tokens, caller, client), sent):
                        yield part
    except Refused as refused:
        if refused.code != "gone":
            raise
        yield frame("gone", {})


def _changed(regions: dict[str, Markup], sent: dict[str, Markup]) -> list[bytes]:
    """Return frames for the regions that aren't as they were sent."""
    changed = [(id, html) for id, html in regions.items() if sent.get(id) != html]
    sent.update(regions)
    return [frame("region", {"id": id, "html": str(html)}) for id, html in changed]


async def run_stream(service: Service, caller: Caller, run: t.Run) -> AsyncIterator[bytes]:
    """Yield what the page of a run is sent until it has ended."""
    sent: dict[str, Markup] = {}
    steps: list[t.RunStep] = []
    async for step in service.run_events(caller, run.id):
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
