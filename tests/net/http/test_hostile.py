"""Servers that behave badly: each way has its message and category, and nothing is without bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from harnpy import LimitExceeded, Limits, Vm
from harnpy.world.http_client import failure
from tests.net.http.server import Server, serving

CALL = """
pipeline main(task) {
  let [url, options] = json_parse(argv[0])
  let result = try { http_get(url, options) }
  if is_err(result) {
    let text = unwrap_err(result)
    return [text.replace("http: request failed: ", ""), error_category(text)]
  }
  let response = unwrap(result)
  return [response.status, response.body, response.headers]
}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def run(source: str, *arguments: Any, **options: Any) -> Any:
    import json

    return Vm(**options).run_source(source, args=[json.dumps(argument) for argument in arguments])


def got(server: Server, path: str, **options: Any) -> Any:
    return run(CALL, [server.url + path, options])


NETWORK, TIMEOUT, OTHER = "transient_network", "timeout", "generic"
TOO_MUCH = "the response has more bytes than max_bytes allows"
LATE = "Deadline exceeded: the response wasn't complete within"
INCOMPLETE = "connection closed by 127.0.0.1 before the response was complete"
MISLED = "a redirect leads to no http or https URL"

FAILURES: dict[str, tuple[dict[str, Any], str, str]] = {
    "/drip": ({"timeout_ms": 60}, f"{LATE} timeout_ms", TIMEOUT),
    "/drip?": ({"total_timeout_ms": 60, "timeout_ms": 1}, f"{LATE} total_timeout_ms", TIMEOUT),
    "/silent": ({"timeout_ms": 40}, f"{LATE} timeout_ms", TIMEOUT),
    "/silent?": (
        {"read_timeout_ms": 40},
        "Deadline exceeded: nothing came from 127.0.0.1 within read_timeout_ms",
        TIMEOUT,
    ),
    "/endless": ({"max_bytes": 100_000}, TOO_MUCH, OTHER),
    "/endless?chunked": ({"max_bytes": 100_000}, TOO_MUCH, OTHER),
    "/bomb": ({"max_bytes": 2_000_000}, TOO_MUCH, OTHER),
    "/double-bomb": ({"max_bytes": 2_000_000}, TOO_MUCH, OTHER),
    "/brotli-bomb": ({"max_bytes": 2_000_000}, TOO_MUCH, OTHER),
    "/bomb?": ({"max_bytes": 1000, "decompress": False}, TOO_MUCH, OTHER),
    "/not-gzip": ({}, "the body isn't what its content-encoding says", OTHER),
    **dict.fromkeys(
        ("/cut-gzip", "/cut-members", "/cut-deflate", "/cut-brotli"),
        ({}, "the body isn't what its content-encoding says", OTHER),
    ),
    "/loop": ({}, "more redirects than max_redirects allows", OTHER),
    "/redirect?/ok": ({"max_redirects": 0}, "more redirects than max_redirects allows", OTHER),
    "/redirect?ftp://h.test/": ({}, MISLED, OTHER),
    "/redirect?file:///etc/passwd": ({}, MISLED, OTHER),
    "/redirect?data:text/plain,x": ({}, MISLED, OTHER),
    "/short": ({}, INCOMPLETE, NETWORK),
    "/cut-chunk": ({}, INCOMPLETE, NETWORK),
    "/nothing": ({}, INCOMPLETE, NETWORK),
    "/reset": ({}, "connection reset by 127.0.0.1", NETWORK),
    "/reset-in-body": ({}, "connection reset by 127.0.0.1", NETWORK),
    "/two-lengths": ({}, "malformed response from 127.0.0.1", OTHER),
    "/bad-length": ({}, "malformed response from 127.0.0.1", OTHER),
    "/bad-chunk": ({}, "malformed response from 127.0.0.1", OTHER),
    "/no-http": ({}, "malformed response from 127.0.0.1", OTHER),
    "/bad-header": ({}, "malformed response from 127.0.0.1", OTHER),
    "/huge-head": ({}, "malformed response from 127.0.0.1", OTHER),
}


