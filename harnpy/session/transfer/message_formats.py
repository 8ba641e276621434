"""Messages of chat completions, Gemini, Ollama and ShareGPT, as sessions have them, and back. Spec: 10 §C17.

A reader takes one message of a file into a `Talk`, and raises `TransferError` for one that makes no sense.
A writer takes one message of a session, as blocks, into a `Page`.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.formats.media import left_out
from harnpy.session import events as kinds
from harnpy.session.errors import TransferError
from harnpy.session.transfer.blocks import (
    ADDRESSES,
    alone,
    arguments_of,
    arguments_text,
    call_block,
    image_url,
    media,
    text_block,
    text_of,
)
from harnpy.session.transfer.listed import Listing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Json = dict[str, Any]

# A conversation while it is read.


SYSTEMS = ("system", "developer")


class Talk(Listing):
    """A conversation of a family; ``model`` is the one that its file names."""

    def __init__(self, format: str, family: Family, model: str | None) -> None:
        super().__init__(format)
        self._family = family
        self._model = model
        #: Ids and names of the calls that have no result yet.
        self._open: list[tuple[str, str]] = []
        #: The blocks of a message that is told in several items.
        self._blocks: list[Json] = []

    def instruct(self, text: str, id: Any = None, time: int = 0, at: str | None = None) -> None:
        self.flush()
        super().instruct(text, id, time, at)

    def take(self, message: Json, *, opaque: bool = False, model: str | None = None) -> None:
        """Take in a message; ``opaque``: something in it only the model understands that wrote it."""
        self.flush()
        if opaque and (origin := self._origin(model or self._model)) is not None:
            message = {**message, "origin": origin}
        self._add(kinds.MESSAGE_ADDED, message)

    def tell(self, blocks: Iterable[Json]) -> None:
        """Take in a part of a model's message, which ends with whatever isn't one."""
        self._blocks += blocks

    def flush(self) -> None:
        """End the message of a model that is told in several items."""
        if self._blocks:
            blocks, self._blocks = self._blocks, []
            self.take({"role": "assistant", "content": alone(blocks)}, opaque=True)

    def called(self, id: Any, name: Any) -> str:
        """Return the id of a call, which may have none of its own."""
        if not isinstance(name, str) or not name:
            raise TransferError("it calls a tool without a name")
        known = id if isinstance(id, str) and id else f"call_{len(self.entries)}_{len(self._open)}"
        self._open.append((known, name))
        return known

    def answered(self, id: Any, name: Any = None) -> str:
        """Return the id of the call that a result is of: the oldest one of that name, if it has no id."""
        if isinstance(id, str) and id:
            self._open = [call for call in self._open if call[0] != id]
            return id
        named = [call for call in self._open if name in (None, call[1])]
        if not named:
            raise TransferError("it is the result of a tool that wasn't called")
        self._open.remove(named[0])
        return named[0][0]

    @property
    def is_waiting(self) -> bool:
        """Return True if there are calls without results."""
        return bool(self._open)

    def taken(self, item: Json, keys: Sequence[str]) -> Json:
        """Return those keys of a message that say something; the others are counted."""
        said = {key: value for key, value in item.items() if value is not None and value != []}
        self.lose_keys("keys of messages", said, keys)
        return {key: said[key] for key in keys if key in said}

    def mark(self, told: Json) -> None:
        """Note what is told of the last message beside it."""
        self.flush()
        if told and self.entries:
            self.entries[-1] = self.entries[-1]._replace(metadata=told)

    def _origin(self, model: str | None) -> Json | None:
        """Return whose a model's message is.

        Anthropic's thoughts of an unknown model go to any of its models (07 §1.17), those of others to none.
        """
        family = self._family
        if family.address is None or (family.dialect == "anthropic" and model is None):
            return None
        return {"dialect": family.dialect, "base_url": family.address, "model": model or ""}


#: What the blocks have that every format writes.
TEXT, CALL = ("type", "text"), ("type", "id", "name", "input")
RESULT = ("type", "tool_use_id", "content", "is_error")


class Page:
    """The messages that are written so far, and what is ``lost``."""

    def __init__(self) -> None:
        self.messages: list[Json] = []
        self.lost: Counter[str] = Counter()
        #: The calls so far, by their ids.
        self.calls: dict[str, Json] = {}
        #: The types of the items that they were written as.
        self.items: dict[str, str] = {}

    def only(self, block: Json, keys: Sequence[str]) -> None:
        """Count a block that has more than these keys."""
        if block.keys() - set(keys):
            self.lost["marks of a service's own"] += 1

    def drop(self, role: str, block: Json) -> None:
        """Count a block that isn't written."""
        self.lost[f"{block.get('type')} of a {'model' if role == 'assistant' else role}"] += 1

    def result_text(self, block: Json) -> str:
        """Return a result for formats that have only text in it."""
        content = block.get("content")
        self.only(block, RESULT)
        if block.get("is_error"):
            self.lost["marks of failed calls"] += 1
        if not isinstance(content, list):
            return text_block("" if content is None else content)["text"]  # type: ignore[no-any-return]
        self.lost["images in results"] += sum(part.get("type") != "text" for part in content)
        self.lost["borders between texts"] += max(0, len(content) - 1)
        return "\n".join(
            part.get("text", "")
            if part.get("type") == "text"
            else left_out(str(part.get("type")), part.get("media_type"), part.get("base64"), part.get("url"))
            for part in content
        )

    def name_of(self, result: Json) -> str:
        """Return the name of the tool that a result is of."""
        return str(self.calls.get(str(result.get("tool_use_id")), {}).get("name", "unknown"))


