"""Bearer sessions in front of a real server, two processes of it, and a restart. Spec: 08 §16, 10 §C22."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from harnpy.eventlog import StoreEventLog
from harnpy.eventlog.bearer import BearerSessions, CreateSession, DurableSession
from harnpy.storage import open_store

HERE = Path(__file__).parent
DAY = timedelta(days=1)


@contextmanager
def serving(url: str, log: Path) -> Iterator[int]:
    """The port of a service on the store at ``url``, a process of its own."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, HERE / "service.py", url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
        )
        try:
            assert process.stdout
            line = process.stdout.readline()
            assert line, log.read_text()
            yield int(line)
        finally:
            process.communicate()


def asked(port: int, authorization: str | None, path: str = "/") -> tuple[int, Any]:
    headers = {} if authorization is None else {"Authorization": authorization}
    connection = HTTPConnection("127.0.0.1", port)
    connection.request("GET", path, headers=headers)
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    if reply.status == 401:
        assert reply.headers["www-authenticate"] == "Bearer"
        assert reply.headers["content-type"] == "application/json"
    return reply.status, json.loads(body) if reply.status != 500 else None


def called(port: int, token: str | None) -> str | int:
    """What a WebSocket says, or the status that refuses it."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with connect(f"ws://127.0.0.1:{port}/", additional_headers=headers) as socket:
            return str(socket.recv())
    except InvalidStatus as refused:
        return refused.response.status_code


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'events.db'}"


@pytest.fixture
def sessions(url: str) -> Iterator[BearerSessions]:
    with closing(open_store(url)) as store:
        yield BearerSessions(StoreEventLog(store))


def test_a_service_of_two_processes_and_its_restart(
    url: str, sessions: BearerSessions, tmp_path: Path
) -> None:
    log = tmp_path / "service.log"
    made: list[DurableSession] = []
    for created, expires in [(-1, 1), (-1, 1), (-2, -1)]:
        now = datetime.now(UTC)
        made.append(
            sessions.create(CreateSession("ada", now + expires * DAY, created_at=now + created * DAY))
        )
    live, revoked, expired = (str(session.id) for session in made)
    unauthorized = 401, {"error": "unauthorized"}
    ada = 200, ["ada", True]
    with serving(url, log) as first, serving(url, log) as second:
        for port in (first, second):
            assert asked(port, f"Bearer {live}") == ada
            assert asked(port, f"Bearer {revoked}") == ada
            assert asked(port, "Bearer a-static-key") == (200, ["deploy", False])
            assert asked(port, None, "/health") == (200, [None, False])
        sessions.expire(revoked)
        refused = [
            None,
            "",
            "Bearer",
            "Bearer  ",
            live,
            f"Basic {live}",
            f"Bearer {live}x",
            "Bearer a-static-ke",
        ]
        refused += [f"Bearer {revoked}", f"Bearer {expired}"]
        for port in (first, second):
            assert [asked(port, given) for given in refused] == [unauthorized] * len(refused)
        assert asked(first, f"Bearer {live}", "/broken") == (500, None)
        assert (called(first, live), called(first, "a-static-key")) == ('["ada", true]', '["deploy", false]')
        assert [called(first, token) for token in (None, revoked, expired)] == [403, 403, 403]
    with serving(url, log) as port:
        assert asked(port, f"bearer {live}") == ada
        assert asked(port, f"Bearer {revoked}") == unauthorized
    seen = sessions.get(live)
    assert seen
    assert seen.last_seen_at > seen.created_at
    said = log.read_text()
    assert "the app failed" in said  # tracebacks are in there
    for token in (live, revoked, expired):
        for path in tmp_path.rglob("*"):
            assert token.encode() not in path.read_bytes(), path
