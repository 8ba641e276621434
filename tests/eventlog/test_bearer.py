"""Bearer sessions on every store. Spec: 08 §16, 10 §C22."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from harnpy.eventlog import LogEvent, StoreEventLog, sessions
from harnpy.eventlog.bearer import BearerSessions, CreateSession, DurableSessionError, TouchSession, handle_of
from harnpy.storage import Store
from harnpy.storage.memory import MemoryStore

Opened = Callable[..., Store]
NOW = datetime(2026, 1, 31, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
#: What a caller may bring.
OWN = "0123456789abcdefghijklmnopqrstuv"


def bearers(log: StoreEventLog) -> BearerSessions:
    return BearerSessions(log, clock=lambda: NOW)


@pytest.fixture
def memory() -> BearerSessions:
    return bearers(StoreEventLog(MemoryStore()))


def test_a_session_lives_until_it_expires(memory: BearerSessions) -> None:
    made = memory.create(CreateSession("ada", NOW + HOUR, attributes={"plan": "pro"}))
    assert (len(made.id), made.id[:3]) == (46, "hs_")
    assert memory.get(made.id) == made
    assert made.to_dict() == {
        "id": made.id,
        "principal": "ada",
        "created_at": "2026-01-31T09:00:00Z",
        "last_seen_at": "2026-01-31T09:00:00Z",
        "expires_at": "2026-01-31T10:00:00Z",
        "attributes": {"plan": "pro"},
    }
    assert json.loads(json.dumps(made.to_dict()))["id"] == made.id
    for ends in (HOUR, 2 * HOUR):
        assert memory.get(made.id, NOW + ends) is None
        assert memory.touch(TouchSession(made.id, NOW + ends)) is None
        assert memory.expire(made.id, NOW + ends) is False
    assert memory.get(made.id, NOW + HOUR - timedelta(microseconds=1)) == made
    assert memory.get("hs_unknown") is None


def test_a_touch_only_ever_moves_forward_and_lengthens_nothing(memory: BearerSessions) -> None:
    id = memory.create(CreateSession("ada", NOW + HOUR)).id
    later = NOW + HOUR / 2
    seen = [memory.touch(TouchSession(id, moment)) for moment in (later, NOW)]
    assert [(record.last_seen_at, record.expires_at) for record in seen if record] == [
        (later, NOW + HOUR)
    ] * 2
    got = memory.get(id)
    assert got
    assert got.last_seen_at == later


def test_what_is_refused_leaves_no_event(memory: BearerSessions) -> None:
    id = memory.create(CreateSession("ada", NOW + HOUR)).id
    memory.expire(id)
    before = memory._log.latest("orchestrator.sessions")
    memory.touch(TouchSession(id))
    memory.touch(TouchSession("unknown"))
    memory.expire(id)
    with pytest.raises(DurableSessionError):
        memory.create(CreateSession("", NOW + HOUR))
    assert memory._log.latest("orchestrator.sessions") == before == 2


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"principal": " "}, "session principal must not be empty"),
    ({"expires_at": NOW}, "session expires_at must be after created_at"),
    ({"expires_at": NOW.replace(tzinfo=None)}, "session timestamps must be timezone-aware"),
    ({"created_at": "2026-01-31T09:00:00"}, "session timestamps must be timezone-aware"),
    ({"expires_at": "2026-02-31T09:00:00Z"}, "session timestamps must be timezone-aware"),
    ({"attributes": [1]}, "session attributes must be a JSON object"),
    ({"attributes": {"a": {1, 2}}}, "session attributes must be a JSON object"),
    ({"attributes": {"a": float("nan")}}, "session attributes must be a JSON object"),
    ({"attributes": {"a": "x" * 16_376}}, None),
    ({"attributes": {"a": "x" * 16_377}}, "session attributes are too large"),
    ({"id": OWN[:31]}, "session id has insufficient entropy"),
    ({"id": "123456789" * 9}, "session id has insufficient entropy"),
    ({"id": OWN}, "session id already exists"),
]  # type: ignore[list-item]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_what_no_session_can_be(memory: BearerSessions, given: dict[str, Any], message: str | None) -> None:
    memory.create(CreateSession("ada", NOW + HOUR, id=OWN))
    request = CreateSession(**{"principal": "ada", "expires_at": NOW + HOUR, **given})
    if message is None:
        memory.create(request)
        return
    with pytest.raises(DurableSessionError) as failed:
        memory.create(request)
    assert str(failed.value) == message
    assert OWN not in repr(failed.value)


def test_a_token_of_the_caller_s_can_be_used_again_when_its_session_is_over(memory: BearerSessions) -> None:
    memory.create(CreateSession("ada", NOW + HOUR, id=OWN))
    assert memory.expire(OWN) is True
    assert memory.create(CreateSession("bob", NOW + HOUR, id=OWN)).principal == "bob"
    later = NOW + 2 * HOUR
    again = memory.create(CreateSession("cy", later + HOUR, id=OWN, created_at=later))
    assert memory.get(OWN, later) == again


def test_times_come_with_any_offset_and_go_out_in_utc(memory: BearerSessions) -> None:
    zone = timezone(timedelta(hours=5, minutes=30))
    made = memory.create(
        CreateSession(
            "ada", datetime(2027, 1, 1, 0, 0, 0, 123456, zone), created_at="2026-01-31t12:00:00.5+02:00"
        )  # type: ignore[arg-type]
    )
    shown = made.to_dict()
    assert shown["created_at"] == "2026-01-31T10:00:00.500000Z"
    assert shown["expires_at"] == "2026-12-31T18:30:00.123456Z"


def test_all_who_use_a_log_agree_and_so_does_who_comes_later(url: str, opened: Opened) -> None:
    store = opened()
    here, there = (bearers(StoreEventLog(store if url == "memory:" else opened())) for _ in range(2))
    kept, ended, gone = (here.create(CreateSession(name, NOW + HOUR)) for name in ("a", "b", "c"))
    assert there.get(kept.id) == kept
    assert there.expire(ended.id) is True
    assert (here.get(ended.id), here.expire(ended.id)) == (None, False)
    touched = here.touch(TouchSession(kept.id, NOW + HOUR / 2))
    assert touched == there.get(kept.id)
    if url != "memory:":
        told = subprocess.run(
            [sys.executable, "-c", ELSEWHERE, url, kept.id, ended.id, gone.id], capture_output=True, text=True
        )
        assert (told.stdout, told.stderr) == ("a None True\n", "")
        assert here.get(gone.id) is None
    later = bearers(StoreEventLog(store if url == "memory:" else opened()))
    assert (later.get(kept.id), later.get(ended.id)) == (touched, None)


ELSEWHERE = """
import sys
from datetime import datetime, UTC
from harnpy.eventlog import StoreEventLog
from harnpy.eventlog.bearer import BearerSessions
from harnpy.storage import open_store
url, kept, ended, gone = sys.argv[1:]
sessions = BearerSessions(StoreEventLog(open_store(url)), clock=lambda: datetime(2026, 1, 31, 9, tzinfo=UTC))
print(sessions.get(kept).principal, sessions.get(ended), sessions.expire(gone))
"""


def test_of_those_who_do_the_same_at_once_one_succeeds(opened: Opened, url: str) -> None:
    store = opened()
    users = [bearers(StoreEventLog(store if url == "memory:" else opened())) for _ in range(4)]
    made: list[bool] = []
    ended: list[bool] = []

    def create(user: BearerSessions) -> None:
        try:
            made.append(bool(user.create(CreateSession("ada", NOW + HOUR, id=OWN))))
        except DurableSessionError:
            made.append(False)

    for act in (create, lambda user: ended.append(user.expire(OWN))):
        threads = [Thread(target=act, args=(user,)) for user in users]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (sorted(made), sorted(ended)) == ([False, False, False, True],) * 2


def test_two_that_were_begun_with_one_token_are_one(memory: BearerSessions) -> None:
    """As when two processes both found it free."""
    first = memory.create(CreateSession("ada", NOW + HOUR, id=OWN))
    payload = {**first.to_dict(), "handle": handle_of(OWN), "principal": "eve"}
    del payload["id"]
    memory._log.append("orchestrator.sessions", LogEvent("session.created", payload))
    assert memory.get(OWN) == first


def test_events_of_others_are_passed_over_and_broken_ones_named(memory: BearerSessions) -> None:
    made = memory.create(CreateSession("ada", NOW + HOUR))
    for kind, payload in [
        ("session.renamed", {}),
        ("session.touched", {"handle": "sha256:0", "last_seen_at": "x"}),
        ("session.expired", {"handle": "sha256:0"}),
    ]:
        memory._log.append("orchestrator.sessions", LogEvent(kind, payload))
    assert memory.get(made.id) == made
    memory._log.append("orchestrator.sessions", LogEvent("session.created", {"handle": 1}))
    message = r"^event 5 of topic 'orchestrator\.sessions' tells of no session: it has no `created_at`$"
    with pytest.raises(DurableSessionError, match=message):
        memory.get(made.id)


def test_the_log_has_the_handle_and_nobody_shows_the_token(tmp_path: Path) -> None:
    for url in (f"jsonl:{tmp_path / 'logs'}", f"sqlite:{tmp_path / 'events.db'}"):
        from harnpy.storage import open_store

        log = StoreEventLog(open_store(url))
        store = bearers(log)
        request = CreateSession("ada", NOW + HOUR, id=OWN)
        made = store.create(request)
        store.touch(TouchSession(OWN))
        store.expire(OWN)
        (_, created), *_ = log.read_range("orchestrator.sessions")
        assert created.payload["handle"] == handle_of(OWN)
        assert [event.kind for _, event in log.read_range("orchestrator.sessions")] == [
            "session.created", "session.touched", "session.expired",
        ]  # fmt: skip
        shown = [request, TouchSession(OWN), made, store, log, store._fold._sessions, vars(store)]
        assert [OWN in repr(each) for each in shown] == [False] * len(shown)
        assert OWN in repr(str(made.id))  # the test would see it
        assert pickle.loads(pickle.dumps(made)) == made
        log.close()
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert any(handle_of(OWN).encode() in data for data in kept)
    assert not any(OWN.encode() in data for data in kept)


def test_tokens_are_compared_in_constant_time(
    memory: BearerSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = memory.create(CreateSession("ada", NOW + HOUR))
    compared: list[tuple[bytes, bytes]] = []
    target = "harnpy.eventlog.bearer.equal_in_constant_time"
    monkeypatch.setattr(target, lambda a, b: compared.append((a, b)))
    assert memory.get(made.id) is None  # what the comparison says decides
    handle = handle_of(made.id).encode()
    assert compared == [(handle, handle)]


def test_the_functions_are_the_methods(memory: BearerSessions) -> None:
    assert sessions.SessionStore is BearerSessions
    made = sessions.create(memory, CreateSession("ada", NOW + HOUR))
    assert sessions.get(memory, made.id) == sessions.touch(memory, TouchSession(made.id)) == made
    assert sessions.expire(memory, made.id) is True