class Family(NamedTuple):
    """A format: ``key`` is where its file has the messages; a model's are of ``dialect`` and `address`."""

    key: str
    dialect: str
    roles: tuple[str, ...]
    read: Callable[[Talk, Json], None]
    write: Callable[[Page, str, list[Json], Json], None]
    #: Context as a message.
    context: Callable[[str], Json]
    #: The key that has the system prompt; None: it is the first message.
    head: str | None = None

    @property
    def address(self) -> str | None:
        """The usual address of the service; None where nobody knows whom a file is from."""
        return ADDRESSES.get(self.dialect)


def role_of(item: Json, roles: Sequence[str], key: str = "role") -> str:
    role = item.get(key)
    if role not in roles:
        raise TransferError(f"its {key} is {_shown(role)}, and can be {', '.join(roles)}")
    return str(role)


def _shown(value: Any) -> str:
    return repr(value[:40]) if isinstance(value, str) else "missing" if value is None else "no text"


def text_in(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise TransferError(f"{what} is no text")
    return value


def objects_in(value: Any, what: str) -> list[Json]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise TransferError(f"{what} is no list of objects")
    return value


_MEDIA = ("input_audio", "file")
#: Kinds of blocks that any service understands.
COMMON = frozenset({"text", "image", "tool_use", "tool_result", "document", *_MEDIA})


# OpenAI's chat completions.


_CHAT_ROLES = (*SYSTEMS, "user", "assistant", "tool", "function")
#: What a model's message has for its service alone.
REASONING = ("reasoning_content", "reasoning", "reasoning_details")


def _read_chat(talk: Talk, item: Json) -> None:
    role = role_of(item, _CHAT_ROLES)
    if role in SYSTEMS:
        said = talk.taken(item, ("role", "content"))
        at = role if role != SYSTEMS[0] else None
        return talk.instruct(text_of(_chat_content(talk, said.get("content"))), at=at)
    if role in ("tool", "function"):
        said = talk.taken(item, ("role", "content", "tool_call_id", "name"))
        id = talk.answered(said.get("tool_call_id"), said.get("name") if role == "function" else None)
        talk.lose("names of tools", int(role == "tool" and bool(said.get("name"))))
        return talk.take(
            {"role": "tool", "tool_call_id": id, "content": _chat_content(talk, said.get("content"))}
        )
    keys = ("role", "content", "name", "refusal", "tool_calls", "function_call", *REASONING)
    said = talk.taken(item, keys)
    calls = objects_in(said.pop("tool_calls", []), "`tool_calls`")
    if "function_call" in said:
        calls = [*calls, {"function": said.pop("function_call")}]
    said["content"] = _chat_content(talk, said.get("content", said.get("refusal")))
    if calls:
        said["tool_calls"] = [_chat_call(talk, call) for call in calls]
    return talk.take(said, opaque=any(key in said for key in REASONING))


def _chat_call(talk: Talk, call: Json) -> Json:
    """Return a call, whose arguments are a text, or Ollama's object."""
    custom = call.get("custom")
    if isinstance(custom, dict):
        function = {"name": custom.get("name"), "arguments": json.dumps({"input": custom.get("input")})}
    elif isinstance(call.get("function"), dict):
        given = call["function"].get("arguments")
        talk.lose_keys("keys of calls", call["function"], ("name", "arguments"))
        function = {"name": call["function"].get("name"), "arguments": "" if given is None else given}
    else:
        raise TransferError("it has a call without a function")
    if not isinstance(function["arguments"], str | dict):
        raise TransferError("the arguments of its call are neither a text nor an object")
    more = {
        key: value for key, value in call.items() if key not in ("id", "function", "type", "custom", "index")
    }
    id = talk.called(call.get("id"), function["name"])
    return {"id": id, "type": "function", "function": function, **more}


def _chat_content(talk: Talk, content: Any) -> Any:
    if content is None or isinstance(content, str):
        return content or ""
    blocks: list[Json] = []
    for part in objects_in(content, "`content`"):
        kind = part.get("type")
        if kind in ("text", "refusal"):
            talk.lose_keys("keys of parts", part, ("type", kind))
            blocks.append(text_block(text_in(part.get(kind), f"a {kind} in it")))
        elif kind == "image_url":
            given = part.get("image_url")
            told = given if isinstance(given, dict) else {"url": given}
            talk.lose_keys("keys of parts", part, ("type", "image_url"))
            talk.lose_keys("keys of parts", told, ("url", "detail"))
            image = media("image", None, url=text_in(told.get("url"), "the address of an image in it"))
            blocks.append({**image, **({"detail": told["detail"]} if told.get("detail") else {})})
        elif kind in _MEDIA:
            blocks.append(part)
        elif kind in ("thinking", "reasoning"):
            talk.lose("blocks", name=str(kind))
        else:
            raise TransferError(f"it has a part whose type is {_shown(kind)}")
    return alone(blocks)


def _write_chat(page: Page, role: str, blocks: list[Json], message: Json) -> None:
    parts: list[Json] = []
    calls: list[Json] = []
    for block in blocks:
        kind = block["type"]
        if kind == "tool_result":
            id, text = str(block.get("tool_use_id")), page.result_text(block)
            page.messages.append({"role": "tool", "tool_call_id": id, "content": text})
        elif kind == "tool_use":
            page.only(block, CALL)
            function = {"name": block["name"], "arguments": arguments_text(block["input"])}
            calls.append({"id": block["id"], "type": "function", "function": function})
        elif kind == "text":
            page.only(block, TEXT)
            page.lost["texts behind calls"] += bool(calls)
            parts.append(text_block(block["text"]))
        elif kind == "image" and role == "user":
            detail = {"detail": block["detail"]} if block.get("detail") else {}
            parts.append({"type": "image_url", "image_url": {"url": image_url(block), **detail}})
        elif kind in _MEDIA and role == "user":
            parts.append(block)
        else:
            page.drop(role, block)
    more = {key: message[key] for key in ("name", "refusal", *REASONING) if key in message}
    if "refusal" in more and role == "assistant":
        parts = []
    content = alone(parts) if parts else None if calls or "refusal" in more else ""
    if parts or calls or more or (not blocks and role != "assistant"):
        page.messages.append(
            {"role": role, "content": content, **more, **({"tool_calls": calls} if calls else {})}
        )


def with_results(page: Page, made: Json, key: str, is_result: Callable[[Json], bool]) -> None:
    """Write a message; results of one answer, and what the user says to them, are one message."""
    before = page.messages[-1].get(key) if page.messages else None
    if made["role"] == "user" and isinstance(before, list) and all(map(is_result, before)):
        said = made[key] if isinstance(made[key], list) else [text_block(made[key])]
        page.messages[-1] = {**page.messages[-1], key: [*before, *said]}
    else:
        page.messages.append(made)


# Gemini's contents.


_GEMINI_ROLES = ("user", "model", "function", "tool", "system")
_SIGNATURE, _SIGN = "thoughtSignature", "thought_signature"
#: Google's SDK for Python writes these keys in another way.
_SPELLED = {
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "inline_data": "inlineData",
    "file_data": "fileData",
    "thought_signature": "thoughtSignature",
    "mime_type": "mimeType",
    "file_uri": "fileUri",
    "display_name": "displayName",
    "executable_code": "executableCode",
    "code_execution_result": "codeExecutionResult",
    "video_metadata": "videoMetadata",
}


def spelled(value: Json) -> Json:
    """Return a part with the keys that the service has, without those that say nothing."""
    said = {_SPELLED.get(key, key): each for key, each in value.items() if each is not None}
    for key in ("inlineData", "fileData", "functionCall", "functionResponse"):
        if isinstance(said.get(key), dict):
            inner = said[key].items()
            said[key] = {_SPELLED.get(name, name): each for name, each in inner if each is not None}
    return said


def _read_gemini(talk: Talk, item: Json) -> None:
    role = role_of({"role": item.get("role") or "user"}, _GEMINI_ROLES)
    parts = [
        spelled(part) for part in objects_in(talk.taken(item, ("role", "parts")).get("parts", []), "`parts`")
    ]
    if role == "system":
        return talk.instruct(text_of(parts))
    blocks: list[Json] = []
    for part in parts:
        if "functionResponse" in part:
            talk.take(_gemini_result(talk, part))
        else:
            blocks.append(_gemini_block(talk, part))
    opaque = any(block["type"] not in COMMON or block.keys() & {_SIGN, "has_id"} for block in blocks)
    if blocks:
        name = "assistant" if role == "model" else "user"
        talk.take({"role": name, "content": alone(blocks)}, opaque=opaque)
    return None


def _gemini_result(talk: Talk, part: Json) -> Json:
    given = part["functionResponse"]
    response = given.get("response") if isinstance(given, dict) else None
    if not isinstance(response, dict):
        raise TransferError("it has a functionResponse without a response")
    talk.lose_keys("keys of parts", part, ("functionResponse",))
    talk.lose_keys("keys of results", given, ("id", "name", "response"))
    id = talk.answered(given.get("id"), text_in(given.get("name"), "the name of its functionResponse"))
    failed = {"is_error": True} if response.keys() == {"error"} else {}
    if response.keys() <= {"output"} or failed:
        said = response.get("error" if failed else "output", "")
    else:
        said = response
    return {"role": "tool", "tool_call_id": id, "content": text_block(said)["text"], **failed}


def _gemini_block(talk: Talk, part: Json) -> Json:
    signed = {_SIGN: part[_SIGNATURE]} if _SIGNATURE in part else {}
    call, text, data = (
        part.get("functionCall"),
        part.get("text"),
        part.get("inlineData", part.get("fileData")),
    )
    if isinstance(call, dict):
        talk.lose_keys("keys of parts", part, ("functionCall", _SIGNATURE))
        talk.lose_keys("keys of parts", call, ("id", "name", "args"))
        args = call.get("args", {})
        if not isinstance(args, dict):
            raise TransferError("the args of its functionCall are no object")
        id = talk.called(call.get("id"), call.get("name"))
        return call_block(id, call["name"], args, **({"has_id": True} if call.get("id") else {}), **signed)
    if isinstance(text, str):
        talk.lose_keys("keys of parts", part, ("text", "thought", _SIGNATURE))
        kind = "thinking" if part.get("thought") else "text"
        return {"type": kind, kind: text, **signed}
    if isinstance(data, dict) and part.keys() <= {"inlineData", "fileData"}:
        media_type = data.get("mimeType")
        if str(media_type).startswith("image/") and data.keys() <= {"mimeType", "data", "fileUri"}:
            if isinstance(data.get("data"), str):
                return {"type": "image", "media_type": media_type, "base64": data["data"]}
            if isinstance(data.get("fileUri"), str):
                return {"type": "image", "media_type": media_type, "url": data["fileUri"]}
    if not part or "text" in part or "functionCall" in part:
        raise TransferError("it has a part that says nothing")
    return {"type": "part", "part": part}


def _write_gemini(page: Page, role: str, blocks: list[Json], message: Json) -> None:
    made = [part for block in blocks if (part := _gemini_part(page, block, "origin" in message)) is not None]
    if made:
        content = {"role": "model" if role == "assistant" else "user", "parts": made}
        with_results(page, content, "parts", lambda part: "functionResponse" in part)


def _gemini_part(page: Page, block: Json, is_own: bool) -> Json | None:
    kind = block["type"]
    signed = {_SIGNATURE: block[_SIGN]} if _SIGN in block else {}
    if kind == "text" or (kind == "thinking" and is_own):
        page.only(block, ("type", kind, _SIGN))
        return {"text": block[kind], **({"thought": True} if kind == "thinking" else {}), **signed}
    if kind == "tool_use":
        page.only(block, (*CALL, _SIGN, "has_id"))
        call = {"id": block["id"], "name": block["name"], "args": block["input"]}
        return {"functionCall": call, **signed}
    if kind == "tool_result":
        key = "error" if block.get("is_error") else "output"
        text = page.result_text({**block, "is_error": False})
        id, name = block.get("tool_use_id"), page.name_of(block)
        return {"functionResponse": {"id": id, "name": name, "response": {key: text}}}
    if kind == "image":
        page.only(block, ("type", "base64", "media_type", "url"))
        url = image_url(block)
        head, comma, data = url.partition(";base64,")
        if comma:
            return {"inlineData": {"mimeType": head.removeprefix("data:"), "data": data}}
        return {"fileData": {"mimeType": block.get("media_type") or "image/png", "fileUri": url}}
    if kind == "part":
        return dict(block["part"])
    page.lost[f"{kind} blocks"] += 1
    return None


# Ollama's messages.


_OLLAMA_ROLES = ("system", "user", "assistant", "tool")
#: How base64 of an image begins.
_IMAGES = {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}


def _read_ollama(talk: Talk, item: Json) -> None:
    role = role_of(item, _OLLAMA_ROLES)
    keys = ("role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id", "name")
    said = talk.taken(item, keys)
    text = text_in(said.get("content", ""), "`content`")
    if role == "system":
        return talk.instruct(text)
    images = said.get("images", [])
    if not isinstance(images, list) or not all(isinstance(image, str) for image in images):
        raise TransferError("`images` is no list of texts")
    content: Any = text
    if images:
        content = [text_block(text)] if text else []
        content += [{"type": "image", "media_type": _media_type(data), "base64": data} for data in images]
    if role == "tool":
        id = talk.answered(said.get("tool_call_id"), said.get("tool_name", said.get("name")))
        return talk.take({"role": "tool", "tool_call_id": id, "content": content})
    message: Json = {"role": role, "content": content}
    if "thinking" in said:
        message["reasoning"] = text_in(said["thinking"], "`thinking`")
    calls = objects_in(said.get("tool_calls", []), "`tool_calls`")
    if calls:
        message["tool_calls"] = [_chat_call(talk, call) for call in calls]
    return talk.take(message, opaque="reasoning" in message)


def _media_type(data: str) -> str:
    return next((kind for begin, kind in _IMAGES.items() if data.startswith(begin)), "image/png")


def _write_ollama(page: Page, role: str, blocks: list[Json], message: Json) -> None:
    for block in blocks:
        if block["type"] == "tool_result":
            content = block.get("content")
            said = content if isinstance(content, list) else [text_block(content or "")]
            page.lost["marks of failed calls"] += bool(block.get("is_error"))
            page.only(block, RESULT)
            named = {"tool_name": page.name_of(block), "tool_call_id": str(block.get("tool_use_id"))}
            page.messages.append({"role": "tool", **_ollama_content(page, "tool", said), **named})
    calls: list[Json] = []
    for block in blocks:
        if block["type"] == "tool_use":
            page.only(block, CALL)
            calls.append(
                {"id": block["id"], "function": {"name": block["name"], "arguments": block["input"]}}
            )
        elif block["type"] == "text":
            page.lost["texts behind calls"] += bool(calls)
    said = [block for block in blocks if block["type"] not in ("tool_use", "tool_result")]
    thought = {"thinking": message["reasoning"]} if isinstance(message.get("reasoning"), str) else {}
    if said or calls or thought or not blocks:
        made = {"role": role, **_ollama_content(page, role, said), **thought}
        page.messages.append({**made, **({"tool_calls": calls} if calls else {})})


def _ollama_content(page: Page, role: str, blocks: list[Json]) -> Json:
    texts: list[str] = []
    images: list[str] = []
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            page.only(block, TEXT)
            page.lost["texts behind images"] += bool(images)
            texts.append(block["text"])
        elif kind == "image" and (data := image_url(block).partition(";base64,")[2]):
            page.lost["types of images"] += _media_type(data) != block.get("media_type")
            images.append(data)
        else:
            page.drop(role, block)
    page.lost["borders between texts"] += max(0, len(texts) - 1)
    return {"content": "\n".join(texts), **({"images": images} if images else {})}


# ShareGPT's.


_SPEAKERS = {
    "system": "system",
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "assistant", "model", "chatgpt", "bing", "bard"), "assistant"),
    "function_call": "call",
    **dict.fromkeys(("tool", "observation", "function_response", "function"), "tool"),
}


