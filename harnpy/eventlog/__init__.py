"""Topics: named streams of events that anyone may add to and follow. Spec: 08 §15, 10 §C22.

`EventLog` says what a log can do, `StoreEventLog` is one on any store. The room knows no sessions, no models,
no language.
"""

from harnpy.eventlog.contract import (
    CompactReport,
    ConsumerId,
    EventLog,
    EventLogDescription,
    LogEvent,
    Subscription,
    Topic,
)
from harnpy.eventlog.errors import (
    ConfigError,
    ConsumerLagged,
    InvalidConsumer,
    InvalidTopic,
    LogError,
    LogIoError,
    LogSerdeError,
    LogSqliteError,
    TopicMoved,
)
from harnpy.eventlog.topics import (
    EventLogConfig,
    FileEventLog,
    MemoryEventLog,
    SqliteEventLog,
    StoreEventLog,
    active_event_log,
    install_event_log,
    open_event_log,
    reset_active_event_log,
)

__all__ = [
    "CompactReport",
    "ConfigError",
    "ConsumerId",
    "ConsumerLagged",
    "EventLog",
    "EventLogConfig",
    "EventLogDescription",
    "FileEventLog",
    "InvalidConsumer",
    "InvalidTopic",
    "LogError",
    "LogEvent",
    "LogIoError",
    "LogSerdeError",
    "LogSqliteError",
    "MemoryEventLog",
    "SqliteEventLog",
    "StoreEventLog",
    "Subscription",
    "Topic",
    "TopicMoved",
    "active_event_log",
    "install_event_log",
    "open_event_log",
    "reset_active_event_log",
]
