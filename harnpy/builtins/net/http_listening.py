"""Servers that listen for requests. Spec: 04 §21.5."""

from __future__ import annotations

from harnpy.builtins.bridge.server_options import server_options
from harnpy.builtins.bridge.web_servers import servers_of
from harnpy.builtins.bridge.web_services import services_of
from harnpy.vm.declare.builtin import builtin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("http_server_listen(server: dict, options?: dict) -> dict", family="http_server", guarded=True)
def http_server_listen(vm: Vm, server: Value, options: Value) -> dict[str, Any]:
    """Have a server listen: `{id, kind, addr, host, port, url}`. Each request is handled by its own task.

    They run while the program waits for something; `http_server_serve` waits for the server's end.

    Example:
        let server = http_server()
        http_server_listen(server, {host: "127.0.0.1"}).url.starts_with("http://127.0.0.1:")  // true
    """
    given = server_options(vm, "http_server_listen", options)
    return services_of(vm).listen(vm, servers_of(vm).find(server), given).shown()


@builtin("http_server_serve(server: dict, options?: dict) -> dict", family="http_server", guarded=True)
def http_server_serve(vm: Vm, server: Value, options: Value) -> dict[str, Any]:
    """Wait until a server has been shut down; returns the server.

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