def _read_sharegpt(talk: Talk, item: Json) -> None:
    said = talk.taken(item, ("from", "value"))
    role = _SPEAKERS[role_of(said, tuple(_SPEAKERS), "from")]
    value = text_in(said.get("value", ""), "`value`")
    if role == "system":
        talk.instruct(value)
    elif role == "assistant":
        talk.flush()
        talk.tell([text_block(value)])
    elif role == "call":
        talk.tell(_sharegpt_calls(talk, value))
    elif role == "tool" and talk.is_waiting:
        talk.flush()
        talk.take({"role": "tool", "tool_call_id": talk.answered(None), "content": value})
    else:
        # A result of a call that stands in a text is a text of the user's.
        talk.take({"role": "user", "content": value, **({"name": "tool"} if role == "tool" else {})})


def _sharegpt_calls(talk: Talk, value: str) -> list[Json]:
    try:
        given = json.loads(value)
    except (ValueError, RecursionError):
        raise TransferError("its function_call isn't JSON") from None
    calls = objects_in(given if isinstance(given, list) else [given], "its function_call")
    made = []
    for call in calls:
        arguments = call.get("arguments", call.get("parameters", {}))
        if not isinstance(arguments, str | dict):
            raise TransferError("the arguments of its call are neither a text nor an object")
        talk.lose_keys("keys of calls", call, ("name", "arguments", "parameters"))
        id = talk.called(None, call.get("name"))
        read = arguments_of(arguments) if isinstance(arguments, str) else arguments
        made.append(call_block(id, call["name"], read))
    return made


