"""OpenAI's Responses API. The service stores nothing: what it wants back goes along. Spec: 07 §1.19."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import OptionError
from harnpy.formats.json import ordered_json, without_nulls
from harnpy.formats.schemas import SERVICE, spelled
from harnpy.llm.call_options import JSON_OBJECT, JSON_SCHEMA
from harnpy.llm.dialects import RESPONSES
from harnpy.llm.native_tools import is_own, openai_choice, openai_tool
from harnpy.llm.providers.openai_compatible import OpenAIProvider, is_strict
from harnpy.llm.providers.remote import Answer, count, expect_dict, expect_list
from harnpy.llm.providers.service_errors import ServiceError
from harnpy.llm.request_messages import (
    FILES,
    as_words,
    file_of,
    read_arguments,
    source_of,
    turns,
    without_mark,
    written_call,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.llm.call_options import Output
    from harnpy.llm.request import Request
    from harnpy.llm.request_messages import Block, Turn

    Item = dict[str, Any]

_SAMPLING = ("temperature", "top_p")
#: Options of chat completions that this API doesn't have.
_UNKNOWN = ("frequency_penalty", "presence_penalty", "top_k", "seed", "stop")
#: What an item of the service's own brings that must come back with it.
_INCLUDED = ["reasoning.encrypted_content"]
#: The key of a block that holds what its item has beside text, name and arguments.
_ITEM = "item"
#: The type of the item of a call whose arguments are a text (10 §C17).
_CUSTOM = "custom_tool_call"


class ResponsesProvider(OpenAIProvider):
    dialect = RESPONSES
    path = "/responses"

    def body(self, request: Request) -> dict[str, Any]:
        for option in _UNKNOWN:
            if option in request.sampling:
                raise OptionError(f"option `{option}` is none of OpenAI's Responses API")
        reader = self.origin(request)
        said = turns(request.messages, reader)
        custom: set[str] = set()
        body: dict[str, Any] = {
            "model": request.model,
            # SDKs write keys that are null, and the service refuses some of them.
            "input": without_nulls([item for turn in said for item in _items(turn, custom)]),
            "max_output_tokens": request.max_tokens,
            "store": False,
            "include": _INCLUDED,
            **{key: request.sampling[key] for key in _SAMPLING if key in request.sampling},
            **_reasoning(request.thinking),
            **_format(request.output),
        }
        if request.system:
            body["instructions"] = request.system
        if request.prefill:
            body["input"].append(_message("assistant", request.prefill))
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
            if request.tool_choice is not None:
                body["tool_choice"] = _choice(request.tool_choice)
        return body

    def new_answer(self) -> Answer:
        return _Response()


def _reasoning(thinking: dict[str, Any]) -> dict[str, Any]:
    mode = thinking["mode"]
    if mode == "disabled":
        return {}
    effort = thinking["level"] if mode == "effort" else "medium"
    return {"reasoning": {"effort": effort, "summary": "auto"}}


def _format(output: Output) -> dict[str, Any]:
    if output.kind == JSON_OBJECT:
        return {"text": {"format": {"type": "json_object"}}}
    if output.kind != JSON_SCHEMA or output.schema is None:
        return {}
    schema = spelled(output.schema, SERVICE)
    form = {"type": "json_schema", "name": "output", "schema": schema}
    return {"text": {"format": {**form, "strict": output.strict and is_strict(schema)}}}


def _tool(tool: Item) -> Item:
    made = openai_tool(tool, RESPONSES)
    return made if is_own(tool) else {"type": "function", **made["function"], "strict": False}


def _choice(choice: Any) -> Any:
    made = openai_choice(choice)
    return {"type": "function", **made["function"]} if isinstance(made, dict) and "function" in made else made


def _items(turn: Turn, custom: set[str]) -> Iterator[Item]:
    """A turn as items of an input, in its order; ``custom`` are the ids of the custom calls so far."""
    if turn.role != "assistant":
        results = turn.of("tool_result")
        for result in results:
            id = RESPONSES.id_of(result["tool_use_id"])
            output = result["content"]
            if isinstance(output, list):
                output = list(map(_input, output))
            called = _CUSTOM if id in custom else "function_call"
            yield {"type": f"{called}_output", "call_id": id, "output": output}
        said = turn.without("tool_result")
        if said or not results:
            role = turn.role if turn.role in ("system", "developer") else "user"
            yield _message(role, list(map(_input, said)))
        return
    told: Item | None = None
    for block in turn.blocks:
        kind = block.get("type")
        item: Item | None = block.get(_ITEM)
        if kind == "text" and item is None:
            if block["text"]:
                yield _message("assistant", block["text"])
        elif kind == "text" and item is not None:
            content = block["content"]
            content = content if "refusal" in content else {"text": block["text"], **content}
            if told is None or told.get("id") != item.get("id"):
                told = {**_message("assistant", []), **item}
                yield told
            told["content"].append(content)
            continue
        told = None
        if kind == "tool_use":
            yield _call(block, custom)
        elif kind != "text":
            yield block


def _call(block: Block, custom: set[str]) -> Item:
    """A call as the item that it was. One of the service's shell, which no request has, is a function's."""
    id, name, given = RESPONSES.id_of(block["id"]), RESPONSES.name_of(block["name"]), block["input"]
    own = block.get("more", {}).get(_ITEM, {})
    if own.get("type") == _CUSTOM and given.keys() == {"input"}:
        custom.add(id)
        return {**own, "call_id": id, "name": name, **given}
    own = {} if "type" in own else own
    return {**own, "type": "function_call", "call_id": id, "name": name, "arguments": ordered_json(given)}


def _message(role: str, content: str | list[Block]) -> Item:
    return {"type": "message", "role": role, "content": content}


def _input(block: Block) -> Block:
    """A block of a user's as the service has it."""
    block = without_mark(block)
    if block.get("type") in FILES and block["type"] != "input_file":
        block = _file(block)
    if block.get("type") == "text":
        return {"type": "input_text", "text": block["text"]}
    if block.get("type") not in ("image", "image_url"):
        return block
    url = source_of(block).as_url()
    return {"type": "input_image", "image_url": url, "detail": block.get("detail") or "auto"}


