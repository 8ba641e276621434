"""Which credentials a server of PostgreSQL is given, and how. Spec: 10 §C6.3."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.storage import open_store
from harnpy.storage.errors import StorageError
from harnpy.storage.opening import without_ambient

PASSWORD, OWN = "ambient-password", "own-password"
CLEARTEXT, MD5 = struct.pack("!I", 3), struct.pack("!I4s", 5, b"salt")


class Server:
    """Asks every client for its password in a way of the server's choice, and keeps what it says."""

    def __init__(self, asking: bytes) -> None:
        self.said: list[bytes] = []
        self._asking = asking
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client:
                try:
                    self._talk(client)
                except OSError:
                    continue

    def _talk(self, client: socket.socket) -> None:
        while (start := client.recv(4096))[4:8] in (struct.pack("!I", 80877103), struct.pack("!I", 80877104)):
            client.sendall(b"N")  # neither TLS nor Kerberos
        self.said.append(start)
        client.sendall(b"R" + struct.pack("!I", 4 + len(self._asking)) + self._asking)
        while said := client.recv(4096):
            self.said.append(said)
            client.sendall(b"E" + struct.pack("!I", 9) + b"SXX\0\0")
            return

    def close(self) -> None:
        self._listener.close()


@pytest.fixture(params=[CLEARTEXT, MD5], ids=["cleartext", "md5"])
def server(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".pgpass").write_text(f"*:*:*:*:{PASSWORD}\n")
    (tmp_path / ".pgpass").chmod(0o600)
    for name in ("PGSERVICE", "PGSSLMODE", "PGREQUIREAUTH", "PGPASSFILE"):
        monkeypatch.delenv(name, raising=False)
    server = Server(request.param)
    yield server
    server.close()


def passwords(server: Server, url: str) -> list[bytes]:
    """Return what a server hears of passwords from a client that opens a store."""
    with pytest.raises(StorageError) as caught:
        open_store(f"postgresql://{url.format(port=server.port)}")
    assert PASSWORD not in str(caught.value)
    return [said for said in server.said if said.startswith(b"p")]


def test_no_password_goes_without_scram_or_tls(server: Server) -> None:
    assert passwords(server, "u@127.0.0.1:{port}/d?timeout=2") == []
    assert passwords(server, f"u:{OWN}@127.0.0.1:{{port}}/d?timeout=2") == []
    assert server.said


def test_the_user_may_say_otherwise(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert passwords(server, "u@127.0.0.1:{port}/d?timeout=2&require_auth=password%2Cmd5")
    server.said.clear()
    monkeypatch.setenv("PGREQUIREAUTH", "password,md5")
    assert passwords(server, "u@127.0.0.1:{port}/d?timeout=2")


def test_a_url_in_a_file_gets_nothing_of_the_user_s(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "u@127.0.0.1:{port}/d?timeout=2&ambient=1&require_auth=password%2Cmd5&ambient=0"
    assert passwords(server, url) == []
    assert passwords(server, url.replace("ambient=1", "passfile=%2Fhome%2F.pgpass")) == []
    monkeypatch.setenv("PGREQUIREAUTH", "password,md5")
    assert passwords(server, url.replace("&require_auth=password%2Cmd5", "")) == []
    assert without_ambient("postgresql://h/d?ambient=1").endswith("?ambient=1&ambient=0")
    with pytest.raises(StorageError, match="names a service"):
        open_store("postgresql:///?service=users&ambient=0")


def test_a_program_gives_no_variables_that_it_may_not_read(server: Server) -> None:
    url = f"postgresql://u@127.0.0.1:{server.port}/d?timeout=2&require_auth=password%2Cmd5"
    call = f'try {{ agent_session_open("a", {{store: "{url}"}}) }} catch (e) {{ nil }}'
    Vm(capabilities=["network", "state"]).run_source(call)
    assert server.said
    assert not [said for said in server.said if said.startswith(b"p")]
    Vm().run_source(call)
    assert [said for said in server.said if said.startswith(b"p")]
