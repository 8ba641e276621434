"""The background daemons of one program: start, trigger, stop, resume. Spec: 07 §12.

    spawn ───▶ running ──┬──▶ completed   its loop returned
                 ▲       ├──▶ failed      its loop raised
                 │       └──▶ stopped     stop
    resume ──────┘  from the directory, whatever its status was

In that directory, `daemon.json` is the loop's snapshot; `daemon.meta.json` describes the loop and holds its
events.
"""

from __future__ import annotations

import os.path
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from harnpy.agent.loop.loop import make_loop
from harnpy.agent.loop.resting import Count, StateFiles
from harnpy.agent.loop_options import DAEMON
from harnpy.agent.tasks import id_of_handle
from harnpy.agent.worker import COMPLETED, FAILED, RUNNING, without_functions
from harnpy.faults import Interruption, MisuseError
from harnpy.formats.dicts import Dict
from harnpy.formats.json import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harnpy.agent.loop.loop import Loop
    from harnpy.agent.loop.resting import Daemon, DaemonSnapshot
    from harnpy.agent.runtime import Runtime
    from harnpy.agent.tasks import Activity, Background, Bell

# The events that wait for a daemon: first in, first out, one in flight at a time. Spec: 07 §12.
#
# An event is delivered at least once: it is done when a daemon state that includes it was saved. An event
# that was in flight when the daemon stopped comes first when it resumes.


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


META_FILE = "daemon_meta"