@pytest.mark.parametrize("path", FAILURES)
def test_a_failure_has_its_message_and_category(server: Server, path: str) -> None:
    options, text, category = FAILURES[path]
    found, found_category = got(server, path, **options)
    assert found.startswith(text), found
    assert found_category == category
    assert len(found.splitlines()) == 1
    assert "bytearray" not in found


def test_a_header_that_is_not_sent_is_not_shown() -> None:
    failed = failure(httpx2.LocalProtocolError("Illegal header value b'Bearer secret '"))
    assert failed.text == "it can't be sent as HTTP"


GOOD: dict[str, tuple[int, str]] = {
    "/long": (200, "long"),  # and the connection isn't used again
    "/both": (200, "ab"),  # chunks count (RFC 9112)
    **dict.fromkeys(("/gzip", "/members", "/x-gzip", "/deflate", "/raw-deflate"), (200, "grüße")),
    "/gzip-of-brotli": (200, "grüße"),
    "/packed-nothing": (200, ""),
    "/no-text": (200, "a\ufffdb"),
    "/empty": (204, ""),
    "/hints": (200, "ok"),
    "/redirect?/ok": (200, "ok"),
    "/redirect?ok": (200, "ok"),
    "/endless-redirect": (200, "ok"),
}


@pytest.mark.parametrize("path", GOOD)
def test_a_response_is_read_to_its_end(server: Server, path: str) -> None:
    assert got(server, path)[:2] == [*GOOD[path]]


def test_headers_that_are_there_twice_are_joined(server: Server) -> None:
    headers = got(server, "/empty")[2]
    assert headers == {"x-a": "1, 2", "set-cookie": "a=1\nb=2"}


def test_a_redirect_may_be_the_result(server: Server) -> None:
    assert got(server, "/redirect?/ok", follow_redirects=False)[:2] == [302, "away"]


def test_a_redirect_to_another_origin_carries_no_credentials(server: Server) -> None:
    secrets = {"authorization": "Bearer k", "X-Api-Key": "k", "Cookie": "k=1", "X-Mine": "k"}
    path = "/redirect?elsewhere/ok"
    assert got(server, path, headers={**secrets, "Accept": "text/x"})[:2] == [200, "ok"]
    first, second = server.requests[-2:]
    assert all(f"\r\n{name.lower()}: " in first.lower() for name in secrets)
    assert not any(f"\r\n{name.lower()}: " in second.lower() for name in secrets)
    assert server.header("accept") == "text/x"
    got(server, "/redirect?/ok", auth={"bearer": "k"})
    assert server.header("authorization") == "Bearer k"


def test_a_url_s_user_stays_with_its_origin(server: Server) -> None:
    url = server.url.replace("http://", "http://ada:pw@")
    assert run(CALL, [url + "/redirect?elsewhere/ok", {}])[0] == 200
    assert server.header("authorization", -2) == "Basic YWRhOnB3"
    assert server.header("authorization") is None


def test_an_embedder_s_limit_ends_the_program(server: Server) -> None:
    limits = Limits(response_bytes=1000)
    with pytest.raises(LimitExceeded, match="its limit of 1000 bytes in a response"):
        run(CALL, [server.url + "/endless", {}], limits=limits)
    text, _ = run(CALL, [server.url + "/endless", {"max_bytes": 10}], limits=limits)
    assert text == TOO_MUCH


def test_what_was_lost_is_asked_for_again(server: Server) -> None:
    server.failed_once = False
    retry = {"max": 2, "backoff_ms": 1}
    assert got(server, "/reset-once", retry=retry)[:2] == [200, "ok"]
    before = len(server.requests)
    assert got(server, "/reset", retry=retry)[1] == NETWORK
    assert len(server.requests) == before + 3
    assert got(server, "/bad-chunk", retry=retry)[1] == OTHER  # another attempt wouldn't help
    assert len(server.requests) == before + 4


def test_a_cancelled_task_ends_its_request_and_the_connection() -> None:
    source = """
    let url = json_parse(argv[0])
    pipeline main(task) {
      let dripping = spawn { http_get("${url}/drip") }
      http_get("${url}/dripping")
      cancel(dripping)
      return http_get("${url}/ended").body
    }
    """
    with serving() as server:
        assert run(source, server.url) == "ok"
