"""Ollama's own API, over a client of OpenAI's SDK: a reply is JSON, a streamed one JSON in lines.

Spec: 07 §1.19.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import openai

from harnpy.faults import OptionError
from harnpy.formats.schemas import SERVICE, spelled
from harnpy.llm.call_options import JSON_OBJECT, JSON_SCHEMA
from harnpy.llm.dialects import OLLAMA
from harnpy.llm.native_tools import openai_choice, openai_tool
from harnpy.llm.providers.openai_compatible import SAMPLING, Ids, OpenAIProvider, with_own_ids
from harnpy.llm.providers.remote import Answer, count, expect_dict, expect_list
from harnpy.llm.providers.service_errors import MalformedReply, ServiceError
from harnpy.llm.providers.streamed_calls import StreamedCalls
from harnpy.llm.request_messages import FILES, IMAGES, as_words, result_text, source_of, turns

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

    from harnpy.llm.request import Request
    from harnpy.llm.request_messages import Block, Origin

    Message = dict[str, Any]

_ROLES = {"system": "system", "developer": "system", "assistant": "assistant"}
#: The key of a stored message that holds what Ollama calls `thinking`, which is an option elsewhere.
_THOUGHT = "reasoning"
#: How Ollama, unless told otherwise, leaves out messages in silence where its window is too small.
_LOSSES = ("truncate", "shift")
_NOT_TAKEN = ": Ollama has only text, and images as base64"


class OllamaProvider(OpenAIProvider):
    dialect = OLLAMA
    path = "/api/chat"

    @property
    def stream_class(self) -> Any:
        return _Lines

    def body(self, request: Request) -> dict[str, Any]:
        sampling = {key: request.sampling[key] for key in SAMPLING if key in request.sampling}
        body: dict[str, Any] = {
            "model": request.model,
            "messages": list(_messages(request, self.origin(request))),
            **{key: self.config.extra_body.get(key, False) for key in _LOSSES},
            "options": {"num_predict": request.max_tokens, **sampling},
        }
        if request.output.kind == JSON_OBJECT:
            body["format"] = "json"
        elif request.output.kind == JSON_SCHEMA and request.output.schema is not None:
            body["format"] = spelled(request.output.schema, SERVICE)
        if request.thinking["mode"] != "disabled":
            body["think"] = request.thinking.get("level", True)
        if request.tools and _may_call(request.tool_choice):
            body["tools"] = [openai_tool(tool, OLLAMA) for tool in request.tools]
        return body

    def new_answer(self) -> Answer:
        return _Chat()


def _may_call(choice: Any) -> bool:
    """Return whether the model may call tools. Raises `OptionError` for what only other services have."""
    made = "auto" if choice is None else openai_choice(choice)
    if made not in ("auto", "none"):
        raise OptionError('tool_choice: Ollama has "auto" and "none"')
    return made == "auto"


def _messages(request: Request, reader: Origin) -> Iterator[Message]:
    if request.system:
        yield {"role": "system", "content": request.system}
    names: dict[str, str] = {}
    ids = Ids(OLLAMA)
    for turn in turns(request.messages, reader):
        for result in turn.of("tool_result"):
            id, content = result["tool_use_id"], result["content"]
            name = OLLAMA.name_of(names.get(id, "unknown"))
            said = [{"type": "text", "text": content}] if isinstance(content, str) else content
            yield {"role": "tool", "tool_name": name, "tool_call_id": ids.of(id), **_content(said)}
        calls, said = turn.of("tool_use"), turn.without("tool_use", "tool_result")
        if not (said or calls) and turn.blocks:
            continue
        message = {"role": _ROLES.get(turn.role, "user"), **_content(said)}
        if _THOUGHT in turn.more:
            message["thinking"] = turn.more[_THOUGHT]
        if calls:
            message["tool_calls"] = [_call(call, index, ids) for index, call in enumerate(calls)]
            names |= {call["id"]: call["name"] for call in calls}
        yield message
    if request.prefill:
        yield {"role": "assistant", "content": request.prefill}


def _content(blocks: list[Block]) -> Message:
    """Return the keys of a message that hold blocks: the texts in one, and beside it images."""
    data = [source_of(block).data if block.get("type") in IMAGES else None for block in blocks]
    told = [
        as_words(block, _NOT_TAKEN) if block.get("type") in FILES else block
        for block, image in zip(blocks, data, strict=True)
        if not image
    ]
    images = list(filter(None, data))
    return {"content": result_text(told, _NOT_TAKEN), **({"images": images} if images else {})}


def _call(call: Block, index: int, ids: Ids) -> Message:
    function = {"index": index, "name": OLLAMA.name_of(call["name"]), "arguments": call["input"]}
    return {"id": ids.of_call(call), "function": function}


async def json_lines(pieces: AsyncIterator[bytes]) -> AsyncGenerator[Any]:
    """Yield the values of lines that come in any pieces. Raises ValueError for a line that is no JSON."""
    begun: list[bytes] = []
    async for piece in pieces:
        end, *begins = piece.split(b"\n")
        begun.append(end)
        for begin in begins:
            if line := b"".join(begun).strip():
                yield json.loads(line)
            begun = [begin]
    if line := b"".join(begun).strip():
        yield json.loads(line)


class _Lines(openai.AsyncStream[object]):
    async def __stream__(self) -> AsyncIterator[object]:
        try:
            async with aclosing(json_lines(self.response.aiter_bytes())) as values:
                async for value in values:
                    yield value
        finally:
            await self.response.aclose()


class _Chat(Answer):
    """A reply, whose calls come whole."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = StreamedCalls()

    def add(self, chunk: Any) -> str:
        part = expect_dict(chunk)
        if part.get("error"):
            raise ServiceError(part)
        self.model = part.get("model") or self.model
        message = part.get("message")
        text = self._say(message) if isinstance(message, dict) else ""
        if part.get("done"):
            self.stop_reason = part.get("done_reason") or "stop"
            self.input_tokens = count(part, "prompt_eval_count")
            self.output_tokens = count(part, "eval_count")
        return text

    def take(self, body: Any) -> None:
        self.add(body)
        if "message" not in body:
            raise MalformedReply("a reply without a message")
        self.stop_reason = self.stop_reason or "stop"

    def calls(self) -> list[dict[str, Any]]:
        return with_own_ids(self._calls.calls(self.is_cut), bool)

    def more(self) -> dict[str, Any]:
        return {_THOUGHT: "".join(self.thinking)} if self.thinking else {}

    def _say(self, message: Message) -> str:
        self._calls.add_whole([expect_dict(call) for call in expect_list(message.get("tool_calls"))])
        if thought := message.get("thinking"):
            self.thinking.append(str(thought))
        text = str(message.get("content") or "")
        self.text.append(text)
        return text
