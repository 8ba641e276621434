"""Agents of harnpy for front ends that speak AG-UI: `AgUiApp`, an ASGI application. Spec: 10 §C20.

A thread is a session, a run one turn on it. Events are those of the protocol's version 1.0. Extra: ``ag-ui``.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from harnpy.adapters.front_ends import (
    PENDING,
    Item,
    WithTools,
    check_agent,
    drop_pending,
    ensure,
    front_end_tool,
    go_along,
    told,
    turn,
    visible,
)
from harnpy.adapters.json_app import MAX_BODY, JsonApp, Problem
from harnpy.faults import Fault
from harnpy.session import events as kinds
from harnpy.session.agents import AgentDef, TurnResult
from harnpy.session.aio import AsyncSessionRuntime
from harnpy.session.messages import is_feedback
from harnpy.session.transfer import listed, originals
from harnpy.session.transfer.blocks import alone, file_of, media, parts_of
from harnpy.session.transfer.foreign import Entry, context
from harnpy.version import install_command

try:
    from ag_ui.core import RunAgentInput
    from ag_ui.core.version import PROTOCOL_VERSION
    from pydantic import ValidationError
except ImportError as error:
    raise ImportError(f"harnpy.adapters.ag_ui needs AG-UI's package: {install_command('ag-ui')}") from error

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

    from harnpy.adapters.front_ends import SessionId
    from harnpy.adapters.json_app import Events, Request
    from harnpy.session.events import Event
    from harnpy.session.log import Session
    from harnpy.session.prompt import HistoryEntry
    from harnpy.session.runtime import SessionRuntime
    from harnpy.session.transaction import Txn

    Json = dict[str, Any]

TOOL = "ag-ui"


class AgUiApp(JsonApp):
    """Takes a ``RunAgentInput`` by POST, runs the agent on the session that is the thread, and sends events.

    ``agent`` is an `AgentDef`, which needs a runtime with a `LoopFactory`, or any agent that `send` takes. A
    definition is offered the front end's tools: a call of one ends the run, and its result comes with the
    next input. ``session_id(scope, thread_id)`` names the session of a thread; by default it is the thread's
    id, whoever asks. Wrap the application in `BearerAuth`: it lets everybody in.
    """

    def __init__(
        self,
        runtime: SessionRuntime,
        agent: Any,
        *,
        session_id: SessionId = lambda scope, thread_id: thread_id,
        max_body: int = MAX_BODY,
    ) -> None:
        super().__init__(max_body=max_body)
        check_agent(runtime, agent, "AgUiApp")
        self._runtime = AsyncSessionRuntime(runtime)
        self._agent = agent
        self._session_id = session_id

    async def handle(self, request: Request, events: Callable[..., Events]) -> Any:
        if request.parts != ("",):
            raise Problem(404, "there is nothing at this path: POST a RunAgentInput to /")
        request.only("POST")
        try:
            input = RunAgentInput.model_validate(request.json())
        except ValueError as error:
            raise Problem(400, f"the body is no RunAgentInput{_where(error)}") from error
        if input.resume:
            raise Problem(400, "there is nothing to resume: this agent makes no interrupts")
        id = self._session_id(request.scope, input.thread_id)
        run = _Run(self._runtime, id, input)
        messages = [message.model_dump(mode="json", by_alias=True) for message in input.messages]
        known = await run.take_in(messages, self._agent)
        out = events()
        for event in run.opening(known):
            await out.put(event)
        if not input.messages:
            await out.put(run.finished())
            return out
        async with aclosing(run.answer(self._agent)) as answer:
            async for event in answer:
                await out.put(event)
        return out


def _where(error: ValueError) -> str:
    """Return where in a value it is what it may not be, as far as pydantic says it."""
    found = error.errors() if isinstance(error, ValidationError) else []
    return f": look at `{'.'.join(map(str, found[0]['loc']))}`" if found and found[0]["loc"] else ""


class _Run:
    """One run of a thread."""

    def __init__(self, runtime: AsyncSessionRuntime, id: str, input: Any) -> None:
        self._runtime = runtime
        self._id = id
        self._input = input
        self._named = {"threadId": input.thread_id, "runId": input.run_id}
        self._memo: Any = None
        self._is_loop = False
        self._turn = ""
        #: How many messages the agent has written, and which of them is being written.
        self._count = 0
        self._open: str | None = None
        self._pending: list[str] = []

    # Before the turn.

    async def take_in(self, messages: Sequence[Json], agent: Any) -> list[Json] | None:
        """Add what is new of the front end's messages, and its state. Return the whole conversation, if the
        front end doesn't have it. Raises what writing to a session raises."""
        await ensure(self._runtime, self._id, agent)
        lacking: list[Json] = []

        def take(session: Txn) -> None:
            session.strict = False  # what a front end holds is what was said
            items = items_of(session)
            known = {item.message["id"] for item in items}
            lacking[:] = [] if any(m["id"] in known for m in messages) else [i.message for i in items]
            new = go_along(session, items, messages)
            drop_pending(session, [m.get("toolCallId") for m in new if m.get("role") == "tool"])
            session.append(*originals.drafts(TOOL, new, _entries))
            if self._input.state and self._input.state != session.memo:
                session.set_memo(self._input.state)
            self._memo = session.memo
            if lacking:
                lacking.extend(new)

        await self._runtime.execute(self._id, take, retries=5)
        return lacking or None

    def opening(self, known: list[Json] | None) -> Iterator[Json]:
        """Yield how a run begins."""
        yield {"type": "RUN_STARTED", **self._named, "protocolVersion": PROTOCOL_VERSION}
        if self._memo is not None and self._memo != self._input.state:
            yield {"type": "STATE_SNAPSHOT", "snapshot": self._memo}
        if known is not None:
            yield {"type": "MESSAGES_SNAPSHOT", "messages": known}

    # The turn.

    async def answer(self, agent: Any) -> AsyncGenerator[Json, None]:
        """Yield what happens in a turn of the agent, to its end."""
        try:
            self._is_loop = isinstance(agent, AgentDef)
            if isinstance(agent, AgentDef):
                agent = self._with_tools(agent)
            async with aclosing(turn(self._runtime, self._id, agent)) as happening:
                async for what in happening:
                    for event in self._events(what):
                        yield event
        except Exception as error:
            for event in self._closed():
                yield event
            why = str(error) if isinstance(error, Fault) else "the agent failed"
            yield {"type": "RUN_ERROR", "message": why, "code": getattr(error, "code", None) or "error"}
            if not isinstance(error, Fault):
                raise

    def _with_tools(self, agent: AgentDef) -> WithTools:
        tools = [
            front_end_tool(each.name, each.description, each.parameters) for each in self._input.tools or ()
        ]
        context = [f"{each.description}:\n{each.value}" for each in self._input.context or ()]
        return WithTools(agent, self._runtime.runtime.agents, tools, context)

    def _events(self, what: str | Event | TurnResult) -> Iterator[Json]:
        """Yield what is told of what happens."""
        if isinstance(what, str):
            yield from self._piece(what)
        elif isinstance(what, TurnResult):
            yield from self._closed()
            yield self.finished(what)
        elif what.type == kinds.TURN_STARTED:
            self._turn = what.id
        elif what.type == kinds.REGISTER_SET and what.body["key"] == "memo":
            yield {"type": "STATE_SNAPSHOT", "snapshot": what.body["value"]}
        elif what.type == kinds.MESSAGE_ADDED:
            yield from self._message(what)

    def finished(self, result: TurnResult | None = None) -> Json:
        """Return how a run ends."""
        outcome: Json = {"type": "success"}
        if self._pending:
            outcome["pendingToolCallIds"] = self._pending
        usage = {} if result is None else result.usage or {}
        names = {
            "inputTokens": "input_tokens",
            "outputTokens": "output_tokens",
            "totalTokens": "total_tokens",
        }
        tokens = {name: usage[key] for name, key in names.items() if type(usage.get(key)) is int}
        ended = {"type": "RUN_FINISHED", **self._named, "outcome": outcome}
        return {**ended, "usage": [tokens]} if tokens else ended

    def _piece(self, text: str) -> Iterator[Json]:
        """Yield a piece of the answer that is being written."""
        if self._open is None:
            self._open = f"{self._turn}.{self._count}"
            yield {"type": "TEXT_MESSAGE_START", "messageId": self._open, "role": "assistant"}
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": self._open, "delta": text}

    def _closed(self) -> Iterator[Json]:
        if self._open is not None:
            yield {"type": "TEXT_MESSAGE_END", "messageId": self._open}
            self._open = None

    def _message(self, event: Event) -> Iterator[Json]:
        blocks = listed.all_blocks_of(event.body)
        if event.body["role"] == "assistant":
            id = f"{self._turn}.{self._count}"
            text = listed.text_of(block for block in blocks if block.get("type") == "text")
            if text and self._open is None and not self._is_loop:  # which shows all that people see
                yield from self._piece(text)
            yield from self._closed()
            for call in (block for block in blocks if block.get("type") == "tool_use"):
                named = {"toolCallId": call["id"]}
                yield {
                    "type": "TOOL_CALL_START", **named, "toolCallName": call["name"], "parentMessageId": id,
                }  # fmt: skip
                yield {"type": "TOOL_CALL_ARGS", **named, "delta": _arguments(call)}
                yield {"type": "TOOL_CALL_END", **named}
            self._count += 1
        for result in (block for block in blocks if block.get("type") == "tool_result"):
            if result["content"] == PENDING:
                self._pending.append(str(result["tool_use_id"]))
                continue
            message = _result(event.id, result)
            yield {"type": "TOOL_CALL_RESULT", "messageId": message["id"], **_without(message, "id", "error")}


