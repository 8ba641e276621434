"""Requests and responses of a server, as handlers see them and as they come in and go out. Spec: 04 §21.5."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from harnpy.formats.display import display, type_name
from harnpy.formats.options import expected
from harnpy.formats.urls import read_query, written_query
from harnpy.net.header_grammar import is_token
from harnpy.net.server_options import ServerFault, number_option

Response = dict[str, Any]

# Headers as programs have them: a dict by name, of strings or lists of strings. Spec: 04 §21.5.


_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
#: What the server says itself about how it sends a body.
_OF_THE_CONNECTION = frozenset(["connection", "content-length", "keep-alive", "transfer-encoding", "upgrade"])


def received_headers(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return received headers by lowercase name; the values of a repeated one are joined."""
    found: dict[str, str] = {}
    for name, value in pairs:
        name = name.lower()
        separator = "; " if name == "cookie" else ", "
        found[name] = f"{found[name]}{separator}{value}" if name in found else value
    return found


def given_headers(headers: Any) -> dict[str, Any]:
    """Return the headers that a program gives, by lowercase name. Raises ServerFault for what is none."""
    if headers is None:
        return {}
    if type(headers) is not dict:
        raise ServerFault(f"headers must be a dict, got {type_name(headers)}")
    found: dict[str, Any] = {}
    for name, value in headers.items():
        if value is None:
            continue
        if not is_token(name):
            raise ServerFault(f"{name!r} is no name of a header")
        values = [display(each).strip(" \t") for each in (value if type(value) is list else [value])]
        for each in values:
            if not _VALUE.fullmatch(each):
                raise ServerFault(f"the header `{name}` contains a line break or another control character")
        found[name.lower()] = values if type(value) is list else values[0]
    return found


def find_header(headers: dict[str, Any], name: str) -> str | None:
    """Return the header ``name``, in any case; several values are joined. None when there is none."""
    wanted = name.lower()
    for key, value in headers.items():
        if key.lower() == wanted and value is not None:
            return ", ".join(map(display, value)) if type(value) is list else display(value)
    return None


def headers_to_send(headers: dict[str, Any]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the headers of a response as they go out; those of the connection are the server's own."""
    for name, value in headers.items():
        if name in _OF_THE_CONNECTION:
            continue
        for each in value if type(value) is list else [value]:
            yield name.encode("ascii"), each.encode("utf-8", "surrogatepass")


# A request: as it arrives, as a test makes it, and as handlers see it. Spec: 04 §21.5.


class Request(NamedTuple):
    """A request as it came. ``path`` is percent-encoded, without the query."""

    method: str
    path: str
    query: str = ""
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    remote_addr: str | None = None
    client_ip: str | None = None

    def shown(self, params: Mapping[str, str], keep_bytes: bool) -> dict[str, Any]:
        """Return what handlers see; ``keep_bytes``: with the body as bytes."""
        named = dict(params)
        return {
            "method": self.method,
            "path": unquote(self.path),
            "path_params": named,
            "params": named,
            "query": _first_values(self.query),
            "query_string": self.query,
            "headers": received_headers(self.headers),
            "body": self.body.decode("utf-8", "replace"),
            "raw_body": self.body if keep_bytes else None,
            "body_bytes": len(self.body),
            "remote_addr": self.remote_addr,
            "client_ip": self.client_ip,
        }


def method_of(value: Any) -> str:
    """Return a method in capitals. Raises ServerFault for what is none."""
    if type(value) is not str or not is_token(value):
        raise ServerFault(f"a method is a word such as GET, got {display(value)!r}")
    return value.upper()


def request_from_dict(given: Any) -> Request:
    """Return the request that a test gives, whose keys were checked. Raises ServerFault."""
    if type(given) is not dict:
        raise ServerFault(f"a request is a dict, got {type_name(given)}")
    path, _, query = _text(given, "path", "/").partition("?")
    if not path.startswith("/"):
        raise ServerFault(f"the path of a request begins with /, got {path!r}")
    address = _text(given, "remote_addr", "127.0.0.1:0")
    return Request(
        method_of(given.get("method") or "GET"),
        path,
        "&".join(filter(None, [query, _query(given.get("query"))])),
        [
            (name, each)
            for name, value in given_headers(given.get("headers")).items()
            for each in (value if type(value) is list else [value])
        ],
        _body(given),
        address,
        _text(given, "client_ip", address.rpartition(":")[0].strip("[]") or address),
    )


def _text(given: dict[str, Any], key: str, default: str) -> str:
    value = given.get(key)
    if value is None:
        return default
    if type(value) is not str:
        raise ServerFault(f"`{key}` of a request must be a string, got {type_name(value)}")
    return value


def _query(value: Any) -> str:
    if value is None:
        return ""
    if type(value) is str:
        return value.removeprefix("?")
    if type(value) is dict:
        return written_query((key, display(each)) for key, each in value.items())
    if type(value) is list and all(type(pair) is dict and {"key", "value"} <= pair.keys() for pair in value):
        return written_query((display(pair["key"]), display(pair["value"])) for pair in value)
    raise ServerFault("`query` of a request must be a string, a dict or a list of {key, value}")


def _body(given: dict[str, Any]) -> bytes:
    value = given.get("body") if given.get("raw_body") is None else given["raw_body"]
    if value is None:
        return b""
    if type(value) is str:
        return value.encode("utf-8", "surrogatepass")
    if type(value) is bytes:
        return value
    raise ServerFault(f"`body` of a request must be a string or bytes, got {type_name(value)}")


def _first_values(query: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in read_query(query):
        found.setdefault(key, value)
    return found


# A response, as programs make it and as it goes out. Spec: 04 §21.5.


TEXT, JSON, BYTES = "text/plain; charset=utf-8", "application/json", "application/octet-stream"
#: What a dict with a status may hold. The last ones are those of a client's response, and of a stream.
_KEYS = (
    "type", "status", "headers", "body", "ok", "id", "streaming", "max_event_bytes", "max_buffered_events",
)  # fmt: skip
#: They have no body.
_EMPTY = frozenset([204, 205, 304])


def response(status: Any, body: Any = None, headers: Any = None, content_type: str | None = None) -> Response:
    """Return a response. Its type is that of the body unless the headers say so: text, or bytes."""
    given = given_headers(headers)
    if body is not None:
        if type(body) is not bytes:
            body = display(body)
        default = content_type or (BYTES if type(body) is bytes else TEXT)
        given = {"content-type": default} | given
    return {"type": "http_response", "status": _status(status), "headers": given, "body": body}


def response_with_options(body: Any, options: dict[str, Any], content_type: str) -> Response:
    """Return a response with ``body``; ``options`` are those of `RESPONSE`, which were checked."""
    return response(number_option(options, "status", 200), body, options.get("headers"), content_type)


def plain_response(status: int, text: str) -> Response:
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
        headers = given_headers(result.get("headers"))
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
