"""Event logs on every store. Spec: 08 §15.2, 10 §C22."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from harnpy.eventlog import (
    ConsumerLagged,
    FileEventLog,
    InvalidConsumer,
    LogEvent,
    LogSerdeError,
    LogSqliteError,
    MemoryEventLog,
    SqliteEventLog,
    StoreEventLog,
)
from harnpy.storage import Store

Opened = Callable[..., Store]


def fill(log: StoreEventLog, count: int, topic: str = "t") -> None:
    for number in range(count):
        log.append(topic, LogEvent("k", number))


def payloads(log: StoreEventLog, *args: Any) -> list[Any]:
    return [event.payload for _, event in log.read_range("t", *args)]


def test_events_come_back_as_they_were_given(log: StoreEventLog, opened: Opened) -> None:
    payload = {"text": "naïve \x00 ☃", "n": [1, 1.0, 1e300, -0.5, None, True], "": {}}
    assert log.append("a.b-c_1", LogEvent("what happened", payload, {"who": "é"})) == 1
    assert log.append("a.b-c_1", LogEvent("", occurred_at_ms=7)) == 2
    for other in (log, StoreEventLog(opened())) if "memory" not in log.store.url else (log,):
        (_, first), (id, second) = other.read_range("a.b-c_1")
        assert (first.kind, first.payload, first.occurred_at_ms) == ("what happened", payload, 1500)
        assert [type(n) for n in first.payload["n"]] == [int, float, float, float, type(None), bool]
        assert first.headers["who"] == "é"
        assert first.headers["harn.provenance.schema"] == "harn-eventlog-provenance-v1"
        assert "harn.provenance.prev_hash" not in first.headers
        assert (id, second.kind, second.payload, second.occurred_at_ms) == (2, "", None, 7)
        assert second.headers["harn.provenance.prev_hash"] == first.headers["harn.provenance.record_hash"]
        assert other.verify_topic("a.b-c_1") == []


def test_reading_begins_behind_an_id(log: StoreEventLog) -> None:
    fill(log, 5)
    ranges = [(), (2,), (2, 2), (5,), (9,), (0, 0), (-3, 1)]
    assert [payloads(log, *given) for given in ranges] == [
        [0, 1, 2, 3, 4], [2, 3, 4], [2, 3], [], [], [], [0],
    ]  # fmt: skip
    assert (log.latest("t"), log.latest("other"), log.topics()) == (5, None, ["t"])


def test_events_that_are_appended_at_once_are_chained(log: StoreEventLog) -> None:
    log.append("t", LogEvent("k", 0))
    assert log.append_all("t", [LogEvent("k", number) for number in (1, 2)]) == 3
    assert (payloads(log), log.verify_topic("t")) == ([0, 1, 2], [])
    with pytest.raises(LogSerdeError):
        log.append_all("t", [LogEvent("k", 3), LogEvent("k", float("nan"))])
    assert log.latest("t") == 3


def test_a_forged_header_of_ours_is_replaced_and_a_forged_event_found(log: StoreEventLog) -> None:
    forged = {f"harn.provenance.{name}": "x" for name in ("schema", "prev_hash", "record_hash")}
    log.append("t", LogEvent("k", 1, forged))
    log.append("t", LogEvent("k", 2, forged))
    assert log.verify_topic("t") == []
    stream = log.store.stream("topic", "t", log._stream("t").codec)  # type: ignore[attr-defined]
    stream.append([(3, LogEvent("k", 3, forged, 1))], 2)
    assert log.verify_topic("t") == ["event 3: record hash mismatch", "event 3: previous hash mismatch"]


def test_what_is_not_json_is_refused_and_nothing_written(log: StoreEventLog) -> None:
    for payload in (object(), float("nan"), {1: {2}}):
        with pytest.raises(LogSerdeError, match=r"^event log parse error: an event must be JSON$"):
            log.append("t", LogEvent("k", payload))
    assert (log.latest("t"), log.topics()) == (None, [])


def test_half_a_surrogate_pair_stays_in_memory(log: StoreEventLog) -> None:
    if log.store.url == "memory:":
        assert log.append("t", LogEvent("k", "\ud800")) == 1
        return
    for event in (LogEvent("k", "\ud800"), LogEvent("\ud800"), LogEvent("k", None, {"a": "\ud800"})):
        with pytest.raises(LogSerdeError, match=r"^event log parse error: half a surrogate pair in "):
            log.append("t", event)
    assert log.latest("t") is None


def test_cursors_are_kept_by_topic_and_consumer(log: StoreEventLog, opened: Opened) -> None:
    assert log.consumer_cursor("t", "c") is None
    log.ack("t", "c", 5)
    log.ack("t", "any name: ☃/x", 7)
    log.ack("t", "c", 3)  # a replay
    log.ack("u", "c", 99)  # a topic without events
    asked = [("t", "c"), ("t", "any name: ☃/x"), ("u", "c"), ("u", "d")]
    assert [log.consumer_cursor(*names) for names in asked] == [3, 7, 99, None]
    assert log.topics() == []
    for call in (lambda: log.ack("t", " ", 1), lambda: log.consumer_cursor("t", "")):
        with pytest.raises(InvalidConsumer, match=r"^consumer id cannot be empty$"):
            call()


def test_compaction_forgets_events_and_keeps_ids_and_the_chain(log: StoreEventLog, opened: Opened) -> None:
    fill(log, 5)
    sqlite = log.store.url.startswith("sqlite:")
    assert log.compact("t", 2) == (2, 3, 5, sqlite)
    assert (payloads(log), log.verify_topic("t")) == ([2, 3, 4], [])
    assert log.compact("t", 1) == (0, 3, 5, sqlite)
    assert log.compact("t", 99) == (3, 0, 5, sqlite)
    assert (payloads(log), log.latest("t"), log.topics(), log.verify_topic("t")) == ([], 5, ["t"], [])
    later = log if "memory" in log.store.url else StoreEventLog(opened())
    assert later.append("t", LogEvent("k", "next")) == 6
    assert (payloads(log), log.verify_topic("t")) == (["next"], [])
    assert log.compact("unknown", 3) == (0, 0, None, sqlite)


def test_a_crash_between_the_two_halves_of_a_compaction_harms_nothing(
    log: StoreEventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log, 4)
    with monkeypatch.context() as patch:
        patch.setattr(type(log._stream("t")), "drop", lambda stream, until: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            log.compact("t", 3)
    assert (payloads(log), log.verify_topic("t")) == ([0, 1, 2, 3], [])
    assert log.append("t", LogEvent("k", 4)) == 5
    assert log.compact("t", 3)[:3] == (3, 2, 5)
    assert (payloads(log), log.verify_topic("t")) == ([3, 4], [])


def test_threads_and_processes_that_append_leave_no_gap(log: StoreEventLog, url: str, opened: Opened) -> None:
    logs = [log, log] if url == "memory:" else [log, StoreEventLog(opened())]
    threads = [Thread(target=fill, args=(each, 10)) for each in logs]
    processes = [] if url == "memory:" else [subprocess.Popen([sys.executable, "-c", APPENDS, url])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [process.wait() for process in processes] == [0] * len(processes)
    events = log.read_range("t")
    assert [id for id, _ in events] == list(range(1, 21 + 10 * len(processes)))
    assert log.verify_topic("t") == []
    assert log.latest("t") == len(events)


APPENDS = """
import sys
from harnpy.eventlog import LogEvent, StoreEventLog
from harnpy.storage import open_store
log = StoreEventLog(open_store(sys.argv[1]))
for number in range(10):
    log.append("t", LogEvent("k", number))
