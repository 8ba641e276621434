"""What all agents for front ends need: the front end's messages, its tools, and a turn as it happens.

A front end holds the conversation so far, and sends all of it. What the session has of it stays as it is; the
session goes back to where the two part, and what is new comes behind that. The log keeps both ways.
Spec: 10 §C20.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.adapters.json_app import Problem
from harnpy.agent.factory import LoopFactory, Tool
from harnpy.llm.text_format import visible_text
from harnpy.session import events as kinds
from harnpy.session.agents import AgentDef
from harnpy.session.cuts import Cut
from harnpy.session.errors import RewindError, SessionExists
from harnpy.session.events import EventDraft
from harnpy.session.prompt import HistoryEntry, entry_of
from harnpy.session.registers import DELETED
from harnpy.session.registers import REGISTERS as SETTINGS
from harnpy.session.rewind import LeafMoved
from harnpy.session.transfer import listed
from harnpy.session.window_rewriting import rewritten
from harnpy.storage.errors import Unsupported
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from harnpy.agent.factory.build import AgentBuild
    from harnpy.session.agent_turn import Turn
    from harnpy.session.agents import TurnResult
    from harnpy.session.aio import AsyncSessionRuntime
    from harnpy.session.events import Event
    from harnpy.session.log import Session
    from harnpy.session.runtime import SessionRuntime

    #: Names the session of a chat: what ASGI says of a request, and the chat's id.
    SessionId = Callable[[Mapping[str, Any], str], str]

    Json = dict[str, Any]

#: What stands for the result of a front end's tool, until that comes.
PENDING = "The user's application runs this tool. Its result comes with its next message."


# Messages.


class Item(NamedTuple):
    """A message as a front end has it, and the events that it is here: the first of them, and the last.

    ``is_own``: the front end has said it itself, and if it says it otherwise now, it is another one.
    """

    message: Json
    first: Event
    last: Event
    is_own: bool


def told(session: Session) -> list[HistoryEntry]:
    """Return all that was said, also what a compaction has taken out of the window."""
    window = session.view.window
    events = window.history()
    for _, context in window.contexts:
        at = next((at for at, event in enumerate(events) if event.seq > context.seq), len(events))
        events.insert(at, context)
    return [entry_of(each) or HistoryEntry(each.body, each.id, each.type, event=each) for each in events]


def visible(session: Session, text: str) -> str:
    """Return what people see of a model's text: calls in text format, and their markup, aren't shown."""
    return visible_text(text) if session.get(f"{SETTINGS}tool_format") == "text" else text


def go_along(
    session: Session, items: Sequence[Item], given: Sequence[Json], *, is_whole: bool = False
) -> Sequence[Json]:
    """Have the session go back to where a front end's messages part from its ``items``; return the messages
    that are new to it.

    A front end that knows none of them, or the last ones alone, hasn't taken the others back, unless
    ``is_whole``. Raises `RewindError` when the history was replaced since, so that there was no such moment.
    """
    ids = [item.message["id"] for item in items]
    start = 0
    if not is_whole:
        if not given or all(message["id"] not in ids for message in given):
            return given
        start = ids.index(given[0]["id"]) if given[0]["id"] in ids else 0
    kept = start
    for item, message in zip(items[start:], given, strict=False):
        if item.message["id"] != message["id"] or (item.is_own and item.message != message):
            break
        kept += 1
    if kept < len(items):
        _go_back(session, items[kept - 1].last if kept else None, items[kept].first)
    return given[kept - start :]


def _go_back(session: Session, last: Event | None, first: Event) -> None:
    """Go on behind ``last``, the event before ``first``; None is the beginning."""
    events = [entry.event for entry in told(session) if entry.event is not None]
    kept = events[: next(at for at, event in enumerate(events) if event.seq == first.seq)]
    behind, turn = first.seq - 1, first.turn
    if turn is not None and turn.seq > (0 if last is None else last.seq):
        behind = turn.seq - 1
    session.record(kinds.LEAF_MOVED, LeafMoved(behind))
    # A turn that went on is cut there, and over.
    for seq, begun in [*session.view.open_turns.items()]:
        ends = (e for e in session.read(seq, types=frozenset({kinds.TURN_COMPLETED})) if e.turn is not None)
        body = next((end.body for end in ends if end.turn is not None and end.turn.seq == seq), None)
        if body is not None:
            session.write(EventDraft(kinds.TURN_COMPLETED, body, turn=begun))
    if [entry.event and entry.event.seq for entry in told(session)] != [event.seq for event in kept]:
        raise RewindError(
            f"session '{session.id}' can't go back there: its history was replaced since", session.id
        )


# Tools.


class WithTools:
    """Runs a definition with the tools of a front end: a call of one ends the turn. ``context`` are
    paragraphs that its system prompt has in this turn."""

    is_loop = True

    def __init__(
        self, definition: AgentDef, loops: LoopFactory, tools: Sequence[Tool], context: Sequence[str] = ()
    ) -> None:
        self.name = definition.name
        self._loops = loops
        self._tools = tools
        self._context = context
        names = [tool.name for tool in tools]
        if names:
            options = {"tool_format": "native", **definition.options}
            ends = options.get("stop_after_successful_tools") or []
            options["stop_after_successful_tools"] = [*ends, *names]
            own = definition.tools
            definition = replace(definition, options=options, tools=None if own is None else (*own, *names))
        self._definition = definition

    def run(self, turn: Turn) -> None:
        """Run the turn."""
        self._loops.with_capability(self._add)(self._definition, turn.session).run(turn)

    def _add(self, build: AgentBuild) -> None:
        for tool in self._tools:
            build.add_tool(tool)
        for text in self._context:
            build.add_system(text)


def front_end_tool(name: str, description: str, parameters: Json | None = None) -> Tool:
    """Return a tool that a front end runs. Raises `InvalidArgument`."""
    return Tool(name, description, parameters or {"type": "object"}, lambda given: PENDING)


def drop_pending(session: Session, answered: Sequence[str | None]) -> None:
    """Take out of the window what stands for the results of these calls, which are there now."""
    window = session.view.window
    entries = window.entries.items()
    left = [entry for entry in entries if not _is_pending(entry.body, answered)]
    if len(left) < len(entries):
        cut = Cut("front_end", rewritten(window, left), window, cutoff=session.stream.last(), rewrites=True)
        session.record(kinds.COMPACTION_TRIGGERED, cut)


def _is_pending(message: Json, answered: Sequence[str | None]) -> bool:
    results = [block for block in listed.all_blocks_of(message) if block.get("type") == "tool_result"]
    return bool(results) and all(
        block["content"] == PENDING and block["tool_use_id"] in answered for block in results
    )


# A turn.


def check_agent(runtime: SessionRuntime, agent: Any, app: str) -> None:
    """Raise `Unsupported` for a definition that the runtime can't run."""
    if isinstance(agent, AgentDef) and not isinstance(runtime.agents, LoopFactory):
        raise Unsupported(f"{app}: a definition needs a loop: open the runtime with agents=LoopFactory()")


