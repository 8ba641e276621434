"""The events that wait for a daemon: first in, first out, one in flight at a time. Spec: 07 §12.

An event is delivered at least once: it is done when a daemon state that includes it was saved. An event
that was in flight when the daemon stopped comes first when it resumes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.reading.dicts import Dict


CAPACITY = 1024


class EventQueue:
    """``pending`` are the undelivered events, at most ``capacity``; ``inflight`` is the delivered one that
    isn't done, if any."""

    def __init__(self, capacity: int, pending: Iterable[Any] = ()) -> None:
        self.capacity = capacity
        self.pending = list(pending)
        self.inflight: Any = None

    def put(self, event: Any, daemon_id: str) -> None:
        """Queue an event. Raises `MisuseError` when the queue is full."""
        if len(self.pending) >= self.capacity:
            raise MisuseError(
                f"Daemon queue full: daemon '{daemon_id}' reached its event_queue_capacity of {self.capacity}"
            )
        self.pending.append(event)

    def take(self) -> Any:
        """Deliver the first event."""
        self.inflight = self.pending.pop(0)
        return self.inflight

    def settle(self) -> None:
        """Mark the event in flight as done."""
        self.inflight = None

    def counts(self) -> Dict:
        """Return the counts that programs see; ``queued_event_count`` includes the event in flight."""
        return {
            "pending_event_count": len(self.pending),
            "queued_event_count": len(self.pending) + (self.inflight is not None),
            "event_queue_capacity": self.capacity,
        }
