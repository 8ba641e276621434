"""Requests over HTTP: alone, in sessions, as streams, mocked; and the egress policy. Spec: 04 §21.1-§21.4."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from harnpy.builtins.bridge.contexts import path_at_work
from harnpy.builtins.bridge.live_http import egress_of, http_calls_of
from harnpy.builtins.language.files import thrown
from harnpy.builtins.options import check_options
from harnpy.net.errors import HttpError
from harnpy.net.http_calls import Call
from harnpy.net.http_options import Given
from harnpy.net.http_replies import is_ok, read_responses
from harnpy.net.http_request import merged_options, read_request
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import Thrown
from harnpy.vm.values import display, type_name
from harnpy.world.effects import READ, WRITE
from harnpy.world.files import system_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.net.http_sessions import Session
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

    Dict = dict[str, Value]

# What requests are given, as the domain reads it. Spec: 04 §21.1.


def options_of(vm: Vm, name: str, given: Value) -> Dict:
    """Return the options of the builtin ``name``. Raises a `Fault` for ones that it doesn't take."""
    if given is None:
        return {}
    if type(given) is not dict:
        raise HttpError(f"{name}: options must be a dict, got {type_name(given)}")
    check_options(vm, name, given)
    return given


def with_body(body: Value, options: Dict) -> Dict:
    """Return the options with a body that was given as an argument; an empty one leaves room for a form."""
    if body is None or (body == "" and options.get("multipart") is not None):
        return options
    return {**options, "body": body}


def call_of(
    vm: Vm,
    name: str,
    method: str,
    url: str,
    options: Dict,
    most: int | None,
    surface: str = "http_request",
) -> Call:
    """Return a call as the builtin ``name`` makes it, in the session that an option names.

    ``most``: the bytes that a body may have unless an option says it; None is no limit.
    """
    if not url:
        raise HttpError(f"{name}: URL is required")
    options = {**options}
    handle = options.pop("session", None)
    session = None if handle is None else http_calls_of(vm).sessions.get(name, handle)
    return session_call(vm, name, method, url, options, most, session, surface)


def session_call(
    vm: Vm,
    name: str,
    method: str,
    url: str,
    options: Dict,
    most: int | None,
    session: Session | None,
    surface: str = "http_request",
) -> Call:
    if session is not None:
        options = merged_options(session.options, options)
    return Call(surface, read_request(name, method, url, options, ProgramDisk(vm, name), most), session)


def bounded(vm: Vm, call: Call) -> Call:
    """Return the call, whose body becomes one value."""
    largest = vm.sizes.characters
    most = call.request.most
    return call._replace(request=replace(call.request, most=largest if most is None else min(most, largest)))


class ProgramDisk:
    """The files of the program that calls the builtin ``name``."""

    def __init__(self, vm: Vm, name: str) -> None:
        self._vm = vm
        self._name = name

    def readable(self, path: str) -> str:
        place = path_at_work(self._vm, path)
        self._vm.world.require_place(READ, place)
        return place

    def content(self, path: str) -> bytes:
        place = path_at_work(self._vm, path)
        with thrown(f"{self._name}: failed to read file {place}"):
            return self._vm.world.files.read_bytes(place, self._vm.sizes.characters)


# Requests over HTTP, alone or in a session. Spec: 04 §21.1, §21.2.


builtin = partial(declare, family="http_client")

#: The bytes that a body may have unless an option says it.
MOST = 1 << 25


@builtin("http_get(url: string, opts?: dict) -> dict", guarded=True)
def http_get(vm: Vm, url: str, opts: Value) -> Dict:
    """Send a GET: `{status, headers, body, ok}`. A status that isn't 2xx doesn't throw.

    Example:
        http_mock("GET", "https://api.test/health", {body: "fine"})
        http_get("https://api.test/health").body  // "fine"
    """
    return _sent(vm, "http_get", "GET", url, options_of(vm, "http_get", opts))


@builtin("http_delete(url: string, opts?: dict) -> dict", guarded=True)
def http_delete(vm: Vm, url: str, opts: Value) -> Dict:
    """Send a DELETE: `{status, headers, body, ok}`.

    Example:
        http_mock("DELETE", "https://api.test/notes/*", {status: 204})
        http_delete("https://api.test/notes/7").ok  // true
    """
    return _sent(vm, "http_delete", "DELETE", url, options_of(vm, "http_delete", opts))


