"""`Attempt`: one process's work on a run, and what the body of the run is given. Spec: 10 §C19.1, §C19.2."""

from __future__ import annotations

from threading import Event, RLock, Thread
from time import monotonic
from typing import TYPE_CHECKING

from msgspec.structs import replace

from harnpy.eventlog.topics import StoreEventLog
from harnpy.eventlog.waitpoints import Waitpoints
from harnpy.storage.errors import LeaseLost, NoStore, StorageError, VersionConflict
from harnpy.workflow.engines.contract import (
    CANCELLED,
    COMPLETED,
    DELAYED,
    FAILED,
    QUEUED,
    RUNNING,
    WAITING,
    Step,
)
from harnpy.workflow.engines.errors import ReplayDiverged, RunCancelled
from harnpy.workflow.engines.run_log import CANCEL, FINISHED, KIND

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.eventlog.waitpoints import Waiting
    from harnpy.storage.contract import Store
    from harnpy.storage.leases import Lease
    from harnpy.workflow.engines.contract import Json
    from harnpy.workflow.engines.run_log import Draft, RunFacts, RunHead, RunLog

#: Seconds between two looks of a body that waits, at most: a cancelled one must notice within a second.
_GLANCE = 0.3
#: Seconds until a run that its worker may not do is taken again.
LEFT = 30.0


