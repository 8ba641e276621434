"""HTTP servers within a program: routes, hooks, handlers, responses, listening. Spec: 04 §21.5."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.net.web_services import services_of
from harnpy.builtins.options import check_options, server_options
from harnpy.faults import Interruption
from harnpy.formats.display import display, type_name
from harnpy.formats.json import to_json
from harnpy.net import server_messages
from harnpy.net.server import Server, route
from harnpy.net.server_messages import request_from_dict
from harnpy.net.server_options import HandlerFailed, OutOfTime, ServerFault
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import FAILURES, Interrupted
from harnpy.vm.run.backtrace import describe
from harnpy.vm.run.tasks import deadline_begin, deadline_end
from harnpy.vm.values import Builtin, Fn
from harnpy.vm.values import type_name as values_type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

builtin = partial(declare, family="http_server")

# The HTTP servers of a program, and its functions as their handlers. Spec: 04 §21.5.


class Servers:
    """Those of one program, by id."""

    def __init__(self, vm: Vm) -> None:
        self._around = _Program(vm)
        self._open: dict[str, Server] = {}

    def open(self, options: dict[str, Any]) -> Server:
        server = Server(f"http_server_{len(self._open) + 1}", options, self._around)
        self._open[server.id] = server
        return server

    def find(self, handle: Value) -> Server:
        """Return the server that a program names by its handle. Raises ServerFault."""
        id = handle.get("id") if type(handle) is dict else handle
        found = self._open.get(id) if type(id) is str else None
        if found is None:
            raise ServerFault(f"there is no server {display(id)}; `http_server` makes one")
        return found


def servers_of(vm: Vm) -> Servers:
    return vm.state(Servers, lambda: Servers(vm))


def handler_of(vm: Vm, value: Value) -> Callable[..., Any]:
    """Return a function of the program, whose failures are `HandlerFailed`.

    Raises ServerFault for any other value.
    """
    if type(value) not in (Fn, Builtin):
        raise ServerFault(f"a handler must be a function, got {type_name(value)}")

    def handler(*arguments: Any) -> Any:
        try:
            return vm.call(value, *arguments)
        except Interrupted as error:
            raise Interruption(str(error)) from error
        except FAILURES as error:
            raise HandlerFailed(describe(error, 0)) from error

    return handler


class _Program:
    """The program that runs in a Vm, as its servers see it."""

    def __init__(self, vm: Vm) -> None:
        self._vm = vm

    def new_id(self) -> str:
        return self._vm.world.ids.new()

    def log(self, message: str) -> None:
        from harnpy.formats.secrets.masking import mask_secrets

        self._vm.unguarded.warn("http_server", mask_secrets(message))

    def within(self, milliseconds: int, call: Callable[[], Any]) -> Any:
        end = deadline_begin(self._vm.tasks, milliseconds)
        try:
            return call()
        except Interruption as error:
            if isinstance(error.__cause__, Interrupted) and error.__cause__.deadline == end:
                raise OutOfTime(milliseconds) from None
            raise
        finally:
            deadline_end(self._vm.tasks, end)


# Responses that handlers return, and reading a header. Spec: 04 §21.5.


@builtin("http_response(status: int = 200, body?: any, headers?: dict) -> dict")
def http_response(vm: Vm, status: int, body: Value, headers: Value) -> dict[str, Any]:
    """Return a response `{type: "http_response", status, headers, body}`; a body that isn't bytes is text.

    Example: http_response(404, "no such page").headers  // {"content-type": "text/plain; charset=utf-8"}
    """
    return server_messages.response(status, body, headers)


@builtin("http_response_text(value: any, options?: dict) -> dict")
def http_response_text(vm: Vm, value: Value, options: Value) -> dict[str, Any]:
    """Return a response with any value's text; `options` are `{status = 200, headers}`.

    Example: http_response_text("created", {status: 201}).status  // 201
    """
    text = "" if value is None else value
    return server_messages.response_with_options(
        text, server_options(vm, "http_response_text", options), server_messages.TEXT
    )


@builtin("http_response_json(value: any, options?: dict) -> dict")
def http_response_json(vm: Vm, value: Value, options: Value) -> dict[str, Any]:
    r"""Return a response with a value as JSON; `options` are `{status = 200, headers}`.

    Example: http_response_json({a: [1, 2]}).body  // "{\"a\":[1,2]}"
    """
    given = server_options(vm, "http_response_json", options)
    return server_messages.response_with_options(to_json(value), given, server_messages.JSON)


@builtin("http_response_bytes(data: bytes, options?: dict) -> dict")
def http_response_bytes(vm: Vm, data: Value, options: Value) -> dict[str, Any]:
    """Return a response with bytes, or a text as UTF-8; `options` are `{status = 200, headers}`.

    Example:
        http_response_bytes(bytes_from_string("hi")).headers  // {"content-type": "application/octet-stream"}
    """
    given = server_options(vm, "http_response_bytes", options)
    if type(data) is str:
        data = data.encode("utf-8", "surrogatepass")
    if type(data) is not bytes:
        raise ServerFault(f"the body must be bytes or a string, got {values_type_name(data)}")
    return server_messages.response_with_options(data, given, server_messages.BYTES)


@builtin("http_header(headers: dict, name: string) -> string | nil")
def http_header(vm: Vm, headers: Value, name: str) -> str | None:
    """Return the header with that name, in any case, of headers or of a message, or nil.

    Example: http_header({headers: {"Content-Type": "text/html"}}, "content-type")  // "text/html"
    """
    if type(headers) is dict and type(headers.get("headers")) is dict:
        headers = headers["headers"]
    return server_messages.find_header(headers, name) if type(headers) is dict else None


# HTTP servers within a program: routes, hooks, readiness, and requests that tests make. Spec: 04 §21.5.


@builtin("http_server(options?: dict) -> dict")
def http_server(vm: Vm, options: Value) -> dict[str, Any]:
    """Return a new server without routes, `{id, kind: "http_server"}`. Nobody reaches it until it listens.

    Example:
        let server = http_server({max_body_bytes: 1000})
        http_server_route(server, "GET", "/hello/{name}", { request -> "Hello " + request.params.name })
        http_server_test(server, {path: "/hello/Ada"}).body  // "Hello Ada"
    """
    return servers_of(vm).open(server_options(vm, "http_server", options)).handle()


@builtin(
    "http_server_route(server: dict, method: string, template: string, handler: closure,"
    " options?: dict) -> dict",
)
def http_server_route(
    vm: Vm, server: Value, method: str, template: str, handler: Value, options: Value
) -> dict[str, Any]:
    """Let `handler` answer requests with a method (`*`: any) and a path like `/users/{id}` or `/users/:id`.

    The first route that fits is taken. The handler returns the response: one of `http_response`, nil
    for an empty one, anything else as a text. Returns the server.

    Example:
        let server = http_server()
        http_server_route(server, "POST", "/echo", { request -> http_response(201, request.body) })
        http_server_test(server, {method: "POST", path: "/echo", body: "hi"}).status  // 201
    """
    given = server_options(vm, "http_server_route", options)
    found = servers_of(vm).find(server)
    found.routes.append(route(method, template, handler_of(vm, handler), given))
    return found.handle()


@builtin("http_server_before(server: dict, hook: closure) -> dict")
def http_server_before(vm: Vm, server: Value, hook: Value) -> dict[str, Any]:
    """Call `hook` with every request before its handler; return the server.

    A response that it returns is sent, and no handler runs. Another dict is the request from then on.

    Example:
        let server = http_server()
        http_server_before(server, { request ->
          if http_header(request, "authorization") == nil { http_response(401, "who are you?") }
        })
        http_server_test(server, {path: "/"}).status  // 401
    """
    found = servers_of(vm).find(server)
    found.before.append(handler_of(vm, hook))
    return found.handle()


@builtin("http_server_after(server: dict, hook: closure) -> dict")
def http_server_after(vm: Vm, server: Value, hook: Value) -> dict[str, Any]:
    """Call `hook` with every request and its response; its result replaces the response, unless nil.

    Returns the server.

    Example:
        let server = http_server()
        http_server_after(server, { request, response ->
          response + {headers: response.headers + {"x-served-by": "harn"}}
        })
        http_header(http_server_test(server, {path: "/"}), "X-Served-By")  // "harn"
    """
    found = servers_of(vm).find(server)
    found.after.append(handler_of(vm, hook))
    return found.handle()


@builtin("http_server_request(server: dict, request: dict) -> dict")
def http_server_request(vm: Vm, server: Value, request: Value) -> dict[str, Any]:
    """Return the server's response to a local request: `{method, path, query, headers, body}`.

    Example:
        let server = http_server()
        http_server_route(server, "GET", "/search", { request -> request.query.q })
        http_server_request(server, {path: "/search?q=harn"}).body  // "harn"
    """
    return _respond(vm, "http_server_request", server, request)


@builtin("http_server_test(server: dict, request: dict) -> dict")
def http_server_test(vm: Vm, server: Value, request: Value) -> dict[str, Any]:
    """Do what `http_server_request` does, under a name that reads better in tests.

    Example: http_server_test(http_server(), {path: "/nowhere"}).status  // 404
    """
    return _respond(vm, "http_server_test", server, request)


@builtin("http_server_set_ready(server: dict, ready: bool = true) -> bool")
def http_server_set_ready(vm: Vm, server: Value, ready: Value) -> bool:
    """Set whether the server handles requests; while it doesn't, it responds with 503. Returns `ready`.

    Example:
        let server = http_server({ready: false})
        http_server_set_ready(server, true)
        http_server_ready(server)  // true
    """
    if type(ready) is not bool:
        raise ServerFault(f"`ready` must be a bool, got {values_type_name(ready)}")
    servers_of(vm).find(server).is_ready = ready
    return ready


@builtin("http_server_readiness(server: dict, check: closure) -> dict")
def http_server_readiness(vm: Vm, server: Value, check: Value) -> dict[str, Any]:
    """Make the server's readiness depend on `check()` as well; it is called for each request.

    Returns the server.

    Example:
        let server = http_server()
        http_server_readiness(server, { -> false })
        http_server_ready(server)  // false
    """
    found = servers_of(vm).find(server)
    found.checks.append(handler_of(vm, check))
    return found.handle()


@builtin("http_server_ready(server: dict) -> bool")
def http_server_ready(vm: Vm, server: Value) -> bool:
    """Return true if the server was set ready, its checks pass, and it isn't shut down.

    Example: http_server_ready(http_server())  // true
    """
    return servers_of(vm).find(server).ready()


@builtin("http_server_on_shutdown(server: dict, hook: closure) -> dict")
def http_server_on_shutdown(vm: Vm, server: Value, hook: Value) -> dict[str, Any]:
    """Call `hook()` once when the server is shut down, after the last request. Returns the server.

    Example:
        let server = http_server()
        http_server_on_shutdown(server, { -> println("bye") })
        http_server_shutdown(server)  // true
    """
    found = servers_of(vm).find(server)
    found.on_shutdown.append(handler_of(vm, hook))
    return found.handle()


@builtin("http_server_shutdown(server: dict) -> bool")
def http_server_shutdown(vm: Vm, server: Value) -> bool:
    """Shut the server down: accept no more requests, and call its hooks. False if it was already.

    Of one that listens, running requests go on for `grace_ms` at most. It waits for them, unless it is called
    by one.

    Example:
        let server = http_server()
        [http_server_shutdown(server), http_server_shutdown(server)]  // [true, false]
    """
    found = servers_of(vm).find(server)
    service = services_of(vm).find(found)
    if service is not None:
        return service.shut_down()
    if found.is_shut_down:
        return False
    found.is_shut_down = True
    found.run_shutdown_hooks()
    return True


def _respond(vm: Vm, builtin: str, server: Value, request: Value) -> dict[str, Any]:
    check_options(vm, builtin, request)
    return servers_of(vm).find(server).respond(request_from_dict(request))


# Servers that listen for requests. Spec: 04 §21.5.


@builtin("http_server_listen(server: dict, options?: dict) -> dict", guarded=True)
def http_server_listen(vm: Vm, server: Value, options: Value) -> dict[str, Any]:
    """Start listening: `{id, kind, addr, host, port, url}`. Each request is handled by its own task.

    They run while the program waits for something; `http_server_serve` waits for the server's end.

    Example:
        let server = http_server()
        http_server_listen(server, {host: "127.0.0.1"}).url.starts_with("http://127.0.0.1:")  // true
    """
    given = server_options(vm, "http_server_listen", options)
    return services_of(vm).listen(vm, servers_of(vm).find(server), given).shown()


@builtin("http_server_serve(server: dict, options?: dict) -> dict", guarded=True)
def http_server_serve(vm: Vm, server: Value, options: Value) -> dict[str, Any]:
    """Wait until a server has been shut down; return the server.

    It begins to listen, with the options of `http_server_listen`, unless it does already.

    Example:
        let server = http_server()
        spawn { http_server_shutdown(server) }
        http_server_serve(server).kind  // "http_server"
    """
    given = server_options(vm, "http_server_serve", options)
    found = servers_of(vm).find(server)
    services = services_of(vm)
    service = services.find(found)
    if service is None or given:
        service = services.listen(vm, found, given)
    service.wait()
    return found.handle()
