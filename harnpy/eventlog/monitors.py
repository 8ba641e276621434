"""A monitor: somebody looks again and again until a condition holds, or time is over. Spec: 06 §28, 10 §C18.

Its topic is ``monitor.<wait_id>``:

started {wait_id, trace_id, at, deadline_at, poll_interval_ms, source_label}
polled {n, state, at}    only when the state is another
resolved {the result}

Looking is its owner's part. Here is what outlives the process: since when, until when, how often, the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.eventlog.contract import LogEvent
from harnpy.eventlog.waitpoints import INTERRUPTED, TopicFold, checked_json, moment_ms, moment_text, topic_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.eventlog.contract import EventLog

FAMILY = "monitor"
MATCHED = "matched"
_STARTED, _POLLED, _RESOLVED = "started", "polled", "resolved"
#: What is kept of how a monitor began.
_BEGIN = ("wait_id", "trace_id", "at", "deadline_at", "source_label")


class MonitorPlan(NamedTuple):
    """The settings of a monitor; times are in milliseconds."""

    timeout_ms: int
    poll_interval_ms: int
    label: str | None = None


class Monitor(TopicFold):
    """The monitor called ``wait_id``: a new one, or the one that somebody has begun.

    ``trace_id`` is noted with a new one. ``state`` is that of the last poll, ``poll_count`` counts those of
    former processes, too, up to the last one that changed it.
    """

    about = "monitor"

    def __init__(
        self, log: EventLog, wait_id: str, now_ms: Callable[[], int], plan: MonitorPlan, trace_id: str
    ) -> None:
        super().__init__(log, topic_of(FAMILY, wait_id))
        self.wait_id = wait_id
        self.state: Any = None
        self.poll_count = 0
        self._now_ms = now_ms
        self._started: dict[str, Any] | None = None
        self._has_state = False
        #: What the monitor came to, once it has.
        self.result: dict[str, Any] | None = None
        #: The event that says so.
        self.resolved_by: int | None = None
        now = now_ms()
        started = {
            "wait_id": wait_id,
            "trace_id": trace_id,
            "at": moment_text(now),
            "deadline_at": moment_text(now + plan.timeout_ms),
            "poll_interval_ms": plan.poll_interval_ms,
            "source_label": plan.label,
        }
        self.read()
        self.change(lambda: LogEvent(_STARTED, started) if self._started is None else None)

    def seconds_left(self) -> float:
        return max(moment_ms(self._begin["deadline_at"]) - self._now_ms(), 0) / 1000

    def context(self) -> dict[str, Any]:
        """Return what a poll is told: which one it is, the state before it, and until when there is time."""
        known = {key: self._begin[key] for key in ("wait_id", "source_label", "deadline_at")}
        return {**known, "poll_count": self.poll_count, "state": self.state}

    def polled(self, state: Any) -> None:
        """Note what a poll has found. Raises `WaitpointError` for what isn't JSON."""
        self.poll_count += 1
        found = checked_json(state, "state")
        if self._has_state and found == self.state:
            return
        self.state, self._has_state = found, True
        self._append_unless_resolved(_POLLED, {"n": self.poll_count, "state": found, "at": self._at()})

    def recorded(self) -> dict[str, Any] | None:
        """Return what the monitor came to when somebody else resolved it; None when nobody has."""
        return None if self.result is None else {**self.result, "replay_of_event_id": self.resolved_by}

    def resolve(self, status: str, *, condition_value: Any = None, pushes: int = 0) -> dict[str, Any]:
        """Note the end and return the result: that of whoever was first."""
        value = checked_json(condition_value, "condition_value")
        reason = None if status == MATCHED else f"the condition did not hold by {self._begin['deadline_at']}"
        found = self._result(status, self._at(), value, pushes, reason)
        own = self._append_unless_resolved(_RESOLVED, found)
        return found if own else self.recorded() or found

    def interrupted(self, pushes: int, reason: str) -> dict[str, Any]:
        """Return the result of a wait that somebody gave up. Nothing is written: it can be entered again."""
        return self._result(INTERRUPTED, None, None, pushes, reason)

    @property
    def _begin(self) -> dict[str, Any]:
        assert self._started is not None
        return self._started

    def _at(self) -> str:
        return moment_text(self._now_ms())

    def _result(
        self, status: str, at: str | None, value: Any, pushes: int, reason: str | None
    ) -> dict[str, Any]:
        return {
            "wait_id": self.wait_id,
            "status": status,
            "source_label": self._begin["source_label"],
            "started_at": self._begin["at"],
            "resolved_at": at,
            "state": self.state,
            "condition_value": value,
            "poll_count": self.poll_count,
            "push_wake_count": pushes,
            "trace_id": self._begin["trace_id"],
            "replay_of_event_id": None,
            "reason": reason,
        }

    def _append_unless_resolved(self, kind: str, payload: dict[str, Any]) -> bool:
        return self.change(lambda: LogEvent(kind, payload) if self.result is None else None)

    def _fold(self, number: int, kind: str, payload: Any) -> None:
        if kind == _STARTED and self._started is None:
            self._started = {key: payload[key] for key in _BEGIN}
        elif kind == _POLLED:
            self.state, self._has_state = payload["state"], True
            self.poll_count = max(self.poll_count, payload["n"])
        elif kind == _RESOLVED and self.result is None:
            self.result, self.resolved_by = payload, number
