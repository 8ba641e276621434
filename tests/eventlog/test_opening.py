"""Event logs by their configuration, and the installed one. Spec: 08 §15.2."""

from __future__ import annotations

import contextvars
from contextlib import closing
from pathlib import Path

import pytest

from harnpy.eventlog import (
    ConfigError,
    EventLogConfig,
    MemoryEventLog,
    active_event_log,
    install_event_log,
    open_event_log,
    reset_active_event_log,
)
from harnpy.world.environment import Variables


def test_a_base_directory_has_a_log_of_its_own(tmp_path: Path) -> None:
    config = EventLogConfig.for_base_dir(tmp_path, Variables())
    assert config == ("sqlite", f"{tmp_path}/.harn/events", f"{tmp_path}/.harn/events.sqlite", 128)
    with closing(open_event_log(config)) as log:
        assert log.describe().location == f"{tmp_path}/.harn/events.sqlite"


@pytest.mark.parametrize(
    ("depth", "expected"), [("7", 7), ("0", 1), ("-3", 128), ("many", 128), ("", 128), ("²", 128)]
)
def test_the_environment_has_a_say(tmp_path: Path, depth: str, expected: int) -> None:
    variables = {"BACKEND": "file", "DIR": "logs", "SQLITE_PATH": "/abs/e.db", "QUEUE_DEPTH": depth}
    environment = Variables({f"HARN_EVENT_LOG_{name}": value for name, value in variables.items()})
    config = EventLogConfig.for_base_dir(tmp_path, environment)
    assert config == ("file", f"{tmp_path}/logs", "/abs/e.db", expected)
    assert open_event_log(config).store.url == f"jsonl:{tmp_path}/logs"


def test_an_unknown_backend_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"^unsupported event log backend 'kafka'$"):
        open_event_log(EventLogConfig("kafka"))


def test_a_log_is_installed_where_it_is_wanted() -> None:
    def use() -> None:
        first = active_event_log()
        assert first.describe().backend == "memory"
        assert active_event_log() is first
        own = MemoryEventLog()
        install_event_log(own)
        assert active_event_log() is own
        assert contextvars.Context().run(active_event_log) is not own
        reset_active_event_log()
        assert active_event_log() not in (first, own)

    contextvars.Context().run(use)
