"""Messages in the format of a request, their text, and the content blocks that services receive.

Spec: 07 §1.1–1.2, §2.2, §3, §6.7; 08 §2.1.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import OptionError
from harnpy.formats.json import compact_json, json_problem
from harnpy.formats.media import TEXTS, left_out
from harnpy.formats.tool_messages import late_results_up

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Message = dict[str, Any]
    Block = dict[str, Any]

#: What a conversation begins with whose first message is the assistant's, where the service wants a user's.
LEFT_OUT = "(earlier messages are left out)"


#: Roles of other services, which every provider reads under names of ours.
_FOREIGN = ("model", "function")


def request_message(message: Message) -> Message:
    """A script's message as a request carries it; the same object where nothing needs to change."""
    if message.get("role") == "tool_result":
        content = message.get("content")
        if not isinstance(content, str | list):
            content = compact_json(content)
        result = {"type": "tool_result", "tool_use_id": message.get("tool_use_id"), "content": content}
        if message.get("is_error") is True:
            result["is_error"] = True
        return {"role": "user", "content": [result]}
    if message.get("role") in _FOREIGN or "function_call" in message:
        message = _spelled_as_ours(message)
    if "role" in message and message.get("content") is not None:
        return message
    filled = {"role": "user", **message}
    if filled.get("content") is None:
        filled["content"] = ""
    return filled


def _spelled_as_ours(message: Message) -> Message:
    """Return a message with Gemini's role and parts, or OpenAI's former calls, as every provider reads it."""
    role, call = message.get("role"), message.get("function_call")
    if role == "model":
        said = {key: value for key, value in message.items() if key != "parts"}
        return {"content": message.get("parts"), **said, "role": "assistant"}
    if role == "function":
        named = {key: value for key, value in message.items() if key != "name"}
        return {**named, "role": "tool", "tool_name": message.get("name")}
    if isinstance(call, dict) and "tool_calls" not in message:
        said = {key: value for key, value in message.items() if key != "function_call"}
        return {**said, "tool_calls": [{"type": "function", "function": call}]}
    return message


def request_messages(given: Iterable[Any]) -> list[Message]:
    """The messages of an option; anything but a dict is dropped, and late results move up to their calls."""
    return late_results_up([request_message(message) for message in given if isinstance(message, dict)])