@builtin("http_post(url: string, body?: any, opts?: dict) -> dict", guarded=True)
def http_post(vm: Vm, url: str, body: Value, opts: Value) -> Dict:
    """Send a POST: `{status, headers, body, ok}`. A dict in second place, and last, is `opts`.

    Example:
        http_mock("POST", "https://api.test/notes", {status: 201})
        let headers = {"content-type": "application/json"}
        http_post("https://api.test/notes", json_stringify({text: "hi"}), {headers: headers}).status  // 201
    """
    return _with_body(vm, "http_post", "POST", url, body, opts)


@builtin("http_put(url: string, body?: any, opts?: dict) -> dict", guarded=True)
def http_put(vm: Vm, url: str, body: Value, opts: Value) -> Dict:
    """Send a PUT: `{status, headers, body, ok}`. A dict in second place, and last, is `opts`.

    Example:
        http_mock("PUT", "https://api.test/notes/7", {body: "kept"})
        http_put("https://api.test/notes/7", "hi").body  // "kept"
    """
    return _with_body(vm, "http_put", "PUT", url, body, opts)


@builtin("http_patch(url: string, body?: any, opts?: dict) -> dict", guarded=True)
def http_patch(vm: Vm, url: str, body: Value, opts: Value) -> Dict:
    """Send a PATCH: `{status, headers, body, ok}`. A dict in second place, and last, is `opts`.

    Example:
        http_mock("PATCH", "https://api.test/notes/7", {body: "changed"})
        http_patch("https://api.test/notes/7", "hi").body  // "changed"
    """
    return _with_body(vm, "http_patch", "PATCH", url, body, opts)


@builtin("http_request(method: string, url: string, opts?: dict) -> dict", guarded=True)
def http_request(vm: Vm, method: str, url: str, opts: Value) -> Dict:
    """Send a request with any method: `{status, headers, body, ok}`.

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
    """Open a session whose requests share `opts`, connections and cookies; return its handle.

    Example:
        http_mock("GET", "https://chat.test/me", {body: "Ada"})
        let session = http_session({auth: {bearer: "token"}})
        http_get("https://chat.test/me", {session: session}).body  // "Ada"
    """
    return http_calls_of(vm).sessions.open(options_of(vm, "http_session", opts))


@builtin("http_session_request(h: any, method: string, url: string, opts?: dict) -> dict", guarded=True)
def http_session_request(vm: Vm, h: Value, method: str, url: str, opts: Value) -> Dict:
    """Send a request in a session; `opts` override the session's options.

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

    Example: http_session_close(http_session())  // true
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


# Responses that are written to a file, or read piece by piece. Spec: 04 §21.2.


#: The bytes that a file may have unless an option says it.
_MOST_IN_FILE = 1 << 30


@builtin("http_download(url: string, dst: string, opts?: dict) -> dict", guarded=True)
def http_download(vm: Vm, url: str, dst: str, opts: Value) -> Dict:
    """Download a body to a file, completely or not at all: `{status, headers, bytes_written, ok}`.

    The file has the body whatever the status is: look at `ok`.

    Example:
        http_mock("GET", "https://files.test/a.txt", {body: "hello"})
        http_download("https://files.test/a.txt", "a.txt").bytes_written  // 5
    """
    name = "http_download"
    options = options_of(vm, name, opts)
    if not url:
        raise HttpError(f"{name}: URL is required")
    if not dst:
        raise HttpError(f"{name}: destination path is required")
    method = display(options.get("method") or "GET")
    call = call_of(vm, name, method, url, options, _MOST_IN_FILE, name)
    place = path_at_work(vm, dst)
    vm.world.require_place(WRITE, place)
    try:
        response, size = http_calls_of(vm).download(call, vm.world.files, place)
    except (OSError, ValueError) as error:
        raise Thrown(f"{name}: failed to write file {place}: {system_reason(error)}") from None
    status = response.status
    return {"status": status, "headers": {**response.headers}, "bytes_written": size, "ok": is_ok(status)}


@builtin("http_stream_open(url: string, opts?: dict) -> string", guarded=True)
def http_stream_open(vm: Vm, url: str, opts: Value) -> str:
    """Return the handle of a response whose body is read as it arrives. `opts.method` is GET unless given.

    Example:
        http_mock("GET", "https://files.test/log", {body: "one two"})
        let log = http_stream_open("https://files.test/log")
        bytes_to_string(http_stream_read(log, 3))  // "one"
    """
    options = options_of(vm, "http_stream_open", opts)
    method = display(options.get("method") or "GET")
    return http_calls_of(vm).stream(
        call_of(vm, "http_stream_open", method, url, options, None, "http_stream_open")
    )


