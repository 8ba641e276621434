"""An event of a topic, and how the log fails. Spec: 08 §15.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import MisuseError

if TYPE_CHECKING:
    from collections.abc import Mapping


class LogError(MisuseError):
    """The log could not do what was asked. Nothing has changed."""

    def message_from(self, builtin: str) -> str:
        return f"event_log: {self.message}"


class InvalidTopic(LogError):
    pass


class LogEvent(NamedTuple):
    """``payload`` is a JSON value. The log sets the provenance headers and, when it is None, the time."""

    kind: str
    payload: Any = None
    headers: Mapping[str, str] = {}
    occurred_at_ms: int | None = None
