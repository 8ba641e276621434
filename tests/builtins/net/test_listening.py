"""Servers that listen: what they are sent, how they end. Spec: 04 §21.5."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import sys
from contextlib import closing
from io import StringIO

import pytest

from harnpy import Vm
from harnpy.builtins.net.sse_server import streams_of
from harnpy.version import install_command
from harnpy.vm.errors import LimitExceeded, VmError
from harnpy.vm.limits import Limits
from harnpy.world import World
from harnpy.world.streams import RealStreams
from tests.builtins.net.web_service import received, service
from tests.counts import COUNT

#: Events of one stream; more by hand.
EVENTS = COUNT.server_events

ECHO = """
http_server_route(server, "*", "/echo/{name}", { request ->
  http_response_json({
    method: request.method, name: request.params.name, query: request.query_string,
    headers: request.headers, body: request.body, ip: request.client_ip,
  })
})
"""


def head(line: str, *headers: str) -> bytes:
    return "\r\n".join([f"{line} HTTP/1.1", "host: x", "connection: close", *headers, "", ""]).encode()


def test_requests_of_all_kinds() -> None:
    with service(ECHO, "{max_head_bytes: 2000}") as web:
        for status, sent in {
            b"200": head("GET /echo/a"),
            b"404": head("GET /echo/../echo/a"),
            b"400": b"nonsense\r\n\r\n",
            b"413": head("POST /echo/a", "content-length: 1001"),
        }.items():
            assert web.say(sent).split()[1] == status
        assert web.say(head("GET /echo/a", f"x: {'y' * 4000}")).split()[1] == b"400"
        assert b'"name":"\xc3\xa9/b"' in web.say(head("GET /echo/%C3%A9%2Fb?q=%20"))
        assert b'"x":"1, 2"' in web.say(head("GET /echo/a", "X: 1", "x: 2"))
        answer = web.say(head("HEAD /echo/a"))
        assert answer.endswith(b"\r\n\r\n")
        assert b"content-length: 1" in answer
        # A body in chunks is measured while it comes; one in time is whole.
        chunked = head("POST /echo/a", "transfer-encoding: chunked")
        assert b'"body":"abcd"' in web.say(chunked, b"2\r\nab\r\n", b"2\r\ncd\r\n0\r\n\r\n")
        large = web.say(chunked, b"3e8\r\n" + b"x" * 1000 + b"\r\n", b"1\r\nx\r\n")
        assert b"413" in large
        assert large.endswith(b"request body too large: 1001 > 1000 bytes")
        # Who sends on sees the response nevertheless.
        more = web.say(head("POST /echo/a", "content-length: 5000000"), b"x" * 5_000_000)
        assert more.endswith(b"request body too large: 5000000 > 1000 bytes")
        # Two requests of one connection are answered in turn.
        both = web.say(b"GET /echo/1 HTTP/1.1\r\nhost: x\r\n\r\n" + head("GET /echo/2"))
        assert both.index(b'"name":"1"') < both.index(b'"name":"2"')
        assert b'"ip":"127.0.0.1"' in both


def test_requests_are_handled_at_once() -> None:
    """One waits for what another one brings."""
    meet = """
    let bell = channel("bell", 1)
    http_server_route(server, "GET", "/wait", { _ -> report("in"); receive(bell) })
    http_server_route(server, "GET", "/ring", { _ -> send(bell, "rung"); nil })
    """
    with service(meet) as web, closing(web.connect()) as waiting:
        waiting.sendall(head("GET /wait"))
        assert web.next() == "in"
        assert web.get("/ring") == (204, "")
        assert received(waiting).endswith(b"rung")


def test_who_stops_waiting_for_a_client_is_forgotten_by_the_stream() -> None:
    vm = Vm()
    vm.run_source("""
    let response = sse_server_response({max_buffered_events: 1})
    sse_server_send(response, "first")
    for i in 1 to 3 { try { deadline 1ms { sse_server_send(response, "more") } } catch (error) { error } }
    """)
    stream = streams_of(vm).get("sse_response_1")
    assert stream is not None
    assert stream.is_full()
    assert stream.waiting == []


def test_an_error_is_a_500_that_is_logged_without_secrets() -> None:
    log = StringIO()
    vm = Vm(World(streams=RealStreams(stderr=log.write)))
    fails = 'http_server_route(server, "GET", "/", { _ -> throw "password=hunter2secret" })'
    with service(fails, vm=vm) as web:
        status, body = web.get("/")
        assert (status, body[:22]) == (500, "internal server error ")
    assert f"error {body[22:]} in GET /: Thrown: password=[redacted:secret]" in log.getvalue()


def test_a_client_that_leaves_ends_its_request() -> None:
    waits = """
    http_server_route(server, "GET", "/", { _ ->
      report("in")
      try { sleep(1000s) } catch (error) { report(error) } finally { report("out") }
    })
    """
    with service(waits) as web:
        with closing(web.connect()) as connection:
            connection.sendall(head("GET /"))
            assert web.next() == "in"
        assert web.next() == "kind:cancelled:VM cancelled by host"
        assert web.next() == "out"


def test_what_comes_too_slowly_is_refused() -> None:
    with service(ECHO, "{head_timeout_ms: 1, body_timeout_ms: 1}") as web:
        with closing(web.connect()) as silent:
            assert received(silent) == b""
        with closing(web.connect()) as trickling:
            trickling.sendall(b"GET /echo/a HTTP/1.1\r\nhost:")
            assert received(trickling) == b""
    with service(ECHO, "{body_timeout_ms: 1}") as web:
        assert web.say(head("POST /echo/a", "content-length: 9"), b"abc").split()[1] == b"408"


def test_an_address_that_is_taken_and_other_mistakes() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(VmError, match=f"can't listen at 127.0.0.1:{port}: Address already in use"):
            Vm().run_source(f"http_server_listen(http_server(), {{port: {port}}})")
    twice = "let s = http_server()\nhttp_server_listen(s)\nhttp_server_listen(s)"
    with pytest.raises(VmError, match=r"http_server_1 listens already, at http://127\.0\.0\.1:"):
        Vm().run_source(twice)
    with pytest.raises(VmError, match="http_server_1 is shut down"):
        Vm().run_source("let s = http_server()\nhttp_server_shutdown(s)\nhttp_server_listen(s)")
    with pytest.raises(VmError, match="http_server_1 is shut down"):
        Vm().run_source(
            "let s = http_server()\nhttp_server_listen(s)\nhttp_server_shutdown(s)\nhttp_server_listen(s)"
        )
    with pytest.raises(VmError, match="`port` must be at most 65535"):
        Vm().run_source("http_server_listen(http_server(), {port: 70000})")
    with pytest.raises(VmError, match="unknown TLS mode"):
        Vm().run_source("http_server_listen(http_server(), {tls: {mode: 1}})")
    with pytest.raises(VmError, match=r"can't listen at 127\.0\.0\.1:0: .*PEM"):
        Vm().run_source("""http_server_listen(http_server(), {
          tls: {mode: "self_signed_dev", cert_pem: "x", key_pem: "y"},
        })""")


def test_without_uvicorn_a_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "harnpy.world.web_server", raising=False)
    with pytest.raises(VmError, match=r"http_server_listen: .*" + re.escape(install_command("serve"))):
        Vm().run_source("http_server_listen(http_server())")


def test_rules_may_forbid_to_listen() -> None:
    with pytest.raises(VmError, match=r"listen://127\.0\.0\.1:0"):
        Vm(capabilities=["model"]).run_source("http_server_listen(http_server())")


def test_limits_hold_in_requests() -> None:
    """Beyond the tasks that there may be, clients are asked to come again; other limits end the run."""
    routes = """
    http_server_route(server, "GET", "/", { _ -> report("in"); sleep(1000s) })
    http_server_route(server, "GET", "/loop", { _ -> while true {} })
    """
    limited = Vm(limits=Limits(tasks=2))
    with service(routes, vm=limited) as web, closing(web.connect()) as one, closing(web.connect()) as other:
        for waiting in (one, other):
            waiting.sendall(head("GET /"))
            assert web.next() == "in"
        assert web.get("/") == (503, "the server is busy")
        assert b"\r\nretry-after: 1\r\n" in web.say(head("GET /"))
    with service(routes, vm=Vm(limits=Limits(steps=1000))) as web:
        web.say(head("GET /loop"))
    assert isinstance(web.outcome, LimitExceeded)


def test_the_end_of_the_program_ends_connections() -> None:
    routes = """
    http_server_route(server, "GET", "/", { _ -> report("in"); sleep(1000s) })
    http_server_route(server, "GET", "/end", { _ -> exit(3) })
    """
    with service(routes) as web, closing(web.connect()) as waiting:
        waiting.sendall(head("GET /"))
        assert web.next() == "in"
        web.say(head("GET /end"))
        assert received(waiting).split()[1] == b"503"
    with pytest.raises(ConnectionRefusedError):
        web.connect()


def test_a_certificate_of_its_own() -> None:
    tls = 'let tls = http_server_tls_self_signed_dev(["localhost"])\nreport(tls.cert_pem)\n'
    with service(tls + ECHO, "{tls: tls}") as web:
        trusted = ssl.create_default_context(cadata=web.next())
        web.wrap = lambda connection: trusted.wrap_socket(connection, server_hostname="localhost")
        assert b'"name":"safe"' in web.say(head("GET /echo/safe"))


def test_events_come_in_order_however_slowly_they_are_read() -> None:
    sends = f"""
    http_server_route(server, "GET", "/", {{ _ ->
      let response = sse_server_response({{max_buffered_events: 8}})
      spawn {{
        for i in 1 to {EVENTS} {{ sse_server_send(response, {{id: i, data: "${{i}}"}}) }}
        report(sse_server_status(response).buffered_events)
        sse_server_flush(response)
        sse_server_close(response)
      }}
      response
    }})
    """
    with service(sends) as web:
        answer = web.say(head("GET /"))
        assert web.next() <= 8
    numbers = [int(line[6:]) for line in answer.split(b"\n") if line.startswith(b"data: ")]
    assert numbers == list(range(1, EVENTS + 1))


def test_a_client_that_leaves_a_stream_ends_it() -> None:
    endless = """
    let made = channel("made", 1)
    http_server_route(server, "GET", "/", { _ ->
      let response = sse_server_response()
      send(made, response)
      response
    })
    spawn {
      let response = receive(made)
      while sse_server_send(response, "again") { sleep(1ms) }
      report("over")
    }
    """
    with service(endless) as web:
        with closing(web.connect()) as connection:
            connection.sendall(head("GET /"))
            assert connection.recv(1000)
        assert web.next() == "over"


def test_inside_a_loop_of_others() -> None:
    """The client runs in the same loop as the program."""
    source = """
    let server = http_server()
    http_server_route(server, "GET", "/{name}", { request -> sleep(1ms); "Hello " + request.params.name })
    http_server_route(server, "POST", "/stop", { _ -> http_server_shutdown(server); "bye" })
    listening(http_server_listen(server).port)
    http_server_serve(server)
    return "ended"
    """

    async def say(port: int, line: str) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head(line))
        answer = await reader.read()
        writer.close()
        return answer

    async def both(cancelled: bool) -> object:
        vm = Vm()
        ports: asyncio.Queue[int] = asyncio.Queue()
        vm.register("listening(port: int) -> nil", ports.put_nowait)
        program = asyncio.create_task(vm.run_async(source))
        port = await ports.get()
        answers = await asyncio.gather(*(say(port, f"GET /{i}") for i in range(5)))
        assert [answer[-7:] for answer in answers] == [b"Hello %d" % i for i in range(5)]
        if cancelled:
            program.cancel()
        else:
            assert (await say(port, "POST /stop")).endswith(b"bye")
        await asyncio.wait([program])
        with pytest.raises(ConnectionRefusedError):
            await say(port, "GET /x")
        return None if cancelled else program.result()

    assert asyncio.run(both(cancelled=False)) == "ended"
    asyncio.run(both(cancelled=True))
