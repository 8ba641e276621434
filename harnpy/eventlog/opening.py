"""Event logs by their configuration. Spec: 08 §15.2, 10 §C22."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, NamedTuple

from harnpy.eventlog.contract import QUEUE_DEPTH
from harnpy.eventlog.errors import ConfigError, reported
from harnpy.eventlog.topics import StoreEventLog
from harnpy.storage.opening import open_store

if TYPE_CHECKING:
    from os import PathLike

    from harnpy.storage.contract import Store
    from harnpy.world.environment import Environment

BACKEND, DIRECTORY, SQLITE, DEPTH = (
    f"HARN_EVENT_LOG_{name}" for name in ("BACKEND", "DIR", "SQLITE_PATH", "QUEUE_DEPTH")
)


class MemoryEventLog(StoreEventLog):
    """One that lives and dies with the process."""

    def __init__(self, queue_depth: int = QUEUE_DEPTH) -> None:
        super().__init__(opened("memory:"), queue_depth)


class FileEventLog(StoreEventLog):
    """One in the directory ``root``, a file for each topic."""

    def __init__(self, root: str | PathLike[str], queue_depth: int = QUEUE_DEPTH) -> None:
        super().__init__(opened(f"jsonl:{root}"), queue_depth)


class SqliteEventLog(StoreEventLog):
    """One in the file at ``path``."""

    def __init__(self, path: str | PathLike[str], queue_depth: int = QUEUE_DEPTH) -> None:
        super().__init__(opened(f"sqlite:{path}"), queue_depth)


class EventLogConfig(NamedTuple):
    """``backend`` is ``memory``, ``file`` or ``sqlite``."""

    backend: str = "sqlite"
    file_dir: str = ".harn/events"
    sqlite_path: str = ".harn/events.sqlite"
    queue_depth: int = QUEUE_DEPTH

    @classmethod
    def for_base_dir(
        cls, path: str | PathLike[str], environment: Environment | None = None
    ) -> EventLogConfig:
        """What the environment (None: the process's) says, with paths that count from ``path``."""
        if environment is None:
            from harnpy.world import World

            environment = World().environment
        base, usual = str(path), cls()
        return cls(
            environment.get(BACKEND) or usual.backend,
            os.path.join(base, environment.get(DIRECTORY) or usual.file_dir),
            os.path.join(base, environment.get(SQLITE) or usual.sqlite_path),
            _depth(environment.get(DEPTH)),
        )

    @property
    def url(self) -> str:
        """The store's. Raises `ConfigError`."""
        urls = {"memory": "memory:", "file": f"jsonl:{self.file_dir}", "sqlite": f"sqlite:{self.sqlite_path}"}
        if self.backend not in urls:
            raise ConfigError(f"unsupported event log backend '{self.backend}'")
        return urls[self.backend]


def open_event_log(config: EventLogConfig) -> StoreEventLog:
    """Open the log, creating it when there is none. Raises `ConfigError`, `LogIoError`."""
    return StoreEventLog(opened(config.url), config.queue_depth)


def opened(url: str) -> Store:
    """Open a log's store. Raises `LogIoError`."""
    with reported(url, "open"):
        return open_store(url)


def _depth(text: str | None) -> int:
    return max(1, int(text)) if text and text.isascii() and text.isdecimal() else QUEUE_DEPTH
