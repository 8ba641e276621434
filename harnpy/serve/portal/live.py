"""What a page that is open is sent: pieces of itself, made by the server, as server-sent events.

    entries  {html}          behind those that the list has; `id` is the number of the last event that was seen
    all      {html}          the whole list again: what was said before isn't what it was
    chunk    {text, start}   of the answer that is being made, as it comes
    region   {id, html}      in place of the one with that id
    gone     {}              the session is deleted
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.client import types as t
from harnpy.formats.json import compact_json
from harnpy.serve.portal.runs import run_regions, steps_of
from harnpy.serve.portal.sessions import PAGE, regions_of, stretch
from harnpy.serve.portal.shell import may
from harnpy.serve.portal.transcript import Reader, entries, learn
from harnpy.session import events as kinds
from harnpy.workflow.engines.contract import ENDED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from harnpy.formats.markup import Markup
    from harnpy.serve.service import Caller, Service

#: How many entries before are looked through for the names of tools.
_BEFORE = 100
#: Events that add to what is said.
_SAYING = frozenset(
    (kinds.MESSAGE_ADDED, kinds.CONTEXT_ADDED, kinds.COMPACTION_TRIGGERED, kinds.BRANCH_SUMMARY)
)
#: Events after which what was said is another.
_TURNING = frozenset((kinds.LEAF_MOVED, kinds.HISTORY_REPLACED))
#: Events that change no region.
_QUIET = frozenset((kinds.STEP_STARTED, kinds.TOOL_STARTED, kinds.TOOL_OUTPUT_DELTA, kinds.TOOL_COMPLETED))


def message(event: str, data: Any, id: int | None = None) -> str:
    """Return a server-sent event."""
    numbered = "" if id is None else f"id: {id}\n"
    return f"event: {event}\n{numbered}data: {compact_json(data)}\n\n"


KEEP_ALIVE = ":\n\n"


async def session_stream(
    service: Service, caller: Caller, session: t.Session, client: str, after: int
) -> AsyncIterator[str]:
    """Yield what the page of a session is sent, from behind an event."""
    id = session.id
    reader = Reader(id, may(caller, "write"), {})
    earlier = await service.history(caller, id, after=max(0, after - _BEFORE), limit=PAGE)
    learn((entry for entry in earlier.entries if entry.seq <= after), reader.names)
    sent: dict[str, Markup] = {}
    for part in _changed(regions_of(session, caller, client), sent):
        yield part
    async for event in service.watch(caller, id, after=after):
        if event is None:
            yield KEEP_ALIVE
        elif isinstance(event, t.Chunk):
            yield message("chunk", {"text": event.text, "start": event.start})
        else:
            if event.type in _TURNING:
                shown, _ = await stretch(service, caller, id, event.seq + 1)
                yield message("all", {"html": entries(shown, reader)}, event.seq)
            elif event.type in _SAYING:
                yield message("entries", {"html": entries([entry_of(event)], reader)}, event.seq)
            if event.type not in _QUIET:
                for part in _changed(
                    regions_of(await service.session(caller, id), caller, client), sent, event.seq
                ):
                    yield part


def _changed(regions: dict[str, Markup], sent: dict[str, Markup], seq: int | None = None) -> list[str]:
    """Return messages for the regions that aren't as they were sent."""
    changed = [(id, html) for id, html in regions.items() if sent.get(id) != html]
    sent.update(regions)
    return [message("region", {"id": id, "html": html}, seq) for id, html in changed]


async def run_stream(service: Service, caller: Caller, run: t.Run) -> AsyncIterator[str]:
    """Yield what the page of a run is sent until it has ended."""
    sent: dict[str, Markup] = {}
    async for step in service.run_events(caller, run.id):
        run = await service.run(caller, run.id)
        if step is None:
            yield KEEP_ALIVE
        waiting = [each for each in (await service.requests(caller)).requests if each.run == run.id]
        regions = run_regions(run, await steps_of(service, caller, run), waiting, caller)
        for part in _changed(regions, sent):
            yield part
        if run.status in ENDED:
            break
    yield message("gone", {})


def entry_of(of: t.Event) -> t.Entry:
    data = of.data
    known = ("name", "tool_calls", "tool_call_id", "reasoning", "metadata")
    return t.Entry(id=of.id, seq=of.seq, type=of.type, role=str(data.get("role", "")), content=data.get("content", data.get("parts")), time=of.time, turn=of.turn, cost=of.cost, **{key: data[key] for key in known if key in data})
