"""A request: as it arrives, as a test makes it, and as handlers see it. Spec: 04 §21.5."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from harnpy.net.parameters import is_token
from harnpy.net.server import headers as header_dicts
from harnpy.net.server.faults import ServerFault
from harnpy.text.display import display, type_name
from harnpy.text.urls import read_query, written_query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class Request(NamedTuple):
    """What came. ``path`` is percent-encoded, without the query."""

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
            "headers": header_dicts.of_request(self.headers),
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


def from_dict(given: Any) -> Request:
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
            for name, value in header_dicts.given(given.get("headers")).items()
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