class _Meta(TypedDict):
    """The state that the next run of the program needs besides the snapshot."""

    id: str
    name: str
    task: str
    session_id: str
    status: str
    system: str | None
    options: Dict
    event_queue_capacity: Count
    pending_events: list[Any]
    inflight_event: Any


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
        meta: _Meta = {
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
        self.files.save(meta_path(self.directory), {"_type": META_FILE, **meta})

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


STOPPED = "stopped"
SPAWN, RESUME = "daemon_spawn", "daemon_resume"
#: How long callers wait for a daemon's next rest, in seconds.
_PATIENCE = 0.5
#: Keys of a daemon's config that aren't options of its loop.
_OWN = ("task", "prompt", "name", "system", "state_dir", "event_queue_capacity")


class Daemons:
    """``background`` runs the loops."""

    def __init__(self, runtime: Runtime, background: Background) -> None:
        self._runtime = runtime
        self._background = background
        self._world = runtime.sessions.world
        self._daemons: dict[str, BackgroundDaemon] = {}

    def spawn(self, config: Any) -> BackgroundDaemon:
        """Start a daemon on its task. Raises `MisuseError` and `OptionError` for wrong configs."""
        if not isinstance(config, dict):
            raise MisuseError(f"{SPAWN}: config must be a dict")
        options, new_id = self._runtime.models.options(config), self._world.ids.new
        task = options.string("task") or options.string("prompt") or ""
        if not task.strip():
            raise MisuseError(f"{SPAWN}: config must include `task` or `prompt`")
        directory = options.string("persist_path") or options.string("state_dir") or ""
        if not directory.strip():
            raise MisuseError(f"{SPAWN}: config must include `persist_path` or `state_dir`")
        capacity = options.integer("event_queue_capacity")
        if capacity is not None and capacity < 1:
            raise MisuseError(f"{SPAWN}: event_queue_capacity must be >= 1")
        session_id = options.string("session_id") or ""
        daemon = BackgroundDaemon(
            id=f"daemon_{new_id()}",
            name=options.string("name") or "daemon",
            task=task,
            system=options.string("system"),
            session_id=session_id if session_id.strip() else f"daemon_session_{new_id()}",
            directory=directory,
            options={key: value for key, value in config.items() if key not in _OWN},
            events=EventQueue(DAEMON.default("event_queue_capacity") if capacity is None else capacity),
            files=StateFiles(self._world.held().files, self._runtime.workplace, SPAWN),
            bell=self._background.bell(),
            as_text=self._as_text,
        )
        self._refuse_second(directory, SPAWN)
        self._start(daemon, self._loop(daemon, task, None, SPAWN))
        return daemon

    def trigger(self, daemon: BackgroundDaemon, event: Any) -> None:
        """Queue an event for a daemon's next rest. Raises `MisuseError` when it takes none."""
        if not daemon.running:
            raise MisuseError(f"daemon_trigger: daemon {daemon.id} is not running")
        if event is None:
            raise MisuseError("daemon_trigger: event must not be nil")
        daemon.events.put(event, daemon.id)
        daemon.save()
        saves = daemon.saves
        daemon.bell.ring()
        self._await_rest(daemon, saves)

    def snapshot(self, daemon: BackgroundDaemon) -> Dict:
        """Return the daemon's last saved state, or else its present one, and its events."""
        self._collect(daemon)
        snapshot = daemon.last
        if snapshot is None:
            snapshot = daemon.current()
        events = daemon.events
        queue = {"pending_events": list(events.pending), "inflight_event": events.inflight}
        return {**snapshot.as_dict(), **queue, **events.counts()}

    def stop(self, daemon: BackgroundDaemon) -> None:
        """Stop the daemon at once. Its directory keeps the state of its last rest, and its events."""
        self._collect(daemon)
        daemon.status = STOPPED
        activity, daemon.activity = daemon.activity, None
        try:
            daemon.save()
        finally:
            daemon.bell.ring()
            if activity is not None:
                activity.abort()

    def resume(self, directory: str) -> BackgroundDaemon:
        """Start the daemon of a directory again. Raises `MisuseError` when there is none."""
        files = StateFiles(self._world.held().files, self._runtime.workplace, RESUME)
        self._refuse_second(directory, RESUME)
        meta = files.load(meta_path(directory), META_FILE, _Meta)
        former = self._daemons.get(meta["id"])
        daemon = BackgroundDaemon(
            **{key: meta[key] for key in ("id", "name", "task", "system", "session_id")},
            directory=directory,
            options=meta["options"] if former is None else former.options,
            events=EventQueue(meta["event_queue_capacity"], meta["pending_events"]),
            files=files,
            bell=self._background.bell(),
            as_text=self._as_text,
        )
        if files.modified(daemon.snapshot_path) is None:
            task, state = daemon.task, None
        else:
            task, state = "", daemon.snapshot_path
        inflight = meta["inflight_event"]
        if inflight is not None and not self._is_in_session(daemon, inflight):
            daemon.events.pending.insert(0, inflight)
        self._start(daemon, self._loop(daemon, task, state, RESUME))
        return daemon

    def find(self, handle: Any) -> BackgroundDaemon:
        """Return the daemon of a handle: its id, or a dict with the id."""
        id = id_of_handle(handle, "daemon", "daemon")
        if id not in self._daemons:
            raise MisuseError(f"unknown daemon: {id}")
        return self._daemons[id]

    # A run.

    def _loop(self, daemon: BackgroundDaemon, task: str, state: str | None, caller: str) -> Loop:
        """Return the loop of a daemon, which continues from the ``state`` in a file, if there is one."""
        given = {
            **daemon.options,
            "daemon": True,
            "session_id": daemon.session_id,
            "persist_path": daemon.snapshot_path,
            "resume_path": state,
        }
        loop = make_loop(self._runtime, task, daemon.system, given, caller=caller)
        daemon.drive(loop)
        return loop

    def _start(self, daemon: BackgroundDaemon, loop: Loop) -> None:
        daemon.save()
        self._daemons[daemon.id] = daemon
        context = self._runtime.context().branch()
        daemon.activity = self._background.start(lambda: self._run(daemon, loop), context)
        self._await_rest(daemon, 0)

    def _run(self, daemon: BackgroundDaemon, loop: Loop) -> None:
        """Run the loop to its end. The result of a daemon that was stopped meanwhile is dropped."""
        try:
            with self._runtime.tools_bound(daemon.options):
                result = loop.run()
        except (Exception, Interruption) as error:
            if daemon.running:
                daemon.error = getattr(error, "message", None) or str(error)
                self._end(daemon, FAILED)
            return
        if daemon.running:
            daemon.result = result
            self._end(daemon, COMPLETED)

    def _end(self, daemon: BackgroundDaemon, status: str) -> None:
        daemon.status = status
        try:
            daemon.save()
        except MisuseError as error:
            self._world.warn("agent.daemon", error.message)
        daemon.bell.ring()

    def _await_rest(self, daemon: BackgroundDaemon, saves: int) -> None:
        """Wait until the daemon's state is saved again or it has ended, for a limited time."""
        clock = self._world.clock.monotonic
        until = clock() + _PATIENCE
        while daemon.saves == saves and daemon.running and (left := until - clock()) > 0:
            daemon.bell.wait(seconds=left)
        self._collect(daemon)

    def _collect(self, daemon: BackgroundDaemon) -> None:
        if daemon.activity is not None:
            daemon.activity.collect()

    # Directories and events.

    def _refuse_second(self, directory: str, caller: str) -> None:
        where = self._place(directory)
        for daemon in self._daemons.values():
            if daemon.running and self._place(daemon.directory) == where:
                raise MisuseError(f"{caller}: a daemon is already running for '{directory}'")

    def _place(self, directory: str) -> str:
        return os.path.normpath(self._runtime.workplace.path(directory))

    def _as_text(self, event: Any) -> str:
        return event if isinstance(event, str) else to_json(event)

    def _is_in_session(self, daemon: BackgroundDaemon, event: Any) -> bool:
        """Return True if the session holds an event that the saved state doesn't have."""
        sessions, path = self._runtime.sessions, daemon.snapshot_path
        if not sessions.exists(daemon.session_id):
            return False
        known = 0
        if daemon.files.modified(path) is not None:
            known = len(daemon.files.snapshot(path).visible_messages)
        message = {"role": "user", "content": self._as_text(event)}
        return message in sessions.messages(daemon.session_id)[known:]
