"""A connection to the server that breaks at a chosen moment."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from select import select
from threading import Thread
from urllib.parse import parse_qs, urlsplit

#: Which way some bytes go.
TO_SERVER, TO_CLIENT = "to the server", "to the client"


class Cutter:
    """Stands between client and server, and passes on what they say until it is told to cut.

    The connection that says ``word`` in direction ``way`` is cut before the word gets through; only the
    first one that does.
    """

    def __init__(self, listening: socket.socket, server: str) -> None:
        self._listening = listening
        self._server = server
        self._wanted: tuple[str, bytes] | None = None
        self.cuts = 0
        self._is_over = False
        self._thread = Thread(target=self._accept, daemon=True)
        self._thread.start()

    def cut(self, way: str, word: str) -> None:
        self._wanted = way, word.encode()

    def close(self) -> None:
        """Cut everything, and let nobody in any more."""
        self._is_over = True
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, suppress(OSError):
            while True:
                for source in select([client, server], [], [])[0]:
                    said = source.recv(1 << 16)
                    way = TO_SERVER if source is client else TO_CLIENT
                    if not said or self._is_cut(way, said):
                        return
                    (server if source is client else client).sendall(said)

    def _is_cut(self, way: str, said: bytes) -> bool:
        if self._is_over:
            return True
        if self._wanted is None or self._wanted[0] != way or self._wanted[1] not in said:
            return False
        self._wanted = None
        self.cuts += 1
        return True


@contextmanager
def cutter(url: str, directory: Path) -> Iterator[tuple[str, Cutter]]:
    """A cutter before the server at ``url``, and the URL that leads through it."""
    home = parse_qs(urlsplit(url).query)["host"][0]
    name = ".s.PGSQL.5432"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(directory / name))
        listening.listen()
        through = Cutter(listening, f"{home}/{name}")
        try:
            yield url.replace(home, str(directory)), through
        finally:
            through.close()


def waiting(condition: Callable[[], bool]) -> None:
    """Wait until something has happened on the server."""
    from time import sleep

    while not condition():
        sleep(0.01)
