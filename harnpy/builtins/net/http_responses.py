"""Responses that handlers return, and reading a header. Spec: 04 §21.5."""

from __future__ import annotations

from harnpy.builtins.bridge.server_options import server_options
from harnpy.net.server import headers as header_dicts
from harnpy.net.server import responses
from harnpy.net.server.faults import ServerFault
from harnpy.text.json.writer import to_json
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.values.objects import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("http_response(status: int = 200, body?: any, headers?: dict) -> dict", family="http_server")
def http_response(vm: Vm, status: int, body: Value, headers: Value) -> dict[str, Any]:
    """A response `{type: "http_response", status, headers, body}`: bytes as they are, other bodies as text.

    Example:
        http_response(404, "no such page").headers  // {"content-type": "text/plain; charset=utf-8"}
    """
    return responses.response(status, body, headers)


@builtin("http_response_text(value: any, options?: dict) -> dict", family="http_server")
def http_response_text(vm: Vm, value: Value, options: Value) -> dict[str, Any]:
    """A response with a text, of any value; `options` are `{status = 200, headers}`.

    Example:
        http_response_text("created", {status: 201}).status  // 201
    """
    text = "" if value is None else value
    return responses.with_options(text, server_options(vm, "http_response_text", options), responses.TEXT)


@builtin("http_response_json(value: any, options?: dict) -> dict", family="http_server")
def http_response_json(vm: Vm, value: Value, options: Value) -> dict[str, Any]:
    r"""A response with a value as JSON; `options` are `{status = 200, headers}`.

    Example:
        http_response_json({a: [1, 2]}).body  // "{\"a\":[1,2]}"
    """
    given = server_options(vm, "http_response_json", options)
    return responses.with_options(to_json(value, paced=vm.paced), given, responses.JSON)


@builtin("http_response_bytes(data: bytes, options?: dict) -> dict", family="http_server")
def http_response_bytes(vm: Vm, data: Value, options: Value) -> dict[str, Any]:
    """A response with bytes, or the UTF-8 of a text; `options` are `{status = 200, headers}`.

    Example:
        http_response_bytes(bytes_from_string("hi")).headers  // {"content-type": "application/octet-stream"}
    """
    given = server_options(vm, "http_response_bytes", options)
    if type(data) is str:
        data = data.encode("utf-8", "surrogatepass")
    if type(data) is not bytes:
        raise ServerFault(f"the body must be bytes or a string, got {type_name(data)}")
    return responses.with_options(data, given, responses.BYTES)


@builtin("http_header(headers: dict, name: string) -> string", family="http_server")
def http_header(vm: Vm, headers: Value, name: str) -> str | None:
    """The header of that name, in any case, of headers or of a message that has some; nil if there is none.

    Example:
        http_header({headers: {"Content-Type": "text/html"}}, "content-type")  // "text/html"
    """
    if type(headers) is dict and type(headers.get("headers")) is dict:
        headers = headers["headers"]
    return header_dicts.find(headers, name) if type(headers) is dict else None