class Attempt:
    """A `RunContext`. The thread of the body calls what that has; any thread may call the rest."""

    def __init__(
        self,
        store: Store,
        log: RunLog,
        facts: RunFacts,
        head: RunHead,
        lease: Lease,
        now: Callable[[], float],
    ) -> None:
        self.run_id = log.id
        self.attempt = head.attempt
        self.recorded: Sequence[Step] = facts.steps
        assert facts.job is not None
        self.job = facts.job
        self.head = head
        self.lease = lease
        #: Set when the body has ended and whatever was to be written is written.
        self.done = Event()
        #: What the body raised, and why its end is not on record.
        self.failure: BaseException | None = None
        self.unrecorded: Exception | None = None
        #: Whether it is to be given back as soon as no step is running.
        self.leaving = False
        self._store = store
        self._log = log
        self._now = now
        self._asked = 0
        self._in_step = False
        self._reason: str | None = None
        self._lost: LeaseLost | None = None
        #: Whether its end is on record.
        self._ended = False
        self._calls: list[Callable[[], None]] = []
        self._leave_calls: list[Callable[[], None]] = []
        self._seen = log.version
        self._renewed = monotonic()
        #: Guards the log and the lease: the engine gives back what the body still works on.
        self._lock = RLock()

    # What a body calls.

    def step(self, key: str, work: Callable[[], Json]) -> Json:
        self._proceed()
        if self._asked < len(self.recorded):
            return self._replayed(key).output
        self._in_step = True
        try:
            output = work()
            self._append_steps((Step(key, output),))
        finally:
            self._in_step = False
        return output

    def record(self, *steps: Step) -> None:
        if self._lost is not None:
            raise self._lost
        known = min(len(steps), len(self.recorded) - self._asked)
        for key, _ in steps[:known]:
            self._replayed(key)
        if len(steps) > known:
            self._append_steps(steps[known:])

    def wait(self, waitpoints: Sequence[str], *, key: str, timeout: float | None = None) -> Json:
        self._proceed()
        if self._asked < len(self.recorded):
            return self._replayed(key).output
        points = Waitpoints(StoreEventLog(self._store, now=self._now), now=self._now)
        waiting = points.enter(
            waitpoints, wait_id=f"{self.run_id}:{key}", timeout=timeout, run_id=self.run_id
        )
        output = self._waited(waiting)
        is_shown = self.head.status == WAITING
        self._append_steps((Step(key, output),), RUNNING if is_shown else None)
        return output

    def _waited(self, waiting: Waiting) -> Json:
        while (result := waiting.look()) is None:
            self._proceed()
            if self.head.status != WAITING:
                self._append(status=WAITING)
            waiting.rest(_GLANCE)
        return result.to_dict()

    def check(self) -> None:
        self._raise_end()
        if self.leaving and not self._in_step:
            self._proceed()

    def on_end(self, call: Callable[[], None]) -> None:
        self._calls.append(call)

    def leave(self, why: Exception) -> None:
        """Leave the run to other workers: this one may not do it. Who waits for it here gets ``why``."""
        self.head = replace(self.head, due=self._now() + LEFT)
        self.give_back(DELAYED)
        if self._lost is not None:  # else it is cancelled, which is its end
            self.unrecorded = why

    def on_leave(self, call: Callable[[], None]) -> None:
        self._leave_calls.append(call)

    def _raise_end(self) -> None:
        if self._lost is not None or self.unrecorded is not None:
            raise self._lost or self.unrecorded  # type: ignore[misc]
        if self._reason is not None:
            raise RunCancelled(self.run_id, self._reason)

    def _proceed(self) -> None:
        """Raise what ends the run here, before anything new is begun."""
        if self.leaving:
            self.give_back()
        self._raise_end()

    def _replayed(self, key: str) -> Step:
        step = self.recorded[self._asked]
        if step.key != key:
            raise ReplayDiverged(self.run_id, key, step.key, self._asked + 1)
        self._asked += 1
        return step

    # What is written, under the lease.

    def _append(self, *drafts: Draft, status: str) -> None:
        head = replace(self.head, status=status)
        self._write(lambda: self._log.append(*drafts, head=head, fence=self.lease))
        self.head = head

    def _append_steps(self, steps: Sequence[Step], status: str | None = None) -> None:
        head = None if status is None else replace(self.head, status=status)
        self._write(lambda: self._log.append_steps(steps, head=head, fence=self.lease))
        self.head = head or self.head

    def _write(self, append: Callable[[], None]) -> None:
        """Call ``append``, again when somebody has asked to cancel the run meanwhile."""
        with self._lock:
            if self._lost is not None:
                raise self._lost
            while True:
                try:
                    return append()
                except VersionConflict as conflict:
                    self._read_on(conflict)
                except LeaseLost as lost:
                    self._lost = lost
                    raise
                except StorageError as error:
                    self.unrecorded = error
                    raise

    def _read_on(self, conflict: VersionConflict) -> None:
        """Take notice of what others have written. Raises ``conflict`` when there is nothing."""
        before = self._log.version
        for row, data in self._log.read(before):
            self._log.version = row.seq
            if row.type == CANCEL:
                self._reason = data["reason"]
        if self._log.version == before:
            raise conflict

    def finish(self, output: Json = None, failure: BaseException | None = None) -> None:
        """Write how the body ended. A run that was cancelled ends so, whatever its body came to.

        Nothing is written when a step could not be recorded: whoever takes the run up does that step again.
        """
        self.failure = failure
        if self._lost is not None or self.unrecorded is not None:
            return

        def end() -> None:
            status, error = (COMPLETED, None) if failure is None else (FAILED, failure_text(failure))
            if self._reason is not None:
                status, error = CANCELLED, self._reason or None
            self._end(status, output if status == COMPLETED else None, error)

        self._write(end)

    def _end(self, status: str, output: Json, error: str | None) -> None:
        finished = {"status": status, **({"output": output} if status == COMPLETED else {"error": error})}
        head = replace(self.head, status=status, error=error, finished=self._now())
        self._log.append((FINISHED, finished), head=head, fence=self.lease)
        self.head, self._ended = head, True

    def give_back(self, status: str = QUEUED) -> None:
        """Let another worker have the run. Afterwards `check` says that the lease is lost."""
        with self._lock:
            if self._lost is not None or self._reason is not None or self._ended:
                return
            try:
                self._append(status=status)
            finally:
                self.lease.release()
                self._lost = self._lost or LeaseLost(self.lease.key)

    @property
    def lost(self) -> LeaseLost | None:
        """Why it is no longer this process's, None while it is."""
        return self._lost

    # What the engine's thread does.

    def look(self) -> None:
        """Renew the lease, and take notice of a request to cancel."""
        if monotonic() - self._renewed > self.lease.ttl / 3:
            try:
                self.lease.renew()
            except LeaseLost as lost:
                with self._lock:
                    self._lost = self._lost or lost
                return
            except NoStore as gone:
                self.unrecorded = self.unrecorded or gone
                return
            self._renewed = monotonic()
        if self._store.changes(KIND, self.run_id, self._seen, 0.0) > self._seen:
            for row, data in self._log.read(self._seen, None, CANCEL):
                self._seen = row.seq
                self._reason = data["reason"]
            self._seen = max(self._seen, self._log.version)

    @property
    def is_late(self) -> bool:
        """Return whether it takes longer than it may, and nobody has noticed yet."""
        deadline = self.head.deadline
        return deadline is not None and self._now() >= deadline and self._reason is None

    def tell(self) -> None:
        """When `check` would raise, or give the run back, call what waits for that, in another thread."""
        calls: list[Callable[[], None]] = []
        if self.leaving and not self._in_step:
            calls, self._leave_calls = self._leave_calls, calls
        if any(reason is not None for reason in (self._lost, self._reason, self.unrecorded)):
            calls, self._calls = [*calls, *self._calls], []
        if calls and not self._ended:
            Thread(target=_call_all, args=(calls,), name=f"end of run {self.run_id}", daemon=True).start()


def _call_all(calls: Sequence[Callable[[], None]]) -> None:
    for call in calls:
        call()


def failure_text(error: BaseException) -> str:
    """Return an error as the record of a run has it."""
    message = getattr(error, "message", None)
    return message if isinstance(message, str) else f"{type(error).__name__}: {error}".removesuffix(": ")
