"""Chats of front ends that stand on Vercel's AI SDK: `ChatApp`, an ASGI application. Spec: 10 §C20.

A chat is a session. It is kept as the UIMessages of version 6 of npm's ``ai``, and an agent of harnpy answers
in its UI message stream. No extra is needed.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from harnpy.adapters.front_ends import (
    PENDING,
    Item,
    WithTools,
    check_agent,
    drop_pending,
    ensure,
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
from harnpy.session.errors import SessionNotFound
from harnpy.session.events import EventDraft
from harnpy.session.registers import DELETED
from harnpy.session.runtime import SessionQuery
from harnpy.session.transfer import ai_sdk, listed, originals
from harnpy.session.transfer.blocks import as_text, parts_of
from harnpy.storage import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from harnpy.adapters.front_ends import SessionId
    from harnpy.adapters.json_app import Events, Request
    from harnpy.agent.factory import Tool
    from harnpy.session.events import Event
    from harnpy.session.log import Session
    from harnpy.session.runtime import SessionRuntime
    from harnpy.session.transaction import Txn
    from harnpy.session.transfer.foreign import Entry

    Json = dict[str, Any]
    #: Has a session go along with messages, and returns those that are new.
    Merge = Callable[[Session, Sequence[Item], Sequence[Json]], Sequence[Json]]

_ROLES = ("system", "user", "assistant")
#: What tells `ai` that a response is a stream of it.
_HEADERS = {"x-vercel-ai-ui-message-stream": "v1"}
#: The states in which a call has a result.
_DONE = ("output-available", "output-error")


class ChatApp(JsonApp):
    """Keeps chats, and with an ``agent`` answers in them.

    | Request | Does |
    |---|---|
    | ``POST /`` ``{id, messages}`` or ``{id, message}`` | adds what is new, runs the agent, streams |
    | ``GET /`` | ``{chats: [{id, createdAt, updatedAt}], next}``, the newest first; ``?after=`` goes on |
    | ``GET /ID`` | the chat's UIMessages |
    | ``PUT /ID`` UIMessages | makes them the chat's: what isn't among them any more is taken back |
    | ``POST /ID`` a UIMessage, or some | adds them |
    | ``DELETE /ID`` | hides the chat |
    | ``GET /ID/stream`` | nothing: no stream is resumed |

    ``agent`` is an `AgentDef`, which needs a runtime with a `LoopFactory`, or any agent that `send` takes.
    ``tools`` (`front_end_tool`) are run by the front end: a call of one ends the answer, and its output comes
    with the next messages. ``session_id(scope, id)`` names a chat's session: the chat's id stands at its
    end, and lists show those whose ids begin as the rest does; by default it is the chat's id, whoever asks.
    Wrap the application in `BearerAuth`: it lets everybody in.
    """

    def __init__(
        self,
        runtime: SessionRuntime,
        agent: Any = None,
        *,
        tools: Sequence[Tool] = (),
        session_id: SessionId = lambda scope, id: id,
        max_body: int = MAX_BODY,
    ) -> None:
        super().__init__(max_body=max_body)
        check_agent(runtime, agent, "ChatApp")
        self._runtime = AsyncSessionRuntime(runtime)
        self._agent = WithTools(agent, runtime.agents, tools) if isinstance(agent, AgentDef) else agent
        self._definition = agent
        self._session_id = session_id

    async def handle(self, request: Request, events: Callable[..., Events]) -> Any:
        path = "/".join(request.parts)
        if not path:
            if request.only("GET", "POST") == "GET":
                return await self._list(request)
            return await self._chat(request, events)
        chat, _, last = path.rpartition("/")
        if chat and last == "stream" and request.method == "GET":
            return None
        id = self._session_id(request.scope, path)
        method = request.only("GET", "PUT", "POST", "DELETE")
        if method in ("PUT", "POST"):
            given = request.json()
            if isinstance(given, dict):
                given = given.get("messages", [given])
            await self._take_in(id, _checked(given), _replace if method == "PUT" else _add)
            return None
        await self._check(id, path)
        if method == "DELETE":
            return await self._runtime.delete(id)
        return [item.message for item in await self._items(id)]

    async def _items(self, id: str) -> list[Item]:
        session = (await self._runtime.get(id)).session
        return await asyncio.to_thread(session.locked, lambda: items_of(session))

    async def _check(self, id: str, chat: str) -> None:
        """Raise `Problem` unless the chat is there."""
        try:
            info = await self._runtime.info(id)
        except SessionNotFound:
            info = None
        if info is None or info.status == DELETED:
            raise Problem(404, f"there is no chat '{chat}'")

    async def _list(self, request: Request) -> Json:
        before = self._session_id(request.scope, "")
        after = parse_qs(request.scope.get("query_string", b"").decode("latin-1")).get("after", [None])[0]
        if after is not None:
            number, _, rest = after.partition(":")
            after = f"{number}:{before}{rest}"
        chats: list[Json] = []
        while True:
            try:
                page = await self._runtime.list(SessionQuery(after=after))
            except StorageError as error:
                raise Problem(400, "`after` must be what `next` of a list says") from error
            chats += [
                {
                    "id": info.id.removeprefix(before),
                    "createdAt": info.created_at,
                    "updatedAt": info.updated_at,
                }
                for info in page.items
                if info.id.startswith(before)
            ]
            after = page.next
            if after is None:
                return {"chats": chats, "next": None}
            number, _, name = after.partition(":")
            if name.startswith(before):  # no word of where somebody else's chat stands
                return {"chats": chats, "next": f"{number}:{name.removeprefix(before)}"}

    async def _chat(self, request: Request, events: Callable[..., Events]) -> Events:
        given = request.json()
        if self._agent is None:
            raise Problem(404, "there is no agent here: chats are read and written at /ID")
        if not isinstance(given, dict) or not isinstance(given.get("id"), str) or not given["id"]:
            raise Problem(400, "the body must be an object with the chat's `id`, and `messages`")
        is_whole = "messages" in given
        messages = _checked(given["messages"] if is_whole else [given.get("message")])
        id = self._session_id(request.scope, given["id"])
        await self._take_in(id, messages, go_along if is_whole else _add)
        out = events(**_HEADERS)
        answer = _Answer(await self._items(id), is_loop=isinstance(self._definition, AgentDef))
        try:
            async with aclosing(turn(self._runtime, id, self._agent)) as happening:
                async for what in happening:
                    for chunk in answer.chunks(what):
                        await out.put(chunk)
        except Exception as error:
            why = str(error) if isinstance(error, Fault) else "the agent failed"
            for chunk in (*answer.closed(), {"type": "error", "errorText": why}):
                await out.put(chunk)
            if not isinstance(error, Fault):
                raise
        await out.put("[DONE]")
        return out

    async def _take_in(self, id: str, messages: list[Json], merge: Merge) -> None:
        """Add what is new. Raises what appending raises."""
        await ensure(self._runtime, id, self._definition)

        def take(session: Txn) -> None:
            session.strict = False  # what a front end holds is what was said
            items = items_of(session)
            outputs = _outputs(items, messages)
            new = merge(session, items, messages)
            drop_pending(session, [draft.data["tool_call_id"] for draft in outputs])
            session.append(*outputs, *originals.drafts(ai_sdk.TOOL, new, _entries))

        await self._runtime.execute(id, take, retries=5)


def _replace(session: Session, items: Sequence[Item], given: Sequence[Json]) -> Sequence[Json]:
    return go_along(session, items, given, is_whole=True)


def _add(session: Session, items: Sequence[Item], given: Sequence[Json]) -> Sequence[Json]:
    """Return the messages that aren't there. Raises `Problem` for one that is there with other words."""
    known = {item.message["id"]: item for item in items}
    for message in given:
        item = known.get(message["id"])
        if item is not None and item.is_own and item.message != message:
            raise Problem(409, f"message '{message['id']}' is there with other words: PUT the whole chat")
    return [message for message in given if message["id"] not in known]