_NO_FILE = ": the Responses API takes documents"


def _file(block: Block) -> Block:
    """A document as the service has it; words in the place of another file."""
    file = file_of(block)
    if file is None or file.kind != "document" or file.text() is not None:
        return as_words(block, _NO_FILE)
    if file.url is not None:
        return {"type": "input_file", "file_url": file.url}
    return {"type": "input_file", "filename": file.called(), "file_data": file.as_url()}


class _Response(Answer):
    """A response: its items, and the pieces of the arguments of each call that comes."""

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[int, Item] = {}
        self._arguments: dict[int, list[str]] = {}
        self._told: set[int] = set()

    def add(self, chunk: Any) -> str:
        event = expect_dict(chunk)
        index = event.get("output_index", 0)
        match event.get("type"):
            case "response.output_item.added":
                self._items[index] = expect_dict(event.get("item"))
            case "response.output_item.done":
                return self._done(index, expect_dict(event.get("item")))
            case "response.output_text.delta" | "response.refusal.delta":
                self._told.add(index)
                return self._say(event.get("delta"))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self.thinking.append(str(event.get("delta") or ""))
            case "response.function_call_arguments.delta":
                self._arguments.setdefault(index, []).append(str(event.get("delta") or ""))
            case "response.completed" | "response.incomplete" | "response.failed":
                return self._end(expect_dict(event.get("response")))
            case "error":
                raise ServiceError(event.get("error") or event)
        return ""

    def take(self, body: Any) -> None:
        response = expect_dict(body)
        self._end(response)
        for item in self._items.values():
            if item.get("type") == "reasoning":
                self.thinking += _texts(item.get("summary")) + _texts(item.get("content"))

    def calls(self) -> list[dict[str, Any]]:
        return [
            written_call(
                str(item.get("call_id") or item.get("id") or ""),
                str(item.get("name")),
                self._written(index),
                self.is_cut and item.get("status") != "completed",
            )
            for index, item in self._ordered()
            if item.get("type") == "function_call"
        ]

    def parts(self) -> list[Block]:
        return [part for index, item in self._ordered() for part in self._blocks(index, item)]

    def refusal(self) -> str:
        parts = [part for _, item in self._ordered() for part in item.get("content") or ()]
        return "".join(str(part["refusal"]) for part in parts if isinstance(part, dict) and "refusal" in part)

    def _ordered(self) -> list[tuple[int, Item]]:
        return sorted(self._items.items())

    def _written(self, index: int) -> str:
        return str(self._items[index].get("arguments") or "") or "".join(self._arguments.get(index, ()))

    def _blocks(self, index: int, item: Item) -> Iterator[Block]:
        kind = item.get("type")
        if kind == "function_call":
            id = str(item.get("call_id") or item.get("id") or "")
            given = read_arguments(self._written(index))
            own = {_ITEM: own} if (own := _own(item)) else {}
            yield {"type": "tool_use", "id": id, "name": str(item.get("name")), "input": given, **own}
        elif kind == "message":
            for content in expect_list(item.get("content")):
                text = content.get("text", content.get("refusal", ""))
                more = {key: value for key, value in content.items() if key != "text"}
                yield {"type": "text", "text": str(text), "content": more, _ITEM: _own(item)}
        else:
            yield item

    def _done(self, index: int, item: Item) -> str:
        self._items[index] = item
        if item.get("type") != "message" or index in self._told:
            return ""
        self._told.add(index)
        return "".join(self._say(text) for text in _texts(item.get("content")))

    def _end(self, response: Item) -> str:
        if response.get("error"):
            raise ServiceError(response["error"])
        self.model = response.get("model")
        self._count(response.get("usage"))
        said = "".join(
            self._done(index, expect_dict(item))
            for index, item in enumerate(expect_list(response.get("output")))
        )
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        self.stop_reason = reason or response.get("status") or "completed"
        return said

    def _say(self, text: Any) -> str:
        if not isinstance(text, str):
            return ""
        self.text.append(text)
        return text

    def _count(self, usage: Any) -> None:
        details = usage.get("input_tokens_details") if isinstance(usage, dict) else None
        self.input_tokens = count(usage, "input_tokens")
        self.output_tokens = count(usage, "output_tokens")
        self.cache_read = count(details, "cached_tokens")


def _own(item: Item) -> Item:
    """Return what an item has that is written anew neither of a text nor of a call."""
    known = ("type", "role", "content", "call_id", "name", "arguments")
    return {key: value for key, value in item.items() if key not in known}


def _texts(parts: Any) -> list[str]:
    found = [part.get("text", part.get("refusal")) for part in parts or () if isinstance(part, dict)]
    return [text for text in found if isinstance(text, str)]
