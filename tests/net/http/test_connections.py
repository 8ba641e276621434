"""Connections: shared and closed, by proxies, under TLS; cookies; what is read piece by piece."""

from __future__ import annotations

import json
import ssl
import tracemalloc
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import trustme

from harnpy import Vm, VmError
from tests.counts import COUNT
from tests.net.http.server import Server, serving

REQUESTS = COUNT.http_requests


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def run(body: str, *arguments: Any) -> Any:
    """The value of a program in which `A` are the arguments."""
    source = f"pipeline main(task) {{\nlet A = json_parse(argv[0])\n{body}\n}}"
    return Vm().run_source(source, args=[json.dumps(arguments)])


# Sharing.


def test_requests_share_a_connection_that_ends_with_the_program(server: Server) -> None:
    before, closed = server.opened, server.closed
    body = """
    var n = 0
    for i in 1 to 5 { n = n + http_get("${A[0]}/ok").status + http_post("${A[0]}/ok", "x").status }
    return n
    """
    assert run(body, server.url) == 2000
    assert server.opened == before + 1
    server.wait_for_end(closed + 1)


def test_a_session_uses_one_connection_for_all_its_requests(server: Server) -> None:
    before, closed = server.opened, server.closed
    body = """
    let session = http_session({timeout_ms: 20000})
    var n = 0
    for i in 1 to A[1] {
      if http_session_request(session, "GET", "${A[0]}/ok?${i}").body == to_string(i) { n = n + 1 }
    }
    http_session_close(session)
    return n
    """
    run(body, server.url, 1)  # what is loaded once
    tracemalloc.start()
    assert run(body, server.url, REQUESTS) == REQUESTS
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    server.requests.clear()
    assert server.opened == before + 2
    server.wait_for_end(closed + 2)
    assert kept < 3_000_000 + 600 * REQUESTS  # the server's own notes


def test_tasks_ask_at_once(server: Server) -> None:
    body = """
    let found = parallel each A[1] { i -> to_int(http_get("${A[0]}/ok?${i}").body) }
    return found
    """
    assert run(body, server.url, [*range(20)]) == [*range(20)]


def test_connections_of_sessions_are_their_own(server: Server) -> None:
    before = server.opened
    body = """
    let [one, two] = [http_session(), http_session()]
    for session in [one, two, one, two, nil] { http_get("${A[0]}/ok", {session: session}) }
    """
    run(body, server.url)
    assert server.opened == before + 3


def test_a_session_that_another_task_closes_ends_its_requests() -> None:
    body = """
    let session = http_session()
    let waiting = spawn { http_get("${A[0]}/silent", {session: session}) }
    http_get("${A[0]}/dripping")
    http_session_close(session)
    return unwrap_err(try { await(waiting) })
    """
    with serving() as server:
        assert run(body, server.url).endswith("its connections were closed meanwhile")


def test_a_program_in_a_loop_of_others_asks_there(server: Server) -> None:
    import asyncio

    source = 'pipeline main(task) { return http_get("URL/ok", {session: http_session()}).body }'

    async def twice() -> list[Any]:
        vms = (Vm().run_async(source.replace("URL", server.url)) for _ in range(2))
        return await asyncio.gather(*vms)

    assert asyncio.run(twice()) == ["ok", "ok"]


# Cookies.


def test_a_session_keeps_cookies_and_requests_alone_do_not(server: Server) -> None:
    body = """
    let session = http_session()
    fn sent(cookie, options = {}) { return http_get("${A[0]}/cookies?${cookie}", options).body }
    return [
      sent("a=1", {session: session}), sent("b=2", {session: session}), sent("x=9"), sent("x=9"),
      sent("a=0; Max-Age=0", {session: session}), sent("c=3", {session: session, headers: {cookie: "own=1"}}),
      sent("d=${"x".repeat(5000)}", {session: session}), sent("e=1", {session: session}),
      sent("f=1", {session: http_session()}),
    ]
    """
    kept = ["none", "a=1", "none", "none", "a=1; b=2", "own=1", "b=2; c=3", "b=2; c=3", "none"]
    assert run(body, server.url) == kept


def test_a_cookie_goes_to_whom_it_belongs_also_on_redirects(server: Server) -> None:
    body = """
    let session = http_session()
    http_get("${A[0]}/cookies?here=1", {session: session})
    http_get("${A[1]}/cookies?there=1", {session: session})
    return http_get("${A[0]}/redirect?elsewhere/cookies", {session: session}).body
    """
    assert run(body, server.url, server.elsewhere) == "there=1"


