"""A session as its client sees it in the Agent Client Protocol: messages and tool calls as updates.

Pure, but for `Outbox` and `Following`, which send them in order. Spec: 11 §4.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from acp import helpers, schema

from harnpy.formats.json import JsonError, compact_json, parse_json
from harnpy.formats.tool_messages import results_of
from harnpy.llm.text_format import visible_text
from harnpy.session import events as kinds
from harnpy.session.chunks import Chunk
from harnpy.session.errors import InvalidArgument
from harnpy.session.messages import is_feedback

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from acp.interfaces import Client

    from harnpy.session.aio import AsyncLiveWatch
    from harnpy.session.events import Event

    Update = Any
    Message = dict[str, Any]

#: The tools that harnpy brings, as editors sort them.
_KINDS: Final[dict[str, schema.ToolKind]] = {
    "bash": "execute",
    "read_file": "read",
    "list_directory": "read",
    "write_file": "edit",
    "todo_write": "think",
}
_TASKS: Final = "tasks"


class OpenCall:
    """A call that was announced: its id in the protocol, which no other call of the session has."""

    def __init__(self, id: str, name: str, arguments: Any) -> None:
        self.id = id
        self.name = name
        self.arguments = arguments

    @property
    def kind(self) -> schema.ToolKind:
        return _KINDS.get(self.name, "other")

    def start(self) -> Update:
        return helpers.start_tool_call(
            self.id, self.name, kind=self.kind, status="pending", raw_input=self.arguments
        )


class Updates:
    """Makes updates of what a session tells: of its events, and of the pieces of an answer before its
    message."""

    def __init__(self) -> None:
        #: The announced calls that have no end yet, by the ids that the model gave them.
        self.open: dict[str, OpenCall] = {}
        self._is_shown = False

    def of(self, event: Event | Chunk) -> Iterator[Update]:
        """Return the updates that an event or a piece comes to."""
        if isinstance(event, Chunk):
            self._is_shown = True
            yield helpers.update_agent_message_text(event.text)
            return
        data = event.body if event.type == kinds.MESSAGE_ADDED else event.data
        if event.type == kinds.MESSAGE_ADDED:
            yield from self._of_message(data, event.seq)
        elif event.type == kinds.TOOL_STARTED:
            call = self.open.get(data["id"])
            if call is None:  # one in text format, which no message lists
                call = self._announced(data["id"], data["tool"], _read(data.get("args")), event.seq)
                yield call.start()
            yield helpers.update_tool_call(call.id, status="in_progress")
        elif event.type == kinds.TOOL_COMPLETED:
            yield from self._ended(data["id"], data.get("error") or data.get("output"), "error" in data)
        elif event.type == kinds.REGISTER_SET and data.get("key") == _TASKS:
            yield _plan(data.get("value") or [])

    def past(self, events: Sequence[Event]) -> Iterator[Update]:
        """Return the updates that tell what has been: of the messages alone, the user's included."""
        for event in events:
            message = event.body
            if message.get("role") == "user" and results_of(message) is None:
                if is_feedback(message):
                    continue  # what the loop told its model is no prompt of the user's
                for block in _shown(message.get("content")):
                    yield helpers.update_user_message(block)
            else:
                yield from self._of_message(message, event.seq)
        yield from self.abandoned()

    def abandoned(self) -> Iterator[Update]:
        """Return the updates that end the calls which have no end."""
        for id in list(self.open):
            yield from self._ended(id, "cancelled", True)

    def named(self, tool: str, arguments: Any) -> OpenCall | None:
        """Return the announced call that an approval is about, None for one that is about none."""
        same = [call for call in self.open.values() if call.name == tool]
        return next((call for call in same if call.arguments == arguments), None)

    def _of_message(self, message: Message, seq: int) -> Iterator[Update]:
        if message.get("role") == "assistant":
            for thought in _thoughts(message):
                yield helpers.update_agent_thought_text(thought)
            is_shown, self._is_shown = self._is_shown, False
            for block in _shown(message.get("content"), visible_text):
                if not is_shown or block.type != "text":
                    yield helpers.update_agent_message(block)
            for id, name, arguments in _calls(message):
                yield self._announced(id, name, arguments, seq).start()
        for id, content, failed in _results(message):
            yield from self._ended(id, content, failed)

    def _announced(self, id: str, name: str, arguments: Any, seq: int) -> OpenCall:
        call = self.open[id] = OpenCall(f"{seq}:{id}", name, arguments)
        return call

    def _ended(self, id: str, output: Any, failed: bool) -> Iterator[Update]:
        call = self.open.pop(id, None)
        if call is None:
            return  # it had its end already
        content = [helpers.tool_content(block) for block in _shown(output)]
        yield helpers.update_tool_call(
            call.id, status="failed" if failed else "completed", content=content, raw_output=output
        )


def _thoughts(message: Message) -> Iterator[str]:
    """Return what a message says of the model's thinking, as far as people can read it."""
    blocks = [*_blocks(message.get("content")), *_blocks(message.get("thinking_blocks"))]
    said = [message.get(key) for key in ("reasoning", "reasoning_content")]
    said += [block.get("thinking") for block in blocks if block.get("type") == "thinking"]
    yield from dict.fromkeys(text for text in said if isinstance(text, str) and text)