def items_of(session: Session) -> list[Item]:
    """Return the conversation as a front end has it: all of it, also behind a compaction."""
    shown = [entry for entry in told(session) if entry.message.get("content") != PENDING]
    items = []
    for written in ai_sdk.messages_of(shown, Counter()):
        events = [entry.event for entry in written.entries if entry.event is not None]
        if not events:
            continue
        message = written.message
        if not written.is_own and message["role"] == "assistant":
            message = {**message, "parts": [*_seen(session, message["parts"])]}
        items.append(Item(message, events[0], events[-1], written.is_own))
    return items


def _seen(session: Session, parts: Sequence[Json]) -> Iterator[Json]:
    """Yield what people see of parts."""
    for part in parts:
        if part["type"] != "text":
            yield part
        elif text := visible(session, part["text"]):
            yield {**part, "text": text}


def _entries(message: Json) -> Sequence[Entry]:
    return listed.with_prompt(listed.understood(ai_sdk.conversation, json.dumps([message])))


def _checked(messages: Any) -> list[Json]:
    """Return UIMessages. Raises `Problem` for what are none."""
    if not isinstance(messages, list):
        raise Problem(400, "the messages must be a list of UIMessages")
    for number, message in enumerate(messages, 1):
        if not isinstance(message, dict) or not isinstance(message.get("id"), str) or not message["id"]:
            raise Problem(400, f"message {number} must be an object with an `id`")
        if message.get("role") not in _ROLES:
            raise Problem(400, f"message {number}: `role` must be system, user or assistant")
        parts = message.get("parts")
        if not isinstance(parts, list) or not all(_is_part(part) for part in parts):
            raise Problem(400, f"message {number}: `parts` must be a list of objects with a `type`")
    if len({message["id"] for message in messages}) < len(messages):
        raise Problem(400, "two of the messages have the same `id`")
    return messages