# Streams.


def test_a_stream_is_received_as_it_is_read(server: Server) -> None:
    body = """
    let stream = http_stream_open("${A[0]}/pieces?300")
    var [size, reads] = [0, 0]
    while true {
      let piece = http_stream_read(stream, 700)
      if piece == nil { break }
      size = size + bytes_len(piece)
      reads = reads + 1
    }
    return [size, reads >= 429, http_stream_read(stream), http_stream_close(stream)]
    """
    assert run(body, server.url) == [300_000, True, None, True]


def test_a_stream_that_another_task_closes_fails_for_who_reads_it(server: Server) -> None:
    body = """
    let stream = http_stream_open("${A[0]}/silent-body")
    let reading = spawn { try { http_stream_read(stream) } catch (e) { e } }
    sleep_ms(1)
    let closed = http_stream_close(stream)
    return [closed, await(reading)]
    """
    cut_off = "http: request failed: its connections were closed meanwhile"
    assert run(body, server.url) == [True, cut_off]


def test_what_is_not_read_is_not_received(server: Server) -> None:
    closed = server.closed
    body = """
    let stream = http_stream_open("${A[0]}/endless")
    let first = bytes_len(http_stream_read(stream, 1000))
    sleep_ms(30)
    return [first, http_stream_info(stream).status]
    """
    tracemalloc.start()
    assert run(body, server.url) == [1000, 200]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 30_000_000
    server.wait_for_end(closed + 1)  # the program's end closed it


def test_a_read_that_ended_early_loses_nothing(server: Server) -> None:
    body = """
    let stream = http_stream_open("${A[0]}/later", {timeout_ms: 5000, read_timeout_ms: 20})
    let early = try { http_stream_read(stream) }
    let cut = try { deadline 5ms { http_stream_read(stream) } }
    http_get("${A[0]}/go")
    var text = ""
    while true {
      let piece = try { http_stream_read(stream) }
      if is_err(piece) { continue }
      if unwrap(piece) == nil { break }
      text = text + bytes_to_string(unwrap(piece))
    }
    return [error_category(unwrap_err(early)), is_err(cut), text]
    """
    assert run(body, server.url) == ["timeout", True, "all of it"]


def test_a_stream_that_breaks_says_so_again(server: Server) -> None:
    body = """
    let stream = http_stream_open("${A[0]}/reset-in-body")
    var found = []
    for i in 1 to 3 {
      let read = try { http_stream_read(stream) }
      let last = if is_ok(read) { bytes_to_string(unwrap(read)) } else { error_category(unwrap_err(read)) }
      found = found + [last]
    }
    return found
    """
    assert run(body, server.url) == ["half", "transient_network", "transient_network"]


def test_a_stream_has_its_time_as_a_whole(server: Server) -> None:
    body = """
    let opened = try { http_stream_open("${A[0]}/drip", {total_timeout_ms: 60}) }
    if is_err(opened) { return unwrap_err(opened) }  // on a machine that is busy
    let stream = unwrap(opened)
    while true {
      let read = try { http_stream_read(stream) }
      if is_err(read) { return unwrap_err(read) }
    }
    """
    assert "within total_timeout_ms" in run(body, server.url)


# Downloads.