def _write_sharegpt(page: Page, role: str, blocks: list[Json], message: Json) -> None:
    texts: list[str] = []
    calls: list[Json] = []
    for block in blocks:
        kind = block["type"]
        if kind == "text":
            page.only(block, TEXT)
            page.lost["texts behind calls"] += bool(calls)
            texts.append(block["text"])
        elif kind == "tool_use":
            page.only(block, CALL)
            page.lost["ids of calls"] += 1
            calls.append({"name": block["name"], "arguments": block["input"]})
        elif kind == "tool_result":
            page.messages.append({"from": "observation", "value": page.result_text(block)})
        else:
            page.drop(role, block)
    page.lost["borders between texts"] += max(0, len(texts) - 1)
    name = message.get("name")
    if texts:
        who = "gpt" if role == "assistant" else "tool" if name == "tool" else "human"
        page.messages.append({"from": who, "value": "\n".join(texts)})
    if calls:
        page.messages.append(
            {"from": "function_call", "value": json.dumps(calls if len(calls) > 1 else calls[0])}
        )


def _of_system(text: str) -> Json:
    return {"role": "system", "content": text}


CHAT = Family("messages", "openai", _CHAT_ROLES, _read_chat, _write_chat, _of_system)
OLLAMA = Family("messages", "ollama", _OLLAMA_ROLES, _read_ollama, _write_ollama, _of_system)
GEMINI = Family(
    "contents",
    "gemini",
    _GEMINI_ROLES,
    _read_gemini,
    _write_gemini,
    lambda text: {"role": "user", "parts": [{"text": text}]},
    "systemInstruction",
)
SHAREGPT = Family(
    "conversations",
    "",
    tuple(_SPEAKERS),
    _read_sharegpt,
    _write_sharegpt,
    lambda text: {"from": "system", "value": text},
)