def _is_part(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("type"), str)


def _outputs(items: Sequence[Item], messages: Sequence[Json]) -> list[EventDraft]:
    """Return the results of calls that the agent made and the front end has run, as events."""
    said = {message["id"]: message["parts"] for message in messages}
    found = []
    for item in items:
        if item.is_own or item.message["id"] not in said:
            continue
        # In their order: a service may use an id again.
        calls = [part for part in item.message["parts"] if "toolCallId" in part]
        given = [part for part in said[item.message["id"]] if "toolCallId" in part]
        for call, part in zip(calls, given, strict=False):
            is_open = call.get("state") == "input-available" and call["toolCallId"] == part["toolCallId"]
            if is_open and part.get("state") in _DONE:
                found.append(_output(part))
    return found


def _output(part: Json) -> EventDraft:
    message: Json = {"role": "tool", "tool_call_id": part["toolCallId"]}
    if part["state"] == "output-error":
        message |= {"content": str(part.get("errorText") or ""), "is_error": True}
        return EventDraft(kinds.MESSAGE_ADDED, message)
    output = part.get("output")
    message["content"] = as_text(output)
    return EventDraft(kinds.MESSAGE_ADDED, message, {ai_sdk.OUTPUT: output})


class _Answer:
    """A turn as chunks of a UI message stream."""

    def __init__(self, items: Sequence[Item], *, is_loop: bool) -> None:
        self._is_loop = is_loop
        last = items[-1].message if items else {"role": None}
        #: The message that the answer goes on with; None: it is one of its own.
        self._id: str | None = last["id"] if last["role"] == "assistant" else None
        self._count = 0
        self._text: str | None = None
        self._is_in_step = False
        self._is_pending = False

    def chunks(self, what: str | Event | TurnResult) -> Iterator[Json]:
        """Yield what is told of what happens."""
        if isinstance(what, str):
            yield from self._piece(what)
        elif isinstance(what, TurnResult):
            yield from self.closed()
            yield {"type": "finish", "finishReason": "tool-calls" if self._is_pending else "stop"}
        elif what.type == kinds.TURN_STARTED:
            yield {"type": "start", "messageId": self._id or what.id}
        elif what.type == kinds.STEP_STARTED:
            yield from self.closed()
        elif what.type == kinds.MESSAGE_ADDED:
            yield from self._message(what.body)

    def closed(self) -> Iterator[Json]:
        """Yield the ends of what is open."""
        yield from self._text_end()
        if self._is_in_step:
            self._is_in_step = False
            yield {"type": "finish-step"}

    def _piece(self, text: str) -> Iterator[Json]:
        if self._text is None:
            yield from self._step()
            self._count += 1
            self._text = str(self._count)
            yield {"type": "text-start", "id": self._text}
        yield {"type": "text-delta", "id": self._text, "delta": text}

    def _text_end(self) -> Iterator[Json]:
        if self._text is not None:
            yield {"type": "text-end", "id": self._text}
            self._text = None

    def _step(self) -> Iterator[Json]:
        """Begin a step, unless one is open."""
        if not self._is_in_step:
            self._is_in_step = True
            yield {"type": "start-step"}

    def _message(self, message: Mapping[str, Any]) -> Iterator[Json]:
        blocks = listed.all_blocks_of(dict(message))
        if message["role"] == "assistant":
            text = listed.text_of(block for block in blocks if block.get("type") == "text")
            if text and self._text is None and not self._is_loop:  # which shows all that people see
                yield from self._piece(text)
            yield from self._text_end()
            yield from self._step()
            for call in (block for block in blocks if block.get("type") == "tool_use"):
                named = {"toolCallId": call["id"], "toolName": call["name"]}
                yield {"type": "tool-input-available", **named, "input": call.get("input") or {}}
        for result in (block for block in blocks if block.get("type") == "tool_result"):
            named = {"toolCallId": str(result["tool_use_id"])}
            text = listed.text_of(parts_of(result["content"]))
            if result["content"] == PENDING:
                self._is_pending = True
            elif result.get("is_error"):
                yield {"type": "tool-output-error", **named, "errorText": text}
            else:
                yield {"type": "tool-output-available", **named, "output": text}
