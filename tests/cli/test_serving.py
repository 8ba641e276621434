"""`harnpy run` of a program that listens: running requests finish after a signal. Spec: 09 §2.4, 04 §21.5."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.cli.test_signals import NOTICE
from tests.support import ROOT

#: A request that goes on until something is written to the pipe `bell`, and then says it.
PROGRAM = """
let server = http_server()
http_server_route(server, "GET", "/", { _ -> exec("cat", "bell").stdout })
http_server_on_shutdown(server, { -> println("hook") })
println(http_server_listen(server, {grace_ms: GRACE}).port)
http_server_serve(server)
println("never")
"""


@contextmanager
def running(directory: Path, grace: int) -> Iterator[tuple[subprocess.Popen[str], socket.socket]]:
    """A service, and a connection on which a request is being handled."""
    os.mkfifo(directory / "bell")
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    (directory / "web.harn").write_text(PROGRAM.replace("GRACE", str(grace)))
    process = subprocess.Popen(
        [sys.executable, "-m", "harnpy", "run", "web.harn"],
        cwd=directory,
        env=inherited | {"PYTHONPATH": str(ROOT), "HARNPY_NO_CACHE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process, closing(socket.socket()) as client:
        try:
            assert process.stdout
            client.settimeout(60)
            client.connect(("127.0.0.1", int(process.stdout.readline())))
            client.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            yield process, client
        finally:
            process.kill()


def answer(client: socket.socket) -> bytes:
    parts = []
    while part := client.recv(65_536):
        parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_running_requests_finish(number: int, tmp_path: Path) -> None:
    with running(tmp_path, grace=60_000) as (process, client):
        # Opens once the other end is open: the request is being handled.
        with (tmp_path / "bell").open("w") as bell:
            process.send_signal(number)
            assert process.stderr
            assert process.stderr.readline() == NOTICE
            bell.write("finished")
        assert re.fullmatch(rb"HTTP/1.1 200 OK\r\n.*finished", answer(client), re.DOTALL)
        assert process.communicate(timeout=60) == ("hook\n", "")
        assert process.returncode == 124


def test_what_takes_too_long_is_cancelled(tmp_path: Path) -> None:
    with running(tmp_path, grace=1) as (process, client), (tmp_path / "bell").open("w"):
        process.send_signal(signal.SIGTERM)
        assert answer(client).startswith(b"HTTP/1.1 503 ")
        assert process.communicate(timeout=60) == ("hook\n", NOTICE)
        assert process.returncode == 124


def test_a_second_signal_waits_for_nothing(tmp_path: Path) -> None:
    with running(tmp_path, grace=60_000) as (process, client), (tmp_path / "bell").open("w"):
        process.send_signal(signal.SIGINT)
        assert process.stderr
        assert process.stderr.readline() == NOTICE
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 124
        assert b"200" not in answer(client)
