"""Requests over HTTP, alone or in a session. Spec: 04 §21.1, §21.2."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.live_http import http_calls_of
from harnpy.builtins.net.http_arguments import bounded, call_of, options_of, session_call, with_body
from harnpy.net.http.errors import HttpError
from harnpy.vm.declare.builtin import builtin as declare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.net.http.calls import Call
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

    Dict = dict[str, Value]

#: What all declarations here have in common.
builtin = partial(declare, family="http_client")

#: The bytes that a body may have unless an option says it.
MOST = 1 << 25


@builtin("http_get(url: string, opts?: dict) -> dict", guarded=True)
def http_get(vm: Vm, url: str, opts: Value) -> Dict:
    """The response to a GET: `{status, headers, body, ok}`. A status that isn't 2xx doesn't throw.

    Example:
        http_mock("GET", "https://api.test/health", {body: "fine"})
        http_get("https://api.test/health").body  // "fine"
    """
    return _sent(vm, "http_get", "GET", url, options_of(vm, "http_get", opts))


@builtin("http_delete(url: string, opts?: dict) -> dict", guarded=True)
def http_delete(vm: Vm, url: str, opts: Value) -> Dict:
    """The response to a DELETE: `{status, headers, body, ok}`.

    Example:
        http_mock("DELETE", "https://api.test/notes/*", {status: 204})
        http_delete("https://api.test/notes/7").ok  // true
    """
    return _sent(vm, "http_delete", "DELETE", url, options_of(vm, "http_delete", opts))


@builtin("http_post(url: string, body?: any, opts?: dict) -> dict", guarded=True)
def http_post(vm: Vm, url: str, body: Value, opts: Value) -> Dict:
    """The response to a POST: `{status, headers, body, ok}`. A dict in second place, and last, is `opts`.

    Example:
        http_mock("POST", "https://api.test/notes", {status: 201})
        let headers = {"content-type": "application/json"}
        http_post("https://api.test/notes", json_stringify({text: "hi"}), {headers: headers}).status  // 201
    """
    return _with_body(vm, "http_post", "POST", url, body, opts)


@builtin("http_put(url: string, body?: any, opts?: dict) -> dict", guarded=True)
def http_put(vm: Vm, url: str, body: Value, opts: Value) -> Dict:
    """The response to a PUT: `{status, headers, body, ok}`. A dict in second place, and last, is `opts`.

    Example:
        http_mock("PUT", "https://api.test/notes/7", {body: "kept"})
        http_put("https://api.test/notes/7", "hi").body  // "kept"
    """
    return _with_body(vm, "http_put", "PUT", url, body, opts)


@builtin("http_patch(url: string, body?: any, opts?: dict) -> dict", guarded=True)
def http_patch(vm: Vm, url: str, body: Value, opts: Value) -> Dict:
    """The response to a PATCH: `{status, headers, body, ok}`. A dict in second place, and last, is `opts`.

    Example:
        http_mock("PATCH", "https://api.test/notes/7", {body: "changed"})
        http_patch("https://api.test/notes/7", "hi").body  // "changed"
    """
    return _with_body(vm, "http_patch", "PATCH", url, body, opts)


@builtin("http_request(method: string, url: string, opts?: dict) -> dict", guarded=True)
def http_request(vm: Vm, method: str, url: str, opts: Value) -> Dict:
    """The response to a request with any method: `{status, headers, body, ok}`.

    Example:
        http_mock("OPTIONS", "https://api.test/*", {headers: {"Allow": "GET, HEAD"}})
        http_request("OPTIONS", "https://api.test/notes").headers.allow  // "GET, HEAD"
    """
    options = options_of(vm, "http_request", opts)
    if not method:
        raise HttpError("http_request: method is required")
    return _sent(vm, "http_request", method, url, options)


@builtin("http_session(opts?: dict) -> string", guarded=True)
def http_session(vm: Vm, opts: Value) -> str:
    """The handle of a session: requests in it share `opts`, connections, and the cookies that they are given.

    Example:
        http_mock("GET", "https://chat.test/me", {body: "Ada"})
        let session = http_session({auth: {bearer: "token"}})
        http_get("https://chat.test/me", {session: session}).body  // "Ada"
    """
    return http_calls_of(vm).sessions.open(options_of(vm, "http_session", opts))


@builtin("http_session_request(h: any, method: string, url: string, opts?: dict) -> dict", guarded=True)
def http_session_request(vm: Vm, h: Value, method: str, url: str, opts: Value) -> Dict:
    """The response to a request in a session, whose options hold unless `opts` has others.

    Example:
        http_mock("GET", "https://people.test/me", {body: "Bob"})
        http_session_request(http_session(), "GET", "https://people.test/me").body  // "Bob"
    """
    name = "http_session_request"
    options = options_of(vm, name, opts)
    session = http_calls_of(vm).sessions.get(name, h)
    if not method:
        raise HttpError(f"{name}: method is required")
    if not url:
        raise HttpError(f"{name}: URL is required")
    return _answered(vm, session_call(vm, name, method, url, options, MOST, session))


@builtin("http_session_close(h: any) -> bool")
def http_session_close(vm: Vm, h: Value) -> bool:
    """Close the session's connections and forget its cookies. False when there is no such session.

    Example:
        http_session_close(http_session())  // true
    """
    calls = http_calls_of(vm)
    session = calls.sessions.take("http_session_close", h)
    if session is None:
        return False
    calls.close_session(session)
    return True


def _with_body(vm: Vm, name: str, method: str, url: str, body: Value, opts: Value) -> Dict:
    if type(body) is dict and opts is None:
        body, opts = None, body
    return _sent(vm, name, method, url, with_body(body, options_of(vm, name, opts)))


def _sent(vm: Vm, name: str, method: str, url: str, options: Dict) -> Dict:
    return _answered(vm, call_of(vm, name, method, url, options, MOST))


def _answered(vm: Vm, call: Call) -> Dict:
    reply = http_calls_of(vm).reply(bounded(vm, call))
    return {"status": reply.status, "headers": {**reply.headers}, "body": reply.text(), "ok": reply.ok}