"""


def test_a_subscriber_gets_what_is_there_and_then_what_comes(log: StoreEventLog) -> None:
    fill(log, 200 if log.store.url == "memory:" else 10)  # more than it reads at once
    there = log.latest("t") or 0
    with log.subscribe("t", 2) as events:
        assert [next(events)[0] for _ in range(there - 2)] == list(range(3, there + 1))
        Thread(target=fill, args=(log, 2)).start()
        assert [next(events)[0] for _ in range(2)] == [there + 1, there + 2]
    assert list(events) == []


def test_a_waiting_subscriber_can_be_closed_from_elsewhere(log: StoreEventLog) -> None:
    got: list[Any] = []
    events = log.subscribe("t")
    thread = Thread(target=lambda: got.extend(events))
    thread.start()
    events.close()
    thread.join()
    assert got == []


def test_a_subscriber_that_does_not_keep_up_is_told_where_it_was(opened: Opened) -> None:
    log = StoreEventLog(opened(), queue_depth=2)
    fill(log, 3)
    events = log.subscribe("t")
    assert [next(events)[1].payload for _ in range(3)] == [0, 1, 2]  # the past may be long
    fill(log, 1)
    assert next(events)[0] == 4
    fill(log, 3)
    with pytest.raises(ConsumerLagged, match=r"^subscriber lagged behind after event 4$") as failed:
        next(events)
    assert failed.value.last_id == 4
    assert list(events) == []
    assert next(log.subscribe("t", failed.value.last_id))[0] == 5


def test_a_subscriber_skips_what_was_forgotten(log: StoreEventLog) -> None:
    fill(log, 3)
    log.compact("t", 3)
    events = log.subscribe("t")
    Thread(target=fill, args=(log, 1)).start()
    assert next(events)[0] == 4


def test_the_twins_for_asyncio(log: StoreEventLog) -> None:
    async def use() -> None:
        assert await log.aappend("t", LogEvent("k", 1)) == 1
        await log.aack("t", "c", 1)
        await log.aflush()
        assert await log.aconsumer_cursor("t", "c") == await log.alatest("t") == 1
        assert [id for id, _ in await log.aread_range("t", 0, limit=5)] == [1]
        assert (await log.atopics(), await log.averify_topic("t")) == (["t"], [])
        async for id, _ in log.asubscribe("t"):
            if id == 2:
                break
            await log.aappend("t", LogEvent("k", 2))
        assert (await log.acompact("t", 1)).removed == 1

    asyncio.run(use())


def test_the_three_by_name(tmp_path: Path) -> None:
    logs = [MemoryEventLog(), FileEventLog(tmp_path / "events", 4), SqliteEventLog(tmp_path / "e.db")]
    for log in logs:
        log.append("t", LogEvent("k"))
    memory, file, sqlite = (log.describe() for log in logs)
    assert memory == ("memory", None, None, 128)
    assert (file.backend, file.location, file.queue_depth) == ("file", str(tmp_path / "events"), 4)
    assert (sqlite.backend, sqlite.location) == ("sqlite", str(tmp_path / "e.db"))
    assert file.size_bytes
    assert sqlite.size_bytes
    for log in logs:
        log.close()
    assert payloads(FileEventLog(tmp_path / "events")) == [None]


def test_a_torn_last_line_is_no_event_and_a_bad_one_before_it_an_error(tmp_path: Path) -> None:
    log = FileEventLog(tmp_path)
    fill(log, 2)
    log.close()
    (file,) = (tmp_path / "logs").rglob("*.jsonl")
    whole = file.read_bytes()
    file.write_bytes(whole + whole.splitlines(keepends=True)[1][:20])
    torn = FileEventLog(tmp_path)
    assert payloads(torn) == [0, 1]
    assert torn.append("t", LogEvent("k", 2)) == 3


def test_a_store_that_fails_is_an_error_of_the_log(tmp_path: Path) -> None:
    (tmp_path / "no.db").write_text("this is no database " * 100)
    with pytest.raises(LogSerdeError, match=r"^event log parse error: .*no\.db"):
        SqliteEventLog(tmp_path / "no.db").append("t", LogEvent("k"))
    with pytest.raises(LogSqliteError, match=r"^event log open error: "):
        SqliteEventLog(tmp_path / "no.db" / "x.db")
    log = SqliteEventLog(tmp_path / "closed.db")
    log.close()
    with pytest.raises(LogSqliteError, match=r"is closed$"):
        log.append("t", LogEvent("k"))