# Messages.


def items_of(session: Session) -> list[Item]:
    """Return the conversation as a front end has it: all of it, also behind a compaction."""
    items: list[Item] = []
    counts: Counter[str] = Counter()
    for original, group in originals.grouped(TOOL, told(session)):
        first, last = group[0].event, group[-1].event
        if first is None or last is None:
            continue
        if original is not None:
            items.append(Item(original, first, last, True))
        else:
            written = _written(session, group[0], first, counts)
            items += (Item(message, first, first, False) for message in written)
    return items


def _written(session: Session, entry: HistoryEntry, event: Event, counts: Counter[str]) -> Iterator[Json]:
    """Yield what an entry is for a front end: nothing, a message, or the results in it."""
    blocks = listed.all_blocks_of(entry.message)
    text = listed.text_of(block for block in blocks if block.get("type") == "text")
    if entry.event_type == kinds.CONTEXT_ADDED:
        yield {"id": event.id, "role": "system", "content": text}
    elif entry.message["role"] == "assistant":
        id = event.id
        if event.turn is not None:
            id = f"{event.turn_id}.{counts[event.turn_id or '']}"
            counts[event.turn_id or ""] += 1
        calls = [
            {
                "id": block["id"],
                "type": "function",
                "function": {"name": block["name"], "arguments": _arguments(block)},
            }
            for block in blocks
            if block.get("type") == "tool_use"
        ]
        said = {"id": id, "role": "assistant", "content": visible(session, text)}
        if calls or said["content"]:
            yield {**said, "toolCalls": calls} if calls else said
    elif any(block.get("type") == "tool_result" for block in blocks):
        results = [block for block in blocks if block.get("type") == "tool_result"]
        yield from (_result(event.id, block) for block in results if block["content"] != PENDING)
    elif not is_feedback(entry.message):
        parts = [part for block in blocks if (part := _part(block)) is not None]
        plain = all(part["type"] == "text" for part in parts)
        yield {"id": event.id, "role": "user", "content": text if plain else parts}


