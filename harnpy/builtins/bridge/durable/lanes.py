"""Waiting for a session as tasks do, so that others go on meanwhile. Spec: 10 §C7.2, §C9."""

from __future__ import annotations

from asyncio import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from harnpy.builtins.bridge.agent_tasks import AgentTasks
from harnpy.session.errors import LaneFull, LaneTimeout, SessionBusy
from harnpy.session.runtime.lanes import MOST_WAITING
from harnpy.storage.errors import LeaseHeld
from harnpy.vm.run.tasks.permits import Lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.vm.run.tasks.scheduler import Scheduler
    from harnpy.vm.run.tasks.task import Task
    from harnpy.vm.vm import Vm

T = TypeVar("T")

#: How long a task waits for its session. Seconds.
WAIT: Final = 30.0
#: How often it looks whether another process has let go of it. Seconds.
_LOOK: Final = 0.05


class TaskCaller:
    """Calls the functions of one action, in the task that runs: a `harnpy.session.runtime.calling.Caller`."""

    def __init__(self, vm: Vm) -> None:
        self._tasks = AgentTasks(vm)
        self._stopped = False

    def __call__(self, fn: Callable[..., Any], *args: Any) -> Any:
        self.check()
        found = fn(*args)
        return self._tasks.wait(found) if hasattr(found, "__await__") else found

    def check(self) -> None:
        """Raise what ends the task, or the action."""
        self._tasks.go_on()
        if self._stopped:
            raise CancelledError

    def stop(self) -> None:
        """End the action when it next calls something, or is saved."""
        self._stopped = True


class TaskLanes:
    """The sessions that tasks of a program work on, or wait for: first come, first served."""

    def __init__(self, tasks: Scheduler) -> None:
        self._tasks = tasks
        self._locks: dict[tuple[str, str], Lock] = {}
        self._owners: dict[tuple[str, str], Task] = {}

    def run(self, store: str, id: str, act: Callable[[], T]) -> T:
        """Return what ``act()`` returns, while nobody else works on the session.

        Raises `SessionBusy` inside an action of the same session, `LaneFull`, `LaneTimeout`, and `LeaseHeld`
        when another process doesn't let go of it.
        """
        with self._alone(store, id):
            gives_up = self._tasks.now() + WAIT
            while True:
                try:
                    return act()
                except LeaseHeld:
                    if self._tasks.now() >= gives_up:
                        raise
                except LaneTimeout:  # of a child, which is in no lane of ours
                    if self._tasks.now() >= gives_up:
                        raise LaneTimeout(id, WAIT) from None
                self._tasks.sleep(_LOOK)

    @contextmanager
    def _alone(self, store: str, id: str) -> Iterator[None]:
        key = store, id
        if self._owners.get(key) is self._tasks.current:
            raise SessionBusy(f"session '{id}' is busy: this runs inside one of its actions", id)
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = Lock(self._tasks, "session", id, 1)
        if len(lock.line) >= MOST_WAITING:
            raise LaneFull(id)
        grant = lock.acquire(1, WAIT)
        if grant is None:
            raise LaneTimeout(id, WAIT)
        self._owners[key] = self._tasks.current
        try:
            yield
        finally:
            del self._owners[key]
            grant.release()
            if not lock.line and lock.free:
                self._locks.pop(key, None)