async def ensure(runtime: AsyncSessionRuntime, id: str, agent: Any) -> None:
    """Create the session unless it is there. Raises `InvalidSessionId`, and `Problem` for a deleted one."""
    if not await runtime.exists(id):
        with suppress(SessionExists):  # by another request, just now
            await runtime.create(agent if isinstance(agent, AgentDef) else "", id=id)
    elif (await runtime.info(id)).status == DELETED:
        raise Problem(410, "this conversation was deleted")


async def turn(
    runtime: AsyncSessionRuntime, id: str, agent: Any
) -> AsyncGenerator[str | Event | TurnResult, None]:
    """Run an agent on what the session has, and yield what happens: pieces of its answer, and the events of
    its turn from its begin on, in the end the result. Closing the iterator cancels the turn.

    Raises what `send` raises.
    """
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[Any]()
    key = f"front-end:{World().ids.new()}"
    began: Event | None = None

    def put(what: Any) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, what)

    stop = (await runtime.get(id)).observe(put)
    task = asyncio.create_task(runtime.send(id, None, agent=agent, stream=put, idempotency_key=key))
    task.add_done_callback(lambda _: put(None))
    try:
        while (what := await queue.get()) is not None:
            if isinstance(what, str):
                yield what
            elif what.type == kinds.TURN_STARTED and what.body.get("key") == key:
                began = what
                yield what
            elif began is not None and _is_of(what, began):
                yield what
        yield task.result()
    finally:
        stop()
        if not task.done():
            task.cancel()
            await asyncio.wait([task])


def _is_of(event: Event, began: Event) -> bool:
    """Return whether it is an event of the turn, or a register that is set meanwhile: messages of no turn are
    others'."""
    if event.turn is None:
        return event.type == kinds.REGISTER_SET
    return event.turn.seq == began.seq
