"""A response, as programs make it and as it goes out. Spec: 04 §21.5."""

from __future__ import annotations

from harnpy.net.server import headers as header_dicts
from harnpy.net.server.faults import ServerFault, number
from harnpy.reading.option_tables import expected
from harnpy.text.display import display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Response = dict[str, Any]

TEXT, JSON, BYTES = "text/plain; charset=utf-8", "application/json", "application/octet-stream"
#: What a dict with a status may hold. The last ones are those of a client's response, and of a stream.
_KEYS = (
    "type", "status", "headers", "body", "ok", "id", "streaming", "max_event_bytes", "max_buffered_events",
)  # fmt: skip
#: They have no body.
_EMPTY = frozenset([204, 205, 304])


def response(status: Any, body: Any = None, headers: Any = None, content_type: str | None = None) -> Response:
    """Return a response. Its type is that of the body unless the headers say so: text, or bytes."""
    given = header_dicts.given(headers)
    if body is not None:
        if type(body) is not bytes:
            body = display(body)
        default = content_type or (BYTES if type(body) is bytes else TEXT)
        given = {"content-type": default} | given
    return {"type": "http_response", "status": _status(status), "headers": given, "body": body}


def with_options(body: Any, options: dict[str, Any], content_type: str) -> Response:
    """Return a response with ``body``; ``options`` are those of `RESPONSE`, which were checked."""
    return response(number(options, "status", 200), body, options.get("headers"), content_type)


def plain(status: int, text: str) -> Response:
    """Return a response of the server's own."""
    return response(status, text)


def is_response(value: Any) -> bool:
    """Return whether a handler's result is a response: a dict with an int `status`."""
    return type(value) is dict and type(value.get("status")) is int


def response_of(result: Any) -> Response:
    """Return the response for what a handler returned. Raises ServerFault for one that can't be sent."""
    if result is None:
        return response(204)
    if not is_response(result):
        return response(200, result)
    unknown = next((key for key in result if key not in _KEYS), None)
    if unknown is not None:
        raise ServerFault(f"unknown key '{unknown}' of a response ({expected(unknown, _KEYS[:4])})")
    if result.get("streaming"):
        headers = header_dicts.given(result.get("headers"))
        return {**result, "headers": headers, "status": _status(result["status"])}
    return response(result["status"], result.get("body"), result.get("headers"))


def body_to_send(response: Response) -> bytes:
    """Return the bytes of the body, none for a status that has no body."""
    body = response.get("body")
    if body is None or response["status"] in _EMPTY:
        return b""
    return body if type(body) is bytes else body.encode("utf-8", "surrogatepass")


def has_no_body(status: int) -> bool:
    return status in _EMPTY


def _status(value: Any) -> int:
    if type(value) is not int:
        raise ServerFault(f"the status of a response must be an int, got {type_name(value)}")
    if not 200 <= value <= 599:
        raise ServerFault(f"the status of a response must be between 200 and 599, got {value}")
    return value
