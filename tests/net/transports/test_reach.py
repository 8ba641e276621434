"""Streams of events and WebSockets reach what the rules allow, and nothing else; over TLS, too."""

from __future__ import annotations

import asyncio
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest
import trustme
from websockets.sync.server import ServerConnection, serve

from harnpy import Vm
from harnpy.vm.errors import VmError
from tests.net.transports.loopback import Connection, served


def blocked(program: str, address: str, vm: Vm | None = None) -> Any:
    """Surface, host and reason of what was refused."""
    told = program.replace("URL", f"://{address}/")
    return (vm or Vm()).run_source(
        f"let found = try {{ {told} }} catch (e) {{ [e?.surface, e?.host, e?.reason] }}\nreturn found"
    )


@pytest.mark.parametrize(
    ("connect", "surface"),
    [
        ('sse_connect("GET", "httpURL")', "sse_connect"),
        ('websocket_connect("wsURL")', "websocket_connect"),
    ],
)
def test_nothing_is_connected_to_that_a_policy_denies(connect: str, surface: str) -> None:
    arrived: list[Connection] = []

    async def handle(connection: Connection) -> None:
        arrived.append(connection)

    with served(handle) as address:
        found = blocked(f'egress_policy({{deny: ["127.0.0.0/8"]}})\n{connect}', address)
        assert found == [surface, "127.0.0.1", "matched deny rule `127.0.0.0/8`"]
        by_name = blocked(
            f'egress_policy({{deny: ["127.0.0.0/8"]}})\n{connect}', address.replace("127.0.0.1", "localhost")
        )
        assert by_name[0] == surface
    assert not arrived


def test_a_redirect_of_events_to_what_is_denied_is_refused() -> None:
    async def handle(connection: Connection) -> None:
        await connection.answer("307 Go", "Location: http://denied.test/x", body=b"")

    with served(handle) as address:
        found = blocked('egress_policy({deny: ["denied.test"]})\nsse_connect("GET", "httpURL")', address)
    assert found == ["sse_connect", "denied.test", "matched deny rule `denied.test`"]


def test_a_policy_cuts_what_it_denies_and_no_new_connection_is_made() -> None:
    connections: list[Connection] = []

    async def handle(connection: Connection) -> None:
        connections.append(connection)
        await connection.answer()
        await connection.chunk(b"retry: 0\n\n")
        for number in range(100_000):
            await connection.chunk(b"id: %d\ndata: %d\n\n" % (number, number))
            await asyncio.sleep(0)

    with served(handle) as address:
        told = Vm().run_source(f"""
          let feed = sse_connect("GET", "http://{address}/")
          for i in 1 to 10 {{ sse_receive(feed) }}
          egress_policy({{deny: ["127.0.0.1"]}})
          return try {{ while sse_receive(feed) != nil {{ }} }} catch (e) {{ "${{e}}" }}
        """)
        assert told.endswith("the connection to 127.0.0.1 was cut by the egress policy")
    assert len(connections) == 1


@pytest.mark.parametrize("trusted", [True, False])
def test_websockets_over_tls(trusted: bool, tmp_path: Path) -> None:
    authority, other = trustme.CA(), trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    bundle = tmp_path / "ca.pem"
    (authority if trusted else other).cert_pem.write_to_path(str(bundle))

    def handle(connection: ServerConnection) -> None:
        for message in connection:
            connection.send(message)

    with serve(handle, "127.0.0.1", 0, ssl=context) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = "wss://{}:{}/".format(*server.socket.getsockname())
            program = f"""
              let socket = websocket_connect("{url}", {{tls: {{ca_bundle_path: "{bundle}"}}}})
              websocket_send(socket, "x".repeat(100000))
              return len(websocket_receive(socket).data)
            """
            if trusted:
                assert Vm().run_source(program) == 100_000
            else:
                with pytest.raises(
                    VmError, match=r"websocket_connect: TLS: the certificate of 127.0.0.1 isn't trusted"
                ):
                    Vm().run_source(program)
        finally:
            server.shutdown()
            thread.join(10)