def _arguments(call: Json) -> str:
    return json.dumps(call.get("input") or {}, ensure_ascii=False)


def _result(id: str, block: Json) -> Json:
    text = listed.text_of(parts_of(block["content"]))
    message = {"id": id, "role": "tool", "toolCallId": str(block["tool_use_id"]), "content": text}
    return {**message, "error": text} if block.get("is_error") else message


def _part(block: Json) -> Json | None:
    """Return a block of a user's message as a part; None for what the protocol has no part for."""
    if block.get("type") == "text":
        return {"type": "text", "text": str(block.get("text", ""))}
    file = file_of(block)
    if file is None:
        return None
    media_type, data, url = file
    source: Json = {"type": "url", "value": url}
    if data is not None:
        source = {"type": "data", "value": data}
        media_type = media_type or "application/octet-stream"
    return {"type": block["type"], "source": {**source, **({"mimeType": media_type} if media_type else {})}}


def _entries(message: Json) -> list[Entry]:
    """Return what a front end's message is in a session; nothing for reasoning and activities."""
    content, role = message.get("content"), message["role"]
    said: Json
    if role in ("system", "developer"):
        # Before all messages, which no compaction takes away.
        data = {**context(str(content or "")), "placement": "prefix"}
        return [Entry("", None, 0, kinds.CONTEXT_ADDED, data)]
    if role == "user":
        said = {"role": role, "content": _content(content)}
    elif role == "assistant":
        said = {"role": role, "content": content or ""}
        calls = [
            {"id": call["id"], "type": "function", "function": dict(call["function"])}
            for call in message.get("toolCalls") or ()
        ]
        if calls:
            said["tool_calls"] = calls
        elif not content:
            return []
    elif role == "tool":
        said = {"role": role, "tool_call_id": message["toolCallId"], "content": _content(content)}
        if message.get("error"):
            said["is_error"] = True
    else:
        return []
    return [Entry("", None, 0, kinds.MESSAGE_ADDED, said)]


def _content(content: Any) -> Any:
    if not isinstance(content, list):
        return str(content or "")
    blocks = []
    for part in content:
        if part["type"] == "text":
            blocks.append({"type": "text", "text": part["text"]})
        elif part["source"]["type"] in ("data", "url"):
            source = part["source"]
            key = "data" if source["type"] == "data" else "url"
            blocks.append(media(part["type"], source.get("mimeType"), **{key: source["value"]}))
    return alone(blocks)


def _without(message: Json, *keys: str) -> Json:
    return {key: value for key, value in message.items() if key not in keys}
