"""Agent events in an installed event log. Spec: 08 §1.7."""

from __future__ import annotations

import contextvars
from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.eventlog import MemoryEventLog, SqliteEventLog, StoreEventLog, install_event_log

LOOP = """
let heard = atomic(0)
agent_session_open("chat 7/ä")
agent_subscribe("chat 7/ä", { event -> atomic_add(heard, 1) })
llm_mock({text: "password=hunter2hunter2 ##DONE##"})
agent_loop("go", nil, {provider: "mock", persistent: true, session_id: "chat 7/ä"})
agent_session_open("chat 7/ä")
agent_session_close("chat 7/ä")
return atomic_get(heard)
"""
TOPIC = "observability.agent_events.chat_7__"


def with_log(log: StoreEventLog) -> object:
    """The value of the program where the log is installed."""

    def use() -> object:
        install_event_log(log)
        return Vm().run_source(LOOP)

    return contextvars.Context().run(use)


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARN_EVENT_LOG_DIR", str(tmp_path / "files"))
    return tmp_path


def test_every_agent_event_of_a_session_is_in_its_topic(directory: Path) -> None:
    log = MemoryEventLog()
    heard = with_log(log)
    assert log.topics() == [TOPIC]
    events = [event for _, event in log.read_range(TOPIC)]
    assert len(events) == heard
    assert {event.headers["session_id"] for event in events} == {"chat 7/ä"}
    assert [event.kind for event in events[:2]] == ["turn_start", "iteration_start"]
    assert events[-1].kind == "agent_session_closed"
    for event in events:
        assert event.payload.keys() == {"index_hint", "session_id", "event"}
        assert event.payload["session_id"] == event.payload["event"]["session_id"] == "chat 7/ä"
        assert event.payload["event"]["type"] == event.kind
    assert "hunter2" not in str(events)
    assert not (directory / "files").exists()  # the log comes before the directory


def test_a_log_that_fails_ends_nothing(capsys: pytest.CaptureFixture[str], directory: Path) -> None:
    log = SqliteEventLog(directory / "events.db")
    log.close()
    assert with_log(log)
    warnings = capsys.readouterr().err.splitlines()
    assert len(warnings) == 1
    assert warnings[0].startswith(f"warning: agent.event_log: {TOPIC}: event log ")
