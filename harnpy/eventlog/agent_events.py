"""The agent events of one session, in a topic of their own. Spec: 08 §1.7.

A log that fails is warned of once and then left alone; the session continues. Secrets are masked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from harnpy.eventlog.contract import LogEvent
from harnpy.eventlog.errors import LogError
from harnpy.formats.json import as_data
from harnpy.world.clock import milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.eventlog.contract import EventLog

_FAMILY = "observability.agent_events"
_UNSUPPORTED = re.compile(r"[^A-Za-z0-9._-]")


def topic_of(session_id: str) -> str:
    """Return the topic of a session's events."""
    return f"{_FAMILY}.{_UNSUPPORTED.sub('_', session_id)}"


class AgentEventTopic:
    """Appends what it is given. ``now`` is epoch seconds; ``warn`` takes a topic and a message."""

    def __init__(
        self,
        log: EventLog,
        session_id: str,
        now: Callable[[], float],
        warn: Callable[[str, str], object],
    ) -> None:
        self.topic = topic_of(session_id)
        self._log = log
        self._session_id = session_id
        self._now = now
        self._warn = warn
        self._broken = False

    def write(self, event: dict[str, Any]) -> None:
        """Append an event as ``{index_hint, session_id, event}``; the hint is the time in milliseconds."""
        if self._broken:
            return
        from harnpy.formats.secrets.masking import mask_value  # takes its time to load

        payload = {
            "index_hint": milliseconds(self._now()),
            "session_id": self._session_id,
            "event": as_data(mask_value(event)),
        }
        try:
            self._log.append(self.topic, LogEvent(event["type"], payload, {"session_id": self._session_id}))
        except LogError as error:
            self._broken = True
            self._warn("agent.event_log", f"{self.topic}: {error.message}")