@builtin("http_stream_info(h: any) -> dict")
def http_stream_info(vm: Vm, h: Value) -> Dict:
    """Return `{status, headers, ok}` of an open stream.

    Example:
        http_mock("GET", "https://files.test/log", {status: 404})
        http_stream_info(http_stream_open("https://files.test/log")).ok  // false
    """
    stream = http_calls_of(vm).streams.get("http_stream_info", h)
    return {"status": stream.status, "headers": {**stream.headers}, "ok": is_ok(stream.status)}


@builtin("http_stream_read(h: any, max_bytes: int = 1048576) -> bytes | nil")
def http_stream_read(vm: Vm, h: Value, max_bytes: int) -> bytes | None:
    """Return the next bytes as soon as there are some, up to a maximum; nil at the end.

    Example:
        http_mock("GET", "https://files.test/log", {body: "one"})
        let log = http_stream_open("https://files.test/log")
        http_stream_read(log)
        http_stream_read(log)  // nil
    """
    calls = http_calls_of(vm)
    stream = calls.streams.get("http_stream_read", h)
    if max_bytes < 1:
        raise HttpError(f"http_stream_read: max_bytes must be positive, got {max_bytes}")
    return calls.read(stream, max_bytes)


@builtin("http_stream_close(h: any) -> bool")
def http_stream_close(vm: Vm, h: Value) -> bool:
    """Close a stream. False when there is no such stream.

    Example:
        http_mock("GET", "https://files.test/log", {})
        http_stream_close(http_stream_open("https://files.test/log"))  // true
    """
    calls = http_calls_of(vm)
    stream = calls.streams.take("http_stream_close", h)
    if stream is None:
        return False
    calls.close_stream(stream)
    return True


# Responses without a network. Spec: 04 §21.3.


mock_builtin = partial(declare, family="http_server")


@mock_builtin("http_mock(method: string, url_pattern: string, response?: dict) -> nil")
def http_mock(vm: Vm, method: str, url_pattern: str, response: Value) -> None:
    """Mock responses to matching URLs, without a network.

    `*` as a method is any, and in a pattern any characters.

    `response`: `{status, body, headers}`, or `{responses: [..]}`, of which the last one stays. A mock for the
    same method and pattern is replaced; among several the first that matches answers.

    Example:
        http_mock("GET", "https://api.test/*", {responses: [{status: 503}, {body: "up"}]})
        http_get("https://api.test/health", {retry: {max: 1, backoff_ms: 1}}).body  // "up"
    """
    response = {} if response is None else response
    check_options(vm, "http_mock", response)
    http_calls_of(vm).mocks.add(method, url_pattern, read_responses(response))


@mock_builtin("http_mock_clear() -> nil")
def http_mock_clear(vm: Vm) -> None:
    """Forget all mocks and the calls that they answered.

    Example:
        http_mock_clear()
        http_mock_calls()  // []
    """
    http_calls_of(vm).mocks.clear()


@mock_builtin("http_mock_calls(opts?: dict) -> list")
def http_mock_calls(vm: Vm, opts: Value) -> list[Dict]:
    """Return the calls that mocks answered, in order: `[{method, url, headers, body}]`, with secrets masked.

    `opts`: `{redact_sensitive: false}` or `{include_sensitive: true}` shows them.

    Example:
        http_mock_clear()
        http_mock("POST", "https://api.test/notes", {status: 201})
        http_post("https://api.test/notes", "hi", {auth: {bearer: "secret"}})
        http_mock_calls()[0].headers.authorization  // "[redacted]"
    """
    given = Given("http_mock_calls", options_of(vm, "http_mock_calls", opts))
    reveal = given.flag("include_sensitive", False) or not given.flag("redact_sensitive", True)
    return http_calls_of(vm).mocks.calls(reveal)


# What a program lets itself reach. Spec: 04 §21.4.


@builtin("egress_policy(config: dict) -> dict", family="policy")
def egress_policy(vm: Vm, config: Value = None) -> dict[str, Value]:
    """Restrict which hosts the run may reach: HTTP, events, sockets, models, MCP over HTTP. Once per run.

    Rules are hosts, `*.suffix`, addresses, ranges and URLs, each with a `:port` or not. Deny beats allow
    beats `default`. A blocked request throws `{type: "EgressBlocked", category: "egress_blocked", …}`.

    Example: egress_policy({allow: ["api.example.com:443"], deny: ["10.0.0.0/8"]}).default  // "deny"
    """
    from harnpy.net.egress_policies import read_config
    from harnpy.world.egress_rules import STDLIB

    egress = egress_of(vm)
    policy = read_config("egress_policy", config, STDLIB)
    egress.configure(policy)
    return {
        "configured": True,
        "source": policy.source,
        "default": policy.default,
        "allow": policy.allow.texts,
        "deny": policy.deny.texts,
    }
