"""Whom requests are from, without a server. Spec: 08 §16, 10 §C22."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from harnpy.eventlog import StoreEventLog
from harnpy.eventlog.bearer import BearerSessions, CreateSession
from harnpy.eventlog.http import AuthResult, BearerAuth, authenticate
from harnpy.storage.memory import MemoryStore

NOW = datetime(2026, 1, 31, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
KEYS = {"k" * 20: "deploy", "kéy": ""}


@pytest.fixture
def sessions() -> BearerSessions:
    return BearerSessions(StoreEventLog(MemoryStore()), clock=lambda: NOW)


def test_who_sends_which_headers(sessions: BearerSessions) -> None:
    live, revoked, short = (
        sessions.create(CreateSession("ada", NOW + hours)).id for hours in (HOUR, HOUR, HOUR / 2)
    )
    sessions.expire(revoked)
    ada = AuthResult("ada", live, "session")
    later = NOW + HOUR * 3 / 4
    table: list[tuple[Any, AuthResult | None]] = [
        ({"Authorization": f"Bearer {live}"}, ada),
        ({"AUTHORIZATION": f"bEARER   {live} "}, ada),
        ([(b"authorization", f"Bearer {live}".encode())], ada),
        ({"authorization": "Bearer " + "k" * 20}, AuthResult("deploy", None, "api_key")),
        ([(b"authorization", "Bearer kéy".encode())], AuthResult("api-key", None, "api_key")),
        ({}, None),
        ({"x-api-key": "k" * 20}, None),
        ({"authorization": live}, None),
        ({"authorization": f"Basic {live}"}, None),
        ({"authorization": f"Bearer{live}"}, None),
        ({"authorization": "Bearer"}, None),
        ({"authorization": "Bearer    "}, None),
        ({"authorization": ""}, None),
        ({"authorization": f"Bearer {live} {live}"}, None),
        ({"authorization": f"Bearer {live[:-1]}"}, None),
        ({"authorization": "Bearer " + "k" * 19}, None),
        ([(b"authorization", b"Bearer \xff\xfe")], None),
        ([(b"authorization", f"Bearer {live}".encode())] * 2, None),
        ({"authorization": f"Bearer {revoked}"}, None),
        ({"authorization": f"Bearer {short}"}, None),
    ]  # fmt: skip
    for headers, expected in table:
        assert authenticate(headers, KEYS, sessions, later) == expected, headers
    assert authenticate({"authorization": "Bearer kéy"}, {"kéy"}, sessions) == AuthResult(
        "api-key", None, "api_key"
    )
    got = sessions.get(live)
    assert got
    assert got.last_seen_at == later
    assert live not in repr(ada)


def test_a_static_key_asks_no_store() -> None:
    log = StoreEventLog(MemoryStore())
    log.close()
    assert authenticate({"authorization": "Bearer kéy"}, KEYS, BearerSessions(log)) is not None


def test_all_static_keys_are_compared_in_constant_time(
    sessions: BearerSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[bytes] = []
    monkeypatch.setattr(
        "harnpy.eventlog.http.equal_in_constant_time", lambda a, b: bool(compared.append(a)) or a == b
    )
    for key in ("a", "b", "x"):
        authenticate({"authorization": f"Bearer {key}"}, ["a", "b", "c"], sessions)
    assert compared == [b"a", b"b", b"c"] * 3


def test_what_is_no_request_and_what_is_exempt_goes_through(sessions: BearerSessions) -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope)

    guarded = BearerAuth(app, sessions, exempt=["/health"])
    scopes = [{"type": "lifespan"}, {"type": "http", "path": "/health", "headers": []}]
    for scope in scopes:
        asyncio.run(guarded(scope, None, None))  # type: ignore[arg-type]
    assert seen == scopes


def test_a_log_that_fails_lets_nobody_through(sessions: BearerSessions) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("reached")

    async def nothing() -> Any:
        await asyncio.get_running_loop().create_future()

    sessions._log.close()
    scope = {"type": "http", "path": "/", "headers": [(b"authorization", b"Bearer some-token")]}
    with pytest.raises(Exception, match="is closed") as failed:
        asyncio.run(BearerAuth(app, sessions)(scope, nothing, None))  # type: ignore[arg-type]
    assert "some-token" not in str(failed.value)
