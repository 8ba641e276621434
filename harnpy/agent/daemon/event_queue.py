"""The events that wait for a daemon: first in, first out, one in its hands at a time. Spec: 07 §12.

An event is delivered at least once: it counts as dealt with when the daemon's state with it was saved, and
one that was in its hands when it stopped comes first when it goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.reading.dicts import Dict


CAPACITY = 1024


class EventQueue:
    """``pending`` are the undelivered ones, at most ``capacity``; ``inflight`` is the one it has,
    None when it has none."""

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
        """Hand the first event over."""
        self.inflight = self.pending.pop(0)
        return self.inflight

    def settle(self) -> None:
        """What was handed over has been dealt with."""
        self.inflight = None

    def counts(self) -> Dict:
        """How programs see it; ``queued_event_count`` is of all that haven't been dealt with."""
        return {
            "pending_event_count": len(self.pending),
            "queued_event_count": len(self.pending) + (self.inflight is not None),
            "event_queue_capacity": self.capacity,
        }
