"""HTTP in durable programs: each request is recorded once; redirects and cookies follow from responses.

Spec: 10 §C19.1 "Program runs".
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from harnpy.vm.errors import VmError
from tests.durable.runs import MemoryRun, Outside, done, job_of


class Server(ThreadingHTTPServer):
    """Notes what it is asked, and with which cookie."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers["Cookie"]))
        self.send_response(302 if self.path == "/old" else 404 if self.path == "/no" else 200)
        self.send_header("Location", "/new")
        self.send_header("Set-Cookie", f"n={len(self.server.asked)}")
        body = f"{self.path} \u00e4".encode()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


SOURCE = """
let all = parallel each ["a", "b"] { path -> http_get("URL/${path}").body }
println("${all}")
let jar = http_session()
println(http_session_request(jar, "GET", "URL/old").body)
println(http_session_request(jar, "GET", "URL/again").body)
println(http_get("URL/no").status)
http_download("URL/file", "file")
println(read_file("file"))
try { http_get("http://127.0.0.1:1/") } catch (e) { println(error_category(e)) }
"""


def test_each_request_is_sent_once(server: Server, tmp_path: Path) -> None:
    outside, context = Outside(), MemoryRun()
    job = job_of(SOURCE.replace("URL", server.url), tmp_path)
    done(job, context, outside)
    printed, asked = outside.output(), server.asked[:]
    assert printed == (
        "[/a \u00e4, /b \u00e4]\n/new \u00e4\n/again \u00e4\n404\n/file \u00e4\ntransient_network\n"
    )
    assert [path for path, _ in asked[2:]] == ["/old", "/new", "/again", "/no", "/file"]
    for number in range(1, context.appends + 1, 4):
        server.asked.clear()
        killed = MemoryRun(kill=lambda append, number=number: append == number)
        done(job, killed, outside)
        done(job, MemoryRun(killed.steps), outside)
        assert outside.output() == printed
        assert len(server.asked) <= len(asked) + 2  # what was under way
    done(job, MemoryRun(context.steps), outside)
    assert outside.output() == ""


@pytest.mark.parametrize(
    "source", ['sse_connect("GET", "URL/events")', 'websocket_connect("ws://127.0.0.1:1/")']
)
def test_what_stays_open_is_refused(server: Server, source: str) -> None:
    with pytest.raises(VmError, match="durable run can't"):
        done(job_of(source.replace("URL", server.url)), MemoryRun(), Outside())
    assert server.asked == []
