"""LangGraph's checkpoints as plain data, read without LangGraph. Spec: 10 §C20.

The framework's serializer writes MessagePack, with an extension for each object of Python: the names of its
module and class, and what it is made of. Here an object is read as what it is made of: nothing is imported
and nothing is called. What another serializer wrote (pickles, encrypted values) is an `Unread`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

#: What a serializer made of an object: how, and the bytes.
Typed = tuple[str, bytes]

#: Objects as (module, class, what it is made of, …): LangGraph's extensions of MessagePack.
_OBJECTS = range(6)
_ARRAY, _DELTA = 6, 7
#: Channels whose values are the framework's own.
_INTERNAL = ("branch:", "__")
INTERRUPT = "__interrupt__"
_ROLES = {"human": "user", "ai": "assistant", "function": "tool"}
_SECRET = "**********"


class Unread(NamedTuple):
    """A value that only the program that wrote it can read."""

    why: str

    def __str__(self) -> str:
        return f"not readable here ({self.why})"


#: A channel of which only the changes are kept: what they come to is known to its graph alone.
CHANGES = Unread("LangGraph puts it together from what was written")


def plain(value: Typed) -> Any:
    """Return a value as plain data, or as an `Unread`."""
    serializer, data = value
    read = _READERS.get(serializer, _unknown)
    try:
        return read(data)
    except (msgspec.MsgspecError, ValueError, TypeError, LookupError, RecursionError):
        return Unread(f"{serializer}, {len(data)} bytes")


def is_internal(channel: str) -> bool:
    """Return whether a channel is no part of the state that a graph's author sees."""
    return channel.startswith(_INTERNAL)


# The serializers.


def _unpack(data: bytes | memoryview) -> Any:
    return msgspec.msgpack.decode(data, ext_hook=_extension)


def _extension(code: int, data: memoryview) -> Any:
    if code in _OBJECTS:
        module, name, made_of, *_ = _unpack(data)
        return _object(module, name, made_of)
    if code == _DELTA:
        return _unpack(data)
    if code == _ARRAY:
        type, shape, *_ = _unpack(data)
        return f"<array of {type}, {'x'.join(map(str, shape))}>"
    return f"<{len(data)} bytes>"


def _object(module: str, name: str, made_of: Any) -> Any:
    """Return what an object is made of, in the form in which people know it."""
    match module.partition(".")[0], name:
        case _, "SecretStr" | "SecretBytes":
            return _SECRET
        case "uuid", "UUID":
            return "-".join(made_of[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))
        case "pathlib", _:
            return "/".join(made_of).replace("//", "/", 1)
        case "re", "compile":
            return made_of[0]
        case "datetime", "date":
            return "{:04}-{:02}-{:02}".format(*made_of)
        case "langgraph", "Send":
            return {"node": made_of[0], "arg": made_of[1]}
    return made_of


def _from_msgpack(data: bytes) -> Any:
    # Keys become text, and bytes stay what they are: no text.
    return msgspec.to_builtins(_unpack(data), str_keys=True, builtin_types=(bytes,))


def _from_json(data: bytes) -> Any:
    return json.loads(data, object_hook=_constructed)


def _constructed(value: dict[str, Any]) -> Any:
    if value.get("type") == "constructor" and "lc" in value:
        return value.get("kwargs") or value.get("args")
    return value


def _unknown(data: bytes) -> Any:
    raise ValueError("pickled, encrypted or otherwise not plain")


_READERS: dict[str, Callable[[bytes], Any]] = {
    "msgpack": _from_msgpack,
    "json": _from_json,
    "null": lambda data: None,
    "bytes": bytes,
    "bytearray": bytes,
}


# Messages.


def messages(value: Any) -> list[dict[str, Any]] | None:
    """Return the value of a channel as messages; None unless it is one or some."""
    found = [_message(item) for item in (value if isinstance(value, list) else [value])]
    return [message for message in found if message] if found and all(found) else None


def _message(value: Any) -> dict[str, Any] | None:
    """Return a message of LangChain, or of a model's API, as sessions have them."""
    if not isinstance(value, dict) or "content" not in value:
        return None
    role = value.get("role") or str(value.get("type", "")).removesuffix("MessageChunk").lower()
    if not isinstance(role, str) or not role:
        return None
    calls = value.get("tool_calls")
    shown = {"role": _ROLES.get(role, role), "content": value["content"]}
    return {**shown, "tool_calls": [*map(_call, calls)]} if isinstance(calls, list) and calls else shown


def _call(call: Any) -> Any:
    if not isinstance(call, dict) or "function" in call:
        return call
    return {"id": call.get("id"), "name": call.get("name"), "arguments": call.get("args", {})}


# The text of values, for searches.


def texts(channels: Iterable[tuple[str, Typed]]) -> Iterator[str]:
    """Yield what was said in the values of some channels: each text on a line of its own."""
    for channel, value in channels:
        if not channel.startswith("branch:"):
            said = plain(value)
            yield from map(_line, _said(said if channel != INTERRUPT else questions(said)))


def questions(interrupts: Any) -> list[Any]:
    """Return what interrupts ask."""
    asked = interrupts if isinstance(interrupts, list) else [interrupts]
    return [one["value"] if isinstance(one, dict) and "value" in one else one for one in asked]


def _line(text: str) -> str:
    return " ".join(text.splitlines())


def _said(value: Any) -> Iterator[str]:
    """Yield the texts in a value, without the names of its parts and what goes along with messages."""
    if isinstance(value, str):
        if value.strip():
            yield value
    elif isinstance(value, dict):
        yield from _said_in(value)
    elif isinstance(value, list):
        for item in value:
            yield from _said(item)


def _said_in(value: Mapping[str, Any]) -> Iterator[str]:
    message = _message(value)
    if message is None:
        for item in value.values():
            yield from _said(item)
        return
    content = message["content"]
    for block in content if isinstance(content, list) else [content]:
        yield from _said(block.get("text", block.get("content", "")) if isinstance(block, dict) else block)
    for call in message.get("tool_calls", ()):
        yield from _said(call.get("name")) if isinstance(call, dict) else ()
        yield from _said(call.get("arguments", call.get("function"))) if isinstance(call, dict) else ()