def strings_in(value: Any) -> list[str]:
    """Return every non-empty string found in ``value``; dicts in the order of their keys."""
    found, left = [], [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            if item:
                found.append(item)
        elif isinstance(item, dict):
            left += map(item.__getitem__, sorted(item, reverse=True))
        elif isinstance(item, list):
            left += reversed(item)
    return found


def match_text(messages: list[Message]) -> str:
    """The text that the patterns of mocks are matched with: all strings of all messages, one a line."""
    return "\n".join(strings_in(messages))


def prompt_text(messages: list[Message]) -> str:
    """The text of the last message that has some."""
    for message in reversed(messages):
        text = "\n".join(strings_in(message.get("content")))
        if text.strip():
            return text
    return ""


# Marks up to which a service caches the prompt: ``cache_control`` of a message, a block or a tool. Pure.
#
# A mark is passed on as it is to services that want marks, and to no others. Spec: 07 §1.2.


MARK = "cache_control"
#: What `cache: true` marks with.
EPHEMERAL = {MARK: {"type": "ephemeral"}}
#: The marks that Anthropic takes in one request.
_MOST = 4
_UNMARKABLE = ("thinking", "redacted_thinking")


def mark_of(given: Block) -> Block:
    """The mark of a message, block or tool, as keys of another one. Raises `OptionError`."""
    mark = given.get(MARK)
    if mark is None:
        return {}
    if not isinstance(mark, dict):
        raise OptionError(f'{MARK}: expected a dict {{type: "ephemeral", ttl?}}')
    return {MARK: mark}


def mark_last(blocks: list[Block], mark: Block = EPHEMERAL) -> None:
    """Put a mark on the last of some blocks that can have one."""
    for at in range(len(blocks) - 1, -1, -1):
        if blocks[at].get("type") not in _UNMARKABLE:
            blocks[at] = {**blocks[at], **mark}
            return


def without_mark(block: Block) -> Block:
    return {key: value for key, value in block.items() if key != MARK} if MARK in block else block


def keep_last_marks(parts: Iterable[list[Block]]) -> None:
    """Take away the marks that are too many for one request: the first ones."""
    marked = [(blocks, at) for blocks in parts for at, block in enumerate(blocks) if MARK in block]
    for blocks, at in marked[:-_MOST]:
        blocks[at] = without_mark(blocks[at])


# Messages of any provider in one format: turns of content blocks.
#
# A conversation may hold messages of several providers: it was resumed elsewhere, or a fallback took over.
# The blocks are ``text``, ``image``, ``tool_use {id, name, input}``, ``tool_result {tool_use_id, content,
# is_error?}``, whose content is a text or, with images in it, a list of texts and images, and a service's own
# kinds. What only the service understands that wrote it (thinking with its signature, keys of a message or a
# call) goes back to that one unchanged, and to no other: `origin` says which. A message's mark for the cache
# is on its last block. Pure. Spec: 07 §1.2, §1.17, §3, §6.7.


_CALLS = ("tool_use", "tool_call")
_THINKING = ("thinking", "redacted_thinking")
#: Kinds of blocks that each service is sent, in its own spelling.
_COMMON = (
    *(*TEXTS, *_CALLS, "tool_result"),
    *("image", "image_url", "input_image", "audio", "input_audio", "file", "document"),
)
#: The keys with which chat completions send reasoning, and want it back.
REASONING = ("reasoning_content", "reasoning", "reasoning_details")
#: Dialects whose services have a mark for a result that is a failure.
_MARK_FAILURES = ("anthropic", "gemini")
#: How messages of other programs call a call's arguments.
_ARGUMENTS = ("arguments", "input", "args")
#: The keys of a call that are ours, or are written anew.
CALL_KEYS = frozenset(("id", "type", "name", "function", *_ARGUMENTS, "index", "visibility", "written", MARK))


class Origin(NamedTuple):
    """The service and the model that wrote a message."""

    dialect: str
    base_url: str
    model: str

    def has_written(self, message: Message) -> bool | None:
        """Return whether the message is of this origin; None when nobody knows."""
        known = message.get("origin")
        return known == self._asdict() if isinstance(known, dict) else None


class Turn(NamedTuple):
    """``role`` is as given, except that tool results are the user's. ``more`` are keys of an own message, and
    a call has its own under the same name."""

    role: str
    blocks: list[Block]
    more: Block

    def of(self, *types: str) -> list[Block]:
        return [block for block in self.blocks if block.get("type") in types]

    def without(self, *types: str) -> list[Block]:
        return [block for block in self.blocks if block.get("type") not in types]


def turns(messages: Iterable[dict[str, Any]], reader: Origin) -> Iterator[Turn]:
    """The turns of a conversation for the service that reads them.

    Raises `OptionError` for an image without a source, or a wrong mark.
    """
    waiting = _Waiting()
    for message in messages:
        role = str(message.get("role") or "user")
        if role == "tool":
            id = waiting.answered(message.get("tool_call_id"), message.get("tool_name"))
            yield Turn("user", [_told(_plain_result({**message, "tool_use_id": id}), reader)], {})
            continue
        own = reader.has_written(message)
        given = _readable(_listed(message.get("content")), own, reader)
        blocks = [_told(_block(block, waiting, own), reader) for block in given]
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            blocks += [waiting.call(call, own) for call in calls if isinstance(call, dict)]
        if mark := mark_of(message):
            mark_last(blocks, mark)
        yield Turn(role, blocks, {key: message[key] for key in REASONING if own and key in message})


#: What a message of the system is within the user's turn, and the beginning of what looks like one.
_SYSTEM = "<system_message>\n{}\n</system_message>"
_LIKE_SYSTEM = re.compile(r"<(?=\s*/?\s*system_message\b)", re.IGNORECASE)


def without_systems(said: Iterable[Turn]) -> tuple[list[Turn], list[Turn]]:
    """Return the system's turns that a conversation begins with, and the others, where the system has no turn
    among them: a later one is a marked block of the user's. Nothing that others say passes for one."""
    first: list[Turn] = []
    rest: list[Turn] = []
    for turn in said:
        if turn.role in ("system", "developer"):
            if not rest:
                first.append(turn)
                continue
            text = _SYSTEM.format(_harmless(joined_text(turn.blocks)))
            mark = next(filter(None, map(mark_of, turn.of("text"))), {})
            turn = Turn("user", [{"type": "text", "text": text, **mark}, *turn.without("text")], {})
        elif turn.role != "assistant":
            turn = turn._replace(blocks=list(map(_harmless_block, turn.blocks)))
        rest.append(turn)
    return first, rest


def _harmless(text: str) -> str:
    return _LIKE_SYSTEM.sub("&lt;", text)


def _harmless_block(block: Block) -> Block:
    content = block.get("content")
    if block.get("type") == "text":
        return {**block, "text": _harmless(block["text"])}
    if block.get("type") != "tool_result":
        return block
    said = _harmless(content) if isinstance(content, str) else list(map(_harmless_block, content or ()))
    return {**block, "content": said}


def in_call_order(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Return the turns with results in the order of their calls, for a service that pairs them by name."""
    order: dict[str, int] = {}
    results: list[Turn] = []

    def place(block: Block) -> int:
        return order.get(block.get("tool_use_id", ""), len(order))

    for turn in turns:
        if turn.of("tool_result"):
            results.append(turn._replace(blocks=sorted(turn.blocks, key=place)))
            continue
        yield from sorted(results, key=lambda turn: place(turn.blocks[0]))
        results.clear()
        order |= {block["id"]: len(order) + n for n, block in enumerate(turn.of("tool_use"))}
        yield turn
    yield from sorted(results, key=lambda turn: place(turn.blocks[0]))


def _readable(blocks: list[Any], own: bool | None, reader: Origin) -> list[Any]:
    """Return the blocks without those that the reader doesn't understand. Thinking of unknown origin is
    believed to be of the dialect that has such blocks."""
    if own or (own is None and reader.dialect == "anthropic"):
        return blocks
    if own is None:
        return [
            block for block in blocks if not isinstance(block, dict) or block.get("type") not in _THINKING
        ]
    return [block for block in blocks if not isinstance(block, dict) or block.get("type") in _COMMON]


class _Waiting:
    """The ids of calls: one is made where there is none, and another where an earlier call has the same.
    Results without an id name only the tool, oldest call first."""

    def __init__(self) -> None:
        self._unnamed: dict[str, list[str]] = {}
        self._latest: dict[str, str] = {}
        self._count = 0

    def call(self, call: Block, own: bool | None) -> Block:
        """A tool call of any shape as a ``tool_use`` block."""
        function = call.get("function")
        if not isinstance(function, dict):
            function = call
        name = str(function.get("name"))
        id = call.get("id")
        if not id:
            id = self._new()
            self._unnamed.setdefault(name, []).append(id)
        elif id in self._latest:
            repeated, id = id, self._new()
            self._latest[repeated] = id
        else:
            self._latest[id] = id
        given = next((function[key] for key in _ARGUMENTS if key in function), None)
        block = {"type": "tool_use", "id": id, "name": name, "input": read_arguments(given), **mark_of(call)}
        more = {key: value for key, value in call.items() if own and key not in CALL_KEYS}
        return {**block, "more": more} if more else block

    def answered(self, id: Any, name: Any = None) -> str:
        """Return the id of the call that a result answers."""
        if id:
            return self._latest.get(id, str(id))
        ids = self._unnamed.get(str(name))
        return ids.pop(0) if ids else "call_0"

    def _new(self) -> str:
        id = "call_0"
        while id == "call_0" or id in self._latest:
            self._count += 1
            id = f"call_{self._count}"
        self._latest[id] = id
        return id


def _listed(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [] if content is None else [{"type": "text", "text": _text(content)}]


def _block(block: Any, waiting: _Waiting, own: bool | None) -> Block:
    if not isinstance(block, dict):
        return {"type": "text", "text": _text(block)}
    kind = block.get("type")
    if kind in _CALLS:
        return waiting.call(block, own)
    if own:
        return block
    if kind in TEXTS or (kind is None and isinstance(block.get("text"), str)):
        return {"type": "text", "text": _text(block.get("text", "")), **mark_of(block)}
    if kind == "tool_result":
        return _plain_result({**block, "tool_use_id": waiting.answered(block.get("tool_use_id"))})
    if (
        kind == "image"
        and not isinstance(block.get("source"), dict)
        and (block.get("base64") is None) == (block.get("url") is None)
    ):
        raise OptionError("image block: expected exactly one of `base64`, `url`")
    return block


def _plain_result(block: Block) -> Block:
    """A tool's result: its content is a text, or a list of texts and images."""
    content = block.get("content")
    if isinstance(content, list):
        parts = list(map(_result_part, content))
        content = parts if has_media(parts) else result_text(parts)
    text = content if isinstance(content, list) else "" if content is None else _text(content)
    failed = {"is_error": True} if block.get("is_error") is True else {}
    id = block.get("tool_use_id")
    return {"type": "tool_result", "tool_use_id": id, "content": text, **failed, **mark_of(block)}


def _told(block: Block, reader: Origin) -> Block:
    """Return a block; a failed result says so in its text where the service has no mark of it."""
    if not block.get("is_error") or reader.dialect in _MARK_FAILURES:
        return block
    content = block["content"]
    if re.match(r"\W*error\b", result_text(content), re.IGNORECASE):
        return block
    prefix = {"type": "text", "text": "Error:"}
    return {**block, "content": [prefix, *content] if isinstance(content, list) else f"Error: {content}"}


#: What a block is called whose data, base64, is nothing that a model can read as text.
IMAGES = ("image", "image_url", "input_image")
FILES = ("document", "file", "input_file", "audio", "input_audio", "video")
_MEDIA = (*IMAGES, *FILES, "resource")


def _result_part(part: Any) -> Block:
    """Part of a tool's result: a text, or an image that has a source. An image of MCP gets a block's keys."""
    if not isinstance(part, dict):
        return {"type": "text", "text": _text(part)}
    if part.get("type") == "image" and isinstance(part.get("data"), str):
        return {"type": "image", "base64": part["data"], "media_type": part.get("mimeType")}
    if part.get("type") in IMAGES and any(part.get(key) for key in ("source", "base64", "url", "image_url")):
        return part
    text = _text(part["text"]) if "text" in part else _left_out(part)
    return {"type": "text", "text": text}


def has_media(parts: Iterable[Block]) -> bool:
    return any(part.get("type") != "text" for part in parts)


def result_text(content: str | list[Block], why: str = "") -> str:
    """The content of a tool's result for whom takes only text: words stand where an image was."""
    if isinstance(content, str):
        return content
    return "\n".join(_text(part["text"]) if "text" in part else _left_out(part, why) for part in content)


def _left_out(part: Block, why: str = "") -> str:
    kind = part.get("type")
    if kind not in _MEDIA:
        return _text(part)
    data, media_type, url = source_of(part)
    return left_out("image" if kind in IMAGES else str(kind), media_type, data, url, why)


class Source(NamedTuple):
    """Where an image or another medium is: in ``data``, base64, or at an address."""

    data: Any
    media_type: Any
    url: Any

    def as_url(self) -> Any:
        """Return an address, which holds the data if there are any."""
        return f"data:{self.media_type or 'image/png'};base64,{self.data}" if self.data else self.url


def source_of(block: Block) -> Source:
    """Return the source of a block of any service's."""
    given = block.get("image_url", block.get("source"))
    source = {**block, **given} if isinstance(given, dict) else {**block, "url": given or block.get("url")}
    data = source.get("base64") or source.get("data") or source.get("blob")
    url, media_type = source.get("url"), source.get("media_type") or source.get("mimeType")
    head, _, inline = url.partition(",") if isinstance(url, str) else ("", "", "")
    if data is None and head.startswith("data:") and head.endswith(";base64"):
        return Source(inline, media_type or head.removeprefix("data:").partition(";")[0], None)
    return Source(data, media_type, url)


class File(NamedTuple):
    """A document, a recording or a film in a message. ``kind`` is what a person calls it."""

    kind: str
    data: Any
    media_type: Any
    url: Any
    name: Any = None

    def as_url(self) -> str:
        """Return the data as an address."""
        return f"data:{self.media_type or 'application/pdf'};base64,{self.data}"

    def called(self) -> str:
        """Return its name: services want one that tells what is in it."""
        ending = str(self.media_type or "application/pdf").partition("/")[2].partition(";")[0]
        return str(self.name or f"document.{ending}")

    def text(self) -> str | None:
        """Return the text of one that is a text; None of another."""
        if not (str(self.media_type).startswith("text/") and isinstance(self.data, str)):
            return None
        try:
            return b64decode(self.data).decode("utf-8", "replace")
        except ValueError:
            return None


def file_of(block: Block) -> File | None:
    """Return the file that a block of any service's is, with its data or its address; None for another."""
    kind = block.get("type")
    if kind in ("document", "audio", "video"):
        given = block.get("source")
        if isinstance(given, dict) and given.get("type") not in ("base64", "url"):
            return None
        return _file(kind, *source_of(block), block.get("title"))
    given = block.get(kind) if kind in ("file", "input_audio") else block if kind == "input_file" else None
    if not isinstance(given, dict):
        return None
    if kind == "input_audio":
        return _file("audio", given.get("data"), f"audio/{given.get('format')}", None)
    source = source_of({"base64": given.get("file_data")})
    if isinstance(source.data, str) and source.data.startswith("data:"):
        source = source_of({"url": source.data})
    return _file("document", source.data, source.media_type, given.get("file_url"), given.get("filename"))


def _file(kind: str, data: Any, media_type: Any, url: Any, name: Any = None) -> File | None:
    return File(kind, data, media_type, url, name) if data or url else None


def as_words(block: Block, why: str) -> Block:
    """Return the text of a document that is one; words in the place of a file that a service doesn't take."""
    source, file = block.get("source"), file_of(block) or File(str(block.get("type")), None, None, None)
    if isinstance(source, dict) and source.get("type") == "text":
        text: str | None = str(source.get("data"))
    else:
        text = file.text()
    if text is None:
        text = left_out(file.kind, file.media_type, file.data, file.url or file.name, why)
    return {"type": "text", "text": text, **mark_of(block)}


_BLIND = ": the model takes no images"


def without_images(messages: Iterable[Message]) -> list[Message]:
    """Return the messages with words where an image was, for a model that takes none."""
    return [_blind(message) for message in messages]


def _blind(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    if part.get("type") in IMAGES:
        return {"type": "text", "text": _left_out(part, _BLIND), **mark_of(part)}
    content = part.get("content")
    return {**part, "content": list(map(_blind, content))} if isinstance(content, list) else part


def read_arguments(given: Any) -> dict[str, Any]:
    """The arguments of a call as an object, which every service takes."""
    if isinstance(given, str) and given.strip():
        try:
            read = json.loads(given)
        except (ValueError, RecursionError):
            return {_UNREADABLE: given}
        return read if isinstance(read, dict) else {_UNREADABLE: given}
    return given if isinstance(given, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else compact_json(value)


def joined_text(blocks: Iterable[Block]) -> str:
    return "\n".join(block["text"] for block in blocks if block.get("type") == "text")


#: The one argument of a call whose own can't be read: why. It is never run, and the model told (07 §6.7).
PARSE_ERROR = "__parse_error"
#: The one argument that such a call goes back to a service with: what the model wrote.
_UNREADABLE = "__unreadable"


def unrun(call: dict[str, Any], why: str) -> dict[str, Any]:
    """Return a call as one that must not be run."""
    return {**call, "arguments": {PARSE_ERROR: why}}


def _unreadable(name: str, text: str, is_cut: bool) -> str | None:
    """Return why the arguments that a model wrote can't be used; those of a reply that ``is_cut`` off must be
    an object to its end."""
    if not text.strip():
        return f"The reply was cut off before the arguments of tool '{name}' came." if is_cut else None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        if is_cut:
            return f"The reply was cut off within the arguments of tool '{name}'."
        return f"The arguments of tool '{name}' are not valid JSON: {json_problem(text)}"
    return (
        None
        if isinstance(value, dict)
        else f"The arguments of tool '{name}' are not a JSON object: {text[:200]}"
    )


def written_call(
    id: str, name: str, text: str, is_cut: bool, more: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return a call as a reply carries it, of the text that a model wrote as its arguments.

    ``more`` are the service's own keys. Arguments that can't be read become an error for the model; their
    text is kept.
    """
    why = _unreadable(name, text, is_cut)
    call: dict[str, Any] = {"id": id, "type": "tool_call", "name": name}
    if why is None:
        return {**call, "arguments": json.loads(text) if text.strip() else {}, **(more or {})}
    return {**unrun(call, why), "written": text, **(more or {})}
