"""A program that listens, in a thread of its own, and clients that say exactly what they are told to."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

from harnpy import Vm
from harnpy.vm.errors import ExitRequest
from tests.support import PATIENCE

_PROGRAM = """
let server = http_server({{max_body_bytes: 1000}})
http_server_route(server, "POST", "/stop", {{ _ -> http_server_shutdown(server); "bye" }})
{routes}
listening(http_server_listen(server, {options}))
http_server_serve(server)
"""

_STOP = b"POST /stop HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Service:
    """``happened`` holds what the program reported with `report(value)`."""

    def __init__(self, vm: Vm) -> None:
        self.vm = vm
        self.happened: queue.Queue[Any] = queue.Queue()
        self.place: queue.Queue[dict[str, Any]] = queue.Queue()
        self.outcome: Any = None
        self.port = 0
        #: What is put around the connections of clients.
        self.wrap: Callable[[socket.socket], socket.socket] = lambda connection: connection
        vm.register("listening(place: dict) -> nil", self.place.put)
        vm.register("report(value: any) -> nil", self.happened.put)

    def next(self) -> Any:
        """What the program reports next."""
        return self.happened.get(timeout=PATIENCE)

    def connect(self) -> socket.socket:
        return self.wrap(socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE))

    def say(self, *parts: bytes) -> bytes:
        """All that is received when ``parts`` are sent on a connection, one after the other."""
        with closing(self.connect()) as connection:
            for part in parts:
                connection.sendall(part)
            return received(connection)

    def get(self, path: str, method: str = "GET", body: bytes = b"", headers: str = "") -> tuple[int, str]:
        """Status and body of a response."""
        head = f"{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\nconnection: close\r\n"
        answer = self.say(f"{head}{headers}\r\n".encode() + body)
        top, _, rest = answer.partition(b"\r\n\r\n")
        return int(top.split()[1]), rest.decode()


@contextmanager
def service(routes: str, options: str = "{}", vm: Vm | None = None) -> Iterator[Service]:
    """A running service, shut down at the end of the block."""
    made = Service(vm or Vm())
    source = _PROGRAM.format(routes=routes, options=options)
    with in_thread(lambda: run(made, source)):
        made.port = made.place.get(timeout=PATIENCE)["port"]
        try:
            yield made
        finally:
            with suppress(ConnectionError):  # it has ended
                while b" 503 " in made.say(_STOP):  # requests before it are still ending
                    continue


def run(made: Service, source: str) -> None:
    try:
        made.outcome = made.vm.run_source(source)
    except (Exception, ExitRequest) as error:
        made.outcome = error
        made.place.put({"port": 0})


@contextmanager
def in_thread(body: Callable[[], None]) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=body)
    thread.start()
    try:
        yield thread
    finally:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def received(connection: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    parts = []
    try:
        while part := connection.recv(65_536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)
