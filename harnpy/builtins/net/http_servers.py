"""HTTP servers within a program: routes, hooks, readiness, and requests that tests make. Spec: 04 §21.5."""

from __future__ import annotations

from harnpy.builtins.bridge.option_tables import check_options
from harnpy.builtins.bridge.server_options import server_options
from harnpy.builtins.bridge.web_servers import handler_of, servers_of
from harnpy.builtins.bridge.web_services import services_of
from harnpy.net.server.faults import ServerFault
from harnpy.net.server.requests import from_dict
from harnpy.net.server.routes import route
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.values.objects import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("http_server(options?: dict) -> dict", family="http_server")
def http_server(vm: Vm, options: Value) -> dict[str, Any]:
    """A new server without routes, `{id, kind: "http_server"}`. Nobody reaches it until it listens.

    Example:
        let server = http_server({max_body_bytes: 1000})
        http_server_route(server, "GET", "/hello/{name}", { request -> "Hello " + request.params.name })
        http_server_test(server, {path: "/hello/Ada"}).body  // "Hello Ada"
    """
    return servers_of(vm).open(server_options(vm, "http_server", options)).handle()


@builtin(
    "http_server_route(server: dict, method: string, template: string, handler: closure,"
    " options?: dict) -> dict",
    family="http_server",
)
def http_server_route(
    vm: Vm, server: Value, method: str, template: str, handler: Value, options: Value
) -> dict[str, Any]:
    """Have `handler` answer requests of a method, `*` for any, to a path like `/users/{id}` or `/users/:id`.

    The first route that fits is taken. What the handler returns is the response: one of `http_response`, nil
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


@builtin("http_server_before(server: dict, hook: closure) -> dict", family="http_server")
def http_server_before(vm: Vm, server: Value, hook: Value) -> dict[str, Any]:
    """Have `hook` called with every request before its handler; returns the server.

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


@builtin("http_server_after(server: dict, hook: closure) -> dict", family="http_server")
def http_server_after(vm: Vm, server: Value, hook: Value) -> dict[str, Any]:
    """Have `hook` called with every request and its response; what it returns is the response, unless nil.

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


@builtin("http_server_request(server: dict, request: dict) -> dict", family="http_server")
def http_server_request(vm: Vm, server: Value, request: Value) -> dict[str, Any]:
    """The server's response to a request that nobody sends: `{method, path, query, headers, body}`.

    Example:
        let server = http_server()
        http_server_route(server, "GET", "/search", { request -> request.query.q })
        http_server_request(server, {path: "/search?q=harn"}).body  // "harn"
    """
    return _respond(vm, "http_server_request", server, request)


@builtin("http_server_test(server: dict, request: dict) -> dict", family="http_server")
def http_server_test(vm: Vm, server: Value, request: Value) -> dict[str, Any]:
    """`http_server_request` by the name that tests read better with.

    Example:
        http_server_test(http_server(), {path: "/nowhere"}).status  // 404
    """
    return _respond(vm, "http_server_test", server, request)


@builtin("http_server_set_ready(server: dict, ready: bool = true) -> bool", family="http_server")
def http_server_set_ready(vm: Vm, server: Value, ready: Value) -> bool:
    """Set whether the server handles requests; when it doesn't, each is answered with 503. Returns `ready`.

    Example:
        let server = http_server({ready: false})
        http_server_set_ready(server, true)
        http_server_ready(server)  // true
    """
    if type(ready) is not bool:
        raise ServerFault(f"`ready` must be a bool, got {type_name(ready)}")
    servers_of(vm).find(server).is_ready = ready
    return ready


@builtin("http_server_readiness(server: dict, check: closure) -> dict", family="http_server")
def http_server_readiness(vm: Vm, server: Value, check: Value) -> dict[str, Any]:
    """Have the server be ready only while `check()` returns true, too; it is called for each request.

    Returns the server.

    Example:
        let server = http_server()
        http_server_readiness(server, { -> false })
        http_server_ready(server)  // false
    """
    found = servers_of(vm).find(server)
    found.checks.append(handler_of(vm, check))
    return found.handle()


@builtin("http_server_ready(server: dict) -> bool", family="http_server")
def http_server_ready(vm: Vm, server: Value) -> bool:
    """Whether the server handles requests: it was set ready, its checks say so, and it isn't shut down.

    Example:
        http_server_ready(http_server())  // true
    """
    return servers_of(vm).find(server).ready()


@builtin("http_server_on_shutdown(server: dict, hook: closure) -> dict", family="http_server")
def http_server_on_shutdown(vm: Vm, server: Value, hook: Value) -> dict[str, Any]:
    """Have `hook()` called once when the server is shut down, after the last request. Returns the server.

    Example:
        let server = http_server()
        http_server_on_shutdown(server, { -> println("bye") })
        http_server_shutdown(server)  // true
    """
    found = servers_of(vm).find(server)
    found.on_shutdown.append(handler_of(vm, hook))
    return found.handle()


@builtin("http_server_shutdown(server: dict) -> bool", family="http_server")
def http_server_shutdown(vm: Vm, server: Value) -> bool:
    """Shut the server down: it takes no more requests, and its hooks are called. False if it was already.

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
    return servers_of(vm).find(server).respond(from_dict(request))