def test_a_download_is_there_as_a_whole_or_not_at_all(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("before")
    body = """
    let result = try { http_download("${A[0]}${A[1]}", A[2], {timeout_ms: 3000} + A[3]) }
    return if is_ok(result) { unwrap(result) } else { unwrap_err(result) }
    """
    for path, options in (
        ("/reset-in-body", {}),
        ("/endless", {"max_bytes": 100_000}),
        ("/drip", {"timeout_ms": 30}),
        ("/not-gzip", {}),
    ):
        assert run(body, server.url, path, str(file), options).startswith("http: request failed: ")
        assert [each.name for each in tmp_path.iterdir()] == ["file"]
        assert file.read_text() == "before"
    result = run(body, server.url, "/pieces?100", str(file), {})
    assert result["bytes_written"] == 100_000
    assert len(file.read_bytes()) == 100_000
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_download_needs_the_right_to_write_before_anything_is_sent(server: Server, tmp_path: Path) -> None:
    before = len(server.requests)
    source = f'pipeline main(task) {{ http_download("{server.url}/ok", "{tmp_path}/x") }}'
    with pytest.raises(VmError, match=f"writing '{tmp_path}/x' is not permitted"):
        Vm(capabilities=["network"]).run_source(source)
    assert len(server.requests) == before


# TLS.

GET = """
let result = try { http_get(A[0], {timeout_ms: 5000, tls: A[1]}) }
if is_ok(result) { return unwrap(result).body }
return unwrap_err(result).replace("http: request failed: ", "")
"""


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def secure(authority: trustme.CA) -> Iterator[Server]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with serving(context) as server:
        yield server


def test_tls(authority: trustme.CA, secure: Server, tmp_path: Path) -> None:
    ca = str(tmp_path / "ca.pem")
    authority.cert_pem.write_to_path(ca)
    certificate = ssl.PEM_cert_to_DER_cert(
        ssl.get_server_certificate(("127.0.0.1", int(secure.url.rpartition(":")[2])))
    )
    pin = sha256(certificate).hexdigest()
    asked = len(secure.requests)
    assert run(GET, secure.url + "/ok", {}).startswith("TLS: the certificate of 127.0.0.1 isn't trusted: ")
    wrong = {"ca_bundle_path": ca, "pinned_sha256": "0" * 64}
    assert run(GET, secure.url + "/ok", wrong) == "TLS: the server's certificate isn't one of pinned_sha256"
    assert run(GET, secure.elsewhere + "/ok", {"ca_bundle_path": ca}).startswith(
        "TLS: the certificate of 127.0.0.2 isn't trusted: IP address mismatch"
    )
    assert run(GET, secure.url.replace("https:", "http:") + "/ok", {}) != "ok"
    assert len(secure.requests) == asked  # nothing was sent to any of them
    assert run(GET, secure.url + "/ok", {"ca_bundle_path": ca}) == "ok"
    pins = [f"{pin[:2]}:{pin[2:].upper()}", "0" * 64]
    assert run(GET, secure.url + "/ok", {"ca_bundle_path": ca, "pinned_sha256": pins}) == "ok"


def test_a_server_may_ask_for_a_certificate(authority: trustme.CA, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    ca, both, key, chain = (str(tmp_path / name) for name in ("ca", "both", "key", "chain"))
    client = authority.issue_cert("me@example.org")
    authority.cert_pem.write_to_path(ca)
    client.private_key_and_cert_chain_pem.write_to_path(both)
    client.private_key_pem.write_to_path(key)
    client.cert_chain_pems[0].write_to_path(chain)
    with serving(context) as server:
        url = server.url + "/ok"
        assert run(GET, url, {"ca_bundle_path": ca}) != "ok"
        assert run(GET, url, {"ca_bundle_path": ca, "client_identity_path": both}) == "ok"
        split = {"ca_bundle_path": ca, "client_cert_path": chain, "client_key_path": key}
        assert run(GET, url, split) == "ok"
        no_key = run(GET, url, {**split, "client_key_path": ca})
        assert no_key.startswith("http: tls: no PEM of a certificate with its key: ")
        no_authority = run(GET, url, {"ca_bundle_path": __file__})
        assert no_authority == f"http: tls: no certificate or crl found: {__file__}"


# Proxies.


def test_a_proxy_is_given_the_whole_url_and_its_own_credentials(server: Server) -> None:
    body = """
    let proxy = {url: A[0], no_proxy: "127.0.0.2, .inside.test"}
    let options = {proxy: proxy, proxy_auth: {user: "u", pass: "p"}}
    return [http_get("http://far.test/ok?x", options).body, http_get("${A[1]}/ok?y", options).body]
    """
    at = len(server.requests)
    assert run(body, server.url, server.elsewhere) == ["x", "y"]
    first, second = server.requests[at:]
    assert first.startswith("GET http://far.test/ok?x HTTP/1.1\r\n")
    assert "\r\nproxy-authorization: basic dtpw\r\n" in first.lower()
    assert second.startswith("GET /ok?y ")
    assert "proxy-authorization" not in second.lower()


def test_a_proxy_that_refuses_is_told_apart(server: Server) -> None:
    body = 'return unwrap_err(try { http_get("https://far.test/", {proxy: A[0], timeout_ms: 5000}) })'
    text = run(body, server.url)
    assert text.startswith("http: request failed: the proxy refused: ")
    assert not any(each.isdecimal() for each in text)
