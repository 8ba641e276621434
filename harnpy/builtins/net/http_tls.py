"""How a server is reached by TLS, and the headers that go with it. Spec: 04 §21.5."""

from __future__ import annotations

from harnpy.builtins.bridge.places import path_at_work
from harnpy.builtins.bridge.server_options import server_options
from harnpy.net.server import tls
from harnpy.net.server.faults import ServerFault
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.values.objects import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("http_server_tls_plain() -> dict", family="http_server")
def http_server_tls_plain(vm: Vm) -> dict[str, Any]:
    """No TLS: `{mode: "plain", scheme: "http", terminate_tls: false, hsts: nil}`.

    Example:
        http_server_tls_plain().scheme  // "http"
    """
    return tls.plain()


@builtin("http_server_tls_edge(options?: dict) -> dict", family="http_server")
def http_server_tls_edge(vm: Vm, options: Value) -> dict[str, Any]:
    """TLS that a proxy in front of the server ends; browsers are told to use nothing else.

    Example:
        let config = http_server_tls_edge({hsts_max_age_seconds: 300})
        http_server_security_headers(config)  // {"strict-transport-security": "max-age=300"}
    """
    return tls.edge(server_options(vm, "http_server_tls_edge", options))


@builtin("http_server_tls_pem(cert: string, key: string) -> dict", family="http_server")
def http_server_tls_pem(vm: Vm, cert: str, key: str) -> dict[str, Any]:
    """TLS by the certificate and the key in two PEM files, which must be there.

    Example:
        write_file("cert.pem", "")
        write_file("key.pem", "")
        http_server_tls_pem("cert.pem", "key.pem").mode  // "pem"
    """
    for path in (cert, key):
        if not vm.world.files.exists(path_at_work(vm, path)):
            raise ServerFault(f"there is no file '{path}'")
    return tls.pem(cert, key)


@builtin("http_server_tls_self_signed_dev(hosts?: list) -> dict", family="http_server")
def http_server_tls_self_signed_dev(vm: Vm, hosts: Value) -> dict[str, Any]:
    """TLS by a certificate for `hosts` (`["localhost"]`) that is made now, and that nobody trusts: for tests.

    Example:
        http_server_tls_self_signed_dev(["localhost", "127.0.0.1"]).mode  // "self_signed_dev"
    """
    names = ["localhost"] if hosts is None else [hosts] if type(hosts) is str else hosts
    if type(names) is not list or not names or not all(type(name) is str and name for name in names):
        raise ServerFault(f"hosts must be a list of names, got {type_name(hosts)}")
    from harnpy.crypto.certificates import SECRET_BYTES, self_signed

    secret = vm.unguarded.entropy.bytes(SECRET_BYTES)
    try:
        certificate, key = self_signed(names, secret, vm.clock.now())
    except ValueError as error:
        raise ServerFault(f"no certificate can be made for {', '.join(names)}: {error}") from None
    return tls.self_signed_dev(names, certificate, key)


@builtin("http_server_security_headers(config: dict) -> dict", family="http_server")
def http_server_security_headers(vm: Vm, config: Value) -> dict[str, Any]:
    """The headers for a TLS configuration: `strict-transport-security` with `edge` and `pem`, else none.

    Example:
        http_server_security_headers(http_server_tls_plain())  // {}
    """
    return tls.security_headers(config)
