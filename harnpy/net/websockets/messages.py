"""Messages as programs have them: dicts with a `type`. Spec: 04 §21.5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.crypto.encodings import EncodingError, from_base64, to_base64
from harnpy.net.websockets.errors import WebSocketError
from harnpy.text.display import display, type_name
from harnpy.world.net.messages import Message

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict

TYPES = ("text", "binary", "ping", "pong", "close")
#: Bytes of a ping, a pong, and of the reason of a close (RFC 6455, 5.5).
_MOST_CONTROL = 125
_MOST_REASON = 123


def as_dict(message: Message) -> Dict:
    """Return what a program receives."""
    match message.type:
        case "text":
            return {"type": "text", "data": message.data.decode("utf-8", "replace")}
        case "close" if message.code is None:
            return {"type": "close"}
        case "close":
            return {"type": "close", "code": message.code, "reason": message.reason}
        case other:
            return {"type": other, "data_base64": to_base64(message.data)}


def to_send(content: Any, type_: Any, code: Any, reason: Any) -> Message:
    """Return the message that a program sends; by default bytes are binary, and all else is text.

    Raises `WebSocketError`.
    """
    if type_ is None:
        type_ = "binary" if type(content) is bytes else "text"
    if type_ not in TYPES:
        raise WebSocketError(f"type must be one of {', '.join(TYPES)}, got {display(type_)}")
    if type_ == "close":
        return _close(code, reason)
    if code is not None or reason is not None:
        raise WebSocketError(f"only a close has a code and a reason, not a message of type {type_}")
    data = b"" if content is None else content
    if type(data) is not bytes:
        data = display(data).encode("utf-8", "surrogatepass")
    if type_ in ("ping", "pong") and len(data) > _MOST_CONTROL:
        raise WebSocketError(f"a {type_} has at most {_MOST_CONTROL} bytes, got {len(data)}")
    return Message(type_, data)


def _close(code: Any, reason: Any) -> Message:
    if code is None and reason is None:
        code = 1000
    if type(code) is not int or not (
        code in (1000, 1001, 1002, 1003) or 1007 <= code <= 1014 or 3000 <= code <= 4999
    ):
        raise WebSocketError(f"code must be 1000 to 1003, 1007 to 1014 or 3000 to 4999, got {display(code)}")
    text = "" if reason is None else display(reason)
    if len(text.encode("utf-8", "surrogatepass")) > _MOST_REASON:
        raise WebSocketError(f"the reason of a close has at most {_MOST_REASON} bytes")
    return Message("close", b"", code, text)


def mocked(value: Any) -> Message:
    """Return a message that a mock was given: a text, bytes, or a dict as programs receive it.

    Raises `WebSocketError`.
    """
    if type(value) is not dict:
        if type(value) not in (str, bytes):
            raise WebSocketError(f"a message must be a string, bytes or a dict, got {type_name(value)}")
        return to_send(value, None, None, None)
    data = value.get("data")
    if value.get("data_base64") is not None:
        try:
            data = from_base64(display(value["data_base64"]))
        except EncodingError as error:
            raise WebSocketError(f"data_base64 is no base64: {error}") from None
    return to_send(data, value.get("type"), value.get("code"), value.get("reason"))