def _calls(message: Message) -> Iterator[tuple[str, str, Any]]:
    """Return the calls of an assistant's message: id, name, arguments."""
    for call in message.get("tool_calls") or ():
        function = call.get("function") or call
        yield str(call.get("id")), str(function.get("name")), _read(function.get("arguments"))
    for block in _blocks(message.get("content")):
        if block.get("type") in ("tool_use", "tool_call"):
            arguments = block.get("input", block.get("arguments"))
            yield str(block.get("id")), str(block.get("name")), _read(arguments)


def _results(message: Message) -> Iterator[tuple[str, Any, bool]]:
    """Return the results that a message holds: the call's id, the content, whether it is a failure."""
    ids = results_of(message)
    if ids is None:
        return
    held = [message] if message.get("role") != "user" else _blocks(message.get("content"))
    results = [each for each in held if each is message or each.get("type") == "tool_result"]
    for id, result in zip(ids, results, strict=True):
        content = result.get("content")
        is_failure = result.get("is_error") is True or str(content).startswith("Error:")
        yield str(id), content, is_failure


def _read(arguments: Any) -> Any:
    """Return arguments as JSON, a text that is none as it is."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return parse_json(arguments)
    except JsonError:
        return arguments


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _shown(content: Any, visible: Any = str) -> Iterator[Any]:
    """Return what a client shows of a content: texts and images."""
    if content is None or content == "":
        return
    if not isinstance(content, list):
        text = visible(content if isinstance(content, str) else compact_json(content))
        if text:
            yield helpers.text_block(text)
        return
    for block in _blocks(content):
        if block.get("type") == "text" and visible(block.get("text", "")):
            yield helpers.text_block(visible(block["text"]))
        elif block.get("type") == "image" and isinstance(block.get("base64"), str):
            yield helpers.image_block(block["base64"], block.get("media_type", "image/png"))


def _plan(tasks: list[dict[str, str]]) -> Update:
    return helpers.update_plan(
        helpers.plan_entry(task["content"], status=task.get("status", "pending"))  # type: ignore[arg-type]
        for task in tasks
    )


# What a client sends, as the content of a message.


def content_of(blocks: Sequence[Any]) -> str | list[dict[str, Any]]:
    """Return a prompt's blocks as a message's content. Raises `InvalidArgument` for what no model gets."""
    content = [_block_of(block) for block in blocks]
    if not content:
        raise InvalidArgument("session/prompt: `prompt` is empty")
    if len(content) == 1 and content[0]["type"] == "text":
        return str(content[0]["text"])
    return content


def _block_of(block: Any) -> dict[str, Any]:
    if isinstance(block, schema.TextContentBlock):
        return _text(block.text)
    if isinstance(block, schema.ResourceContentBlock):
        return _text(f"[{block.name}]({block.uri})")
    if isinstance(block, schema.ImageContentBlock):
        return _image(block.data, block.mime_type)
    if isinstance(block, schema.EmbeddedResourceContentBlock):
        held = block.resource
        if isinstance(held, schema.TextResourceContents):
            return _text(f'<resource uri="{held.uri}">\n{held.text}\n</resource>')
        if (held.mime_type or "").startswith("image/"):
            return _image(held.blob, held.mime_type)
        what = f"a resource of type {held.mime_type or 'unknown'}"
    else:
        what = f"a block of type {getattr(block, 'type', type(block).__name__)}"
    raise InvalidArgument(f"session/prompt: {what} can't be sent to a model: send texts, images, or links")


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image(data: str, media_type: str | None) -> dict[str, Any]:
    return {"type": "image", "base64": data, "media_type": media_type or "image/png"}


# The updates of one session, on their way to the client.


class Outbox:
    """Sends the updates of a session one after the other, in the order in which they were put."""

    def __init__(self, client: Client, session_id: str) -> None:
        self._client = client
        self._session_id = session_id
        self._waiting: asyncio.Queue[Update | asyncio.Future[None]] = asyncio.Queue()
        self._sending = asyncio.create_task(self._send())

    def put(self, *updates: Update) -> None:
        """Have updates sent; nobody waits for a client that is slow."""
        for update in updates:
            self._waiting.put_nowait(update)

    async def sent(self) -> None:
        """Wait until everything is sent that was put, or nothing is any more."""
        reached = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait(reached)
        await asyncio.wait([reached, self._sending], return_when=asyncio.FIRST_COMPLETED)

    async def close(self) -> None:
        """Send nothing more."""
        self._sending.cancel()
        await asyncio.wait([self._sending])

    async def _send(self) -> None:
        while True:
            item = await self._waiting.get()
            if isinstance(item, asyncio.Future):
                if not item.done():
                    item.set_result(None)
                continue
            try:
                await self._client.session_update(self._session_id, item)
            except ConnectionError:
                continue  # the client has gone, and so will the session


class Following:
    """Puts what a session tells behind event number ``seen`` into an outbox, as it comes: an async context
    manager."""

    def __init__(self, watch: AsyncLiveWatch, seen: int, updates: Updates, outbox: Outbox) -> None:
        self._watch = watch
        self.updates = updates
        self._outbox = outbox
        self._seen = seen
        self._news = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._follow())
        return self

    async def __aexit__(self, *error: object) -> None:
        self._watch.close()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def reach(self, seq: int) -> None:
        """Wait until the event of that number is in the outbox. Raises what the watch raises."""
        while self._seen < seq:
            if self._task.done():
                await self._task
                return
            self._news.clear()
            await self._news.wait()

    async def _follow(self) -> None:
        try:
            async for told in self._watch:
                self._outbox.put(*self.updates.of(told))
                if not isinstance(told, Chunk):
                    self._seen = told.seq
                self._news.set()
        finally:
            self._news.set()
