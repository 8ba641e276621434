"""A server on 127.0.0.1 whose answers a test has written, and that may cut a connection anywhere."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple

STREAM = "text/event-stream"


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Answer(NamedTuple):
    """A response. ``cut``: the connection breaks before the body is complete; without a status, at once."""

    status: int | None = 200
    body: Any = None
    headers: Mapping[str, str] = {}
    cut: bool = False


def stream(text: str, *, cut: bool = False) -> Answer:
    return Answer(body=text, headers={"content-type": STREAM}, cut=cut)


def problem(status: int, code: str, message: str, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, {"error": {"code": code, "message": message}}, named)


class Server:
    """Answers by ``answer``, a function or a list that is used up; ``asked`` are the requests so far."""

    def __init__(self, answer: Callable[[Asked], Answer] | Iterable[Answer]) -> None:
        self.asked: list[Asked] = []
        answers = None if callable(answer) else iter(answer)
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def respond(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                text = self.rfile.read(length)
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.command, self.path, headers, json.loads(text) if text else None)
                server.asked.append(asked)
                self.send(answer(asked) if callable(answer) else next(answers))  # type: ignore[arg-type]

            do_GET = do_POST = do_DELETE = respond  # noqa: N815

            def send(self, answer: Answer) -> None:
                if answer.status is None:
                    return self.cut()
                body = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
                data = b"" if answer.status == 204 else body.encode()
                self.send_response(answer.status)
                for name, value in {"content-type": "application/json", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data) + answer.cut))
                self.end_headers()
                self.wfile.write(data)
                return self.cut() if answer.cut else None

            def cut(self) -> None:
                self.wfile.flush()
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)

            def log_message(self, *_: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
