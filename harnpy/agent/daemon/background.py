"""A daemon that runs in the background of a program, with its directory of state. Spec: 07 §12.

`daemon.json` is the loop's snapshot; `daemon.meta.json` describes the loop and holds its events.
"""

from __future__ import annotations

import os.path
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harnpy.agent.daemon.daemon_snapshot import is_count, is_list, is_text
from harnpy.agent.workers.snapshots import without_functions
from harnpy.agent.workers.worker import RUNNING

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.agent.background_runs import Activity, Bell
    from harnpy.agent.daemon.daemon_snapshot import DaemonSnapshot, Shape, StateFiles
    from harnpy.agent.daemon.event_queue import EventQueue
    from harnpy.agent.daemon.resting import Daemon
    from harnpy.agent.loop.loop import Loop
    from harnpy.reading.dicts import Dict


META = "daemon_meta"
SHAPE: Shape = {
    **dict.fromkeys(("id", "name", "task", "session_id", "status"), is_text),
    "system": lambda value: value is None or is_text(value),
    "options": lambda value: isinstance(value, dict),
    "event_queue_capacity": is_count,
    "pending_events": is_list,
    "inflight_event": lambda value: True,
}


@dataclass(slots=True)
class BackgroundDaemon:
    """``options`` are those of its loop. ``as_text(event)`` is what the loop reads of an event.

    It is the loop's `Owner`: it passes events to the loop, and rings its ``bell`` when a state is saved.
    """

    id: str
    name: str
    task: str
    system: str | None
    session_id: str
    directory: str
    options: Dict
    events: EventQueue
    files: StateFiles
    bell: Bell
    as_text: Callable[[Any], str]
    status: str = RUNNING
    error: str | None = None
    result: Dict | None = None
    rests: Daemon | None = None
    activity: Activity | None = None
    last: DaemonSnapshot | None = None
    #: How often its state was saved.
    saves: int = 0

    listening = True

    @property
    def running(self) -> bool:
        return self.status == RUNNING

    @property
    def snapshot_path(self) -> str:
        return os.path.join(self.directory, "daemon.json")

    def drive(self, loop: Loop) -> None:
        """Become the owner of a loop that is about to run."""
        assert loop.daemon is not None
        loop.daemon.owner, self.rests = self, loop.daemon

    def current(self) -> DaemonSnapshot:
        """Return its state while it works, before its first rest."""
        assert self.rests is not None
        return self.rests.snapshot("active")

    # What its loop calls.

    def waiting(self) -> bool:
        return bool(self.events.pending)

    def take(self) -> str:
        event = self.events.take()
        self.save()
        return self.as_text(event)

    def saved(self, snapshot: DaemonSnapshot) -> None:
        self.events.settle()
        self.save()
        self.last, self.saves = snapshot, self.saves + 1
        self.bell.ring()

    def wait(self, seconds: float) -> None:
        self.bell.wait(seconds=seconds)

    # Its state.

    def save(self) -> None:
        """Write what the next run of the program needs besides the snapshot."""
        meta = {
            "_type": META,
            "id": self.id,
            "name": self.name,
            "task": self.task,
            "system": self.system,
            "session_id": self.session_id,
            "status": self.status,
            "options": without_functions(self.options),
            "pending_events": self.events.pending,
            "inflight_event": self.events.inflight,
            "event_queue_capacity": self.events.capacity,
        }
        self.files.save(meta_path(self.directory), meta)

    def handle(self) -> Dict:
        """Return the daemon as programs see it."""
        last = self.last
        facts = {
            "daemon_state": last and last.daemon_state,
            "saved_at": last and last.saved_at,
            "inflight_event": self.events.inflight,
            "error": self.error,
            "result": self.result,
        }
        return {
            "id": self.id,
            "name": self.name,
            "status": self.status,
            "session_id": self.session_id,
            "persist_path": self.directory,
            "snapshot_path": self.snapshot_path,
            **self.events.counts(),
            **{key: value for key, value in facts.items() if value is not None},
        }


def meta_path(directory: str) -> str:
    return os.path.join(directory, "daemon.meta.json")
