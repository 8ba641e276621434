"""`DbosProcess`: DBOS at work in this process, and what it gives to the bodies of runs. Spec: 10 §C19.3.

DBOS hands a run to one process at a time and refuses the steps of an earlier one. What it leaves to whoever
operates it is ours: a lease for each process, by which others notice that it is gone and hand its runs on.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import Context, copy_context
from threading import BoundedSemaphore, Event, Lock, RLock, Thread
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from dbos import DBOS, DBOSConfig, SetWorkflowAttributes, SetWorkflowID, SetWorkflowTimeout
from dbos import error as theirs
from msgspec.json import decode

from harnpy.eventlog.topics import StoreEventLog
from harnpy.eventlog.waitpoints import Waitpoints
from harnpy.storage.errors import LeaseHeld, LeaseLost, StorageError, StoreClosed
from harnpy.storage.leases import Machine
from harnpy.workflow.engines.attempt import failure_text
from harnpy.workflow.engines.contract import QUEUED, Step
from harnpy.workflow.engines.dbos_database import (
    ANY,
    APPLICATION,
    HERE,
    OURS,
    PARKED,
    VERSION,
    attempts_of,
    attributes_of,
    claim_of,
    flat,
    is_late,
    job_of,
    last_number,
    left_until,
    status_of,
    why_cancelled,
)
from harnpy.workflow.engines.errors import ReplayDiverged, RunCancelled, RunError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dbos import WorkflowStatus

    from harnpy.storage.contract import Store
    from harnpy.storage.leases import Lease
    from harnpy.workflow.engines.contract import Body, Json
    from harnpy.workflow.engines.dbos_database import DbosDatabase

    T = TypeVar("T")

#: Seconds between looks: whether runs are still ours, whether there are other queues; of one that waits.
_LOOK, _QUEUES, _GLANCE = 0.2, 1.0, 0.3
#: Seconds that bodies have to notice that the engine is closed.
_CLOSING = 1.0


class _Released(BaseException):
    """Ends a run's function without an end of the run: DBOS would record any `Exception` as one."""


class _Failed(Exception):
    """What a body has raised, as the run's record has it."""


class Member:
    """What an engine brings along: its database, its store, who does its jobs.

    ``ttl`` is how long its leases last, ``grace`` how long running steps may take when its worker stops.
    """

    def __init__(
        self,
        database: DbosDatabase,
        store: Store,
        bodies: Mapping[str, Body],
        ttl: float,
        grace: float,
        *,
        owns_store: bool,
    ) -> None:
        self.database = database
        self.store = store
        self.owns_store = owns_store
        self.bodies = bodies
        self.ttl = ttl
        self.grace = grace


class DbosRun:
    """A `RunContext`. The thread of the body calls what that has; any thread may call the rest."""

    def __init__(self, member: Member, row: WorkflowStatus, rows: Sequence[Any]) -> None:
        self.run_id = row.workflow_id
        self.attempt = attempts_of(row)
        self.recorded: Sequence[Step] = [Step(key, output) for _, key, output in flat(rows)]
        self.claim = claim_of(row)
        #: Set when the body has ended.
        self.done = Event()
        #: Whether it is to be given back as soon as no step is running.
        self.leaving = False
        #: Its body has returned, and DBOS is about to write so.
        self.has_returned = False
        self.member = member
        self._asked = 0
        self._in_step = False
        self._over: Exception | None = None
        self._calls: list[Callable[[], None]] = []
        self._leave_calls: list[Callable[[], None]] = []
        self._lock = RLock()
        #: Where DBOS counts the run's steps. Those that are recorded are passed over: it would look up each.
        self._context = copy_context()
        for _ in range(last_number(rows)):
            DBOS.reserve_step()
        known = attributes_of(row)
        #: What a fork has from the middle of what was recorded at once, until it is recorded.
        self._carried: list[Step] = []
        if known.get("harn.carried") and last_number(rows) < known["harn.carried_at"]:
            self._carried = [Step(key, output) for key, output in decode(known["harn.carried"])]

    def begin(self) -> None:
        """Record what a fork has carried over."""
        if self._carried:
            self._write(self._carried)
            self.recorded = [*self.recorded, *self._carried]

    # What a body calls.

    def step(self, key: str, work: Callable[[], Json]) -> Json:
        self._proceed()
        if self._asked < len(self.recorded):
            return self._replayed(key).output
        self._in_step = True
        try:
            output = work()
            self._write([Step(key, output)])
        finally:
            self._in_step = False
        return output

    def record(self, *steps: Step) -> None:
        known = min(len(steps), len(self.recorded) - self._asked)
        for step in steps[:known]:
            self._replayed(step.key)
        if len(steps) > known:
            self._write(steps[known:])

    def wait(self, waitpoints: Sequence[str], *, key: str, timeout: float | None = None) -> Json:
        self._proceed()
        if self._asked < len(self.recorded):
            return self._replayed(key).output
        output = self._waited(waitpoints, f"{self.run_id}:{key}", timeout)
        self._write([Step(key, output)])
        return output

    def _waited(self, waitpoints: Sequence[str], wait_id: str, timeout: float | None) -> Json:
        points = Waitpoints(StoreEventLog(self.member.store))
        waiting = points.enter(waitpoints, wait_id=wait_id, timeout=timeout, run_id=self.run_id)
        result = waiting.look()
        if result is None:
            self._note(True)
            while result is None:
                self._proceed()
                waiting.rest(_GLANCE)
                result = waiting.look()
            self._note(None)
        return result.to_dict()

    def _note(self, waits: bool | None) -> None:
        def note() -> None:
            DBOS.update_workflow_attributes(self.run_id, {"harn.waiting": waits}, merge=True)

        self._apart(lambda: Context().run(note))  # in the run's context it would be a step

    def check(self) -> None:
        if self._over is not None:
            raise self._over
        if self.leaving and not self._in_step:
            self._proceed()

    def _proceed(self) -> None:
        """Raise what ends the run here, before anything new is begun."""
        if self.leaving:
            self.end(LeaseLost(f"run:{self.run_id}"))
        if self._over is not None:
            raise self._over

    def on_end(self, call: Callable[[], None]) -> None:
        with self._lock:
            self._calls.append(call)
        self.tell()

    def on_leave(self, call: Callable[[], None]) -> None:
        with self._lock:
            self._leave_calls.append(call)
        self.tell()

    def leave(self, why: Exception) -> None:
        """Leave the run to other workers: this one may not do it. Who waits for it here gets ``why``."""
        if self.member.database.leave(self.run_id):  # else it is cancelled, or somebody else's
            with self._lock:
                self._over = why
            self.tell()

    def _replayed(self, key: str) -> Step:
        step = self.recorded[self._asked]
        if step.key != key:
            raise ReplayDiverged(self.run_id, key, step.key, self._asked + 1)
        self._asked += 1
        return step

    def _write(self, steps: Sequence[Step]) -> None:
        """Record steps as one of DBOS's, which refuses it when the run is cancelled or somebody else's."""
        pairs = [[step.key, step.output] for step in steps]

        def record() -> list[list[Json]]:
            return DBOS.run_step({"name": steps[0].key}, lambda: pairs)

        try:
            found = self._apart(lambda: self._context.run(record))
        except theirs.DBOSWorkflowCancelledError:
            row = self.member.database.row(self.run_id)
            self._stop(RunCancelled(self.run_id, "" if row is None else why_cancelled(row)))
        except (theirs.DBOSWorkflowConflictIDError, theirs.DBOSUnexpectedStepError):
            self._stop(LeaseLost(f"run:{self.run_id}"))
        except (TypeError, ValueError):
            what = ", ".join(f"step '{step.key}'" for step in steps)
            raise RunError(
                f"run '{self.run_id}' can only keep JSON, and {what} came to something else"
            ) from None
        else:
            if found is not pairs:  # the step of somebody else, who has come as far
                self._stop(LeaseLost(f"run:{self.run_id}"))

    def _apart(self, call: Callable[[], T]) -> T:
        """Call DBOS where no event loop runs, as it demands: a body may be in the middle of one.

        While the server is gone DBOS waits, for ever: a run that is over doesn't, nor does the process's end.
        """
        found: Future[T] = Future()

        def work() -> None:
            try:
                found.set_result(call())
            except BaseException as error:
                found.set_exception(error)

        Thread(target=work, name=f"run {self.run_id}", daemon=True).start()
        while not found.done():
            wait([found], _CLOSING)
            if not found.done() and self._over is not None:
                raise self._over
        return found.result()

    def _stop(self, error: Exception) -> None:
        self.end(error)
        self.tell()
        self._proceed()

    # What the process calls.

    @property
    def over(self) -> Exception | None:
        """What `check` raises; None while the run is at work here."""
        return self._over

    def end(self, error: Exception) -> None:
        """Have `check` raise from now on."""
        with self._lock:
            self._over = self._over or error

    def tell(self) -> None:
        """When `check` would raise, or the run is to be given back, call what waits for that, once."""
        calls: list[Callable[[], None]] = []
        with self._lock:
            if self.leaving and not self._in_step:
                calls, self._leave_calls = self._leave_calls, calls
            if self._over is not None:
                calls, self._calls = [*calls, *self._calls], []
        for call in calls:
            Thread(target=call, name=f"end of run {self.run_id}", daemon=True).start()


class Stay:
    """A run that was to be done in this process, for who waits for it. ``ended`` is why it isn't any more,
    where its record doesn't say."""

    ended: Exception | None = None


class DbosProcess:
    """DBOS in this process, which has one, for all engines that are open here. Any thread may call."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._members: list[Member] = []
        self._functions: dict[str, Any] = {}
        self._runs: dict[str, list[DbosRun]] = {}
        #: Who has started those that are about to begin.
        self._starters: dict[str, Member] = {}
        #: Those that somebody here waits for.
        self._stays: WeakValueDictionary[str, Stay] = WeakValueDictionary()
        #: Who we are to DBOS while it is at work, in which process, and by which leases others know.
        self._executor, self._pid = "", 0
        self._leases: list[Lease] = []
        #: Guards them: one that was let go stays so.
        self._keeping = Lock()
        #: The store that the leases are of, which stays open while others work here; those that were left.
        self._keeper: Store | None = None
        self._left: list[Store] = []
        self._dbos: Any = None
        self._stopped = Event()
        self._slots: BoundedSemaphore | None = None

    @property
    def here(self) -> str:
        """The queue of what is to go on in this process."""
        return HERE + self._executor

    def enter(self, member: Member) -> None:
        """Do the jobs of a member's kinds from now on. Raises `RunError` for another database."""
        with self._lock:
            place = member.database.place
            ours = self._members[0].database.place if self._members else place
            if ours != place:
                raise RunError(
                    f"DBOS serves one database a process, and here that is {ours.shown}: close that engine "
                    f"first, or open {place.shown} in another process"
                )
            self._members.append(member)
            for kind in member.bodies:
                if kind not in self._functions:
                    workflow = DBOS.workflow(name=OURS + kind, max_recovery_attempts=None)
                    self._functions[kind] = workflow(self._function(kind))

    def leave(self, member: Member) -> None:
        """Give back what a member works on, and close its store; DBOS ends with the last one."""
        with self._lock:
            if member in self._members:
                self._members.remove(member)
            is_last = not self._members
            runs = [run for run in self._all_runs() if run.member is member]
        if is_last:
            self._shut(member, grace=0.0)
        else:
            self._drain(member, runs, grace=0.0)
            self._give_back(member, [run.run_id for run in runs], self._executor)
        with self._lock:
            left = [*self._left, *([member.store] if member.owns_store else [])]
            self._left = [store for store in left if self._leases and store is self._keeper]
        for store in left:
            if store not in self._left:
                store.close()

    def launch(self, member: Member) -> None:
        """Have DBOS work in this process. It takes from no queue yet but our own."""
        with self._lock:
            if self._executor:
                if self._pid != os.getpid():
                    raise RunError(
                        "engine 'dbos' was at work before this process was forked off: start a new one"
                    )
                return
            attached, place = member.database.attached, member.database.place
            executor = DBOS.executor_id if attached else f"{Machine().owner()}:{os.urandom(4).hex()}"
            # SQLite serves one process.
            keys = [f"worker:{executor}", *([] if place.is_server else ["worker:dbos"])]
            self._executor, self._pid = executor, os.getpid()
            self._keeper = member.store
            try:
                for key in keys:
                    self._leases.append(member.store.lease(key, ttl=member.ttl))
                member.database.open_queue(self.here)
                with member.database.said():
                    self._launch(member.database)
            except BaseException:
                self._executor = ""
                self._release()
                raise
            self._stopped = Event()
            watch = Thread(target=self._watch, args=(self._stopped,), name="harnpy dbos", daemon=True)
            watch.start()

    def _launch(self, database: DbosDatabase) -> None:
        config = DBOSConfig(
            name=APPLICATION,
            system_database_url=database.place.url,
            dbos_system_schema=database.place.schema,
            executor_id=self._executor,
            application_version=VERSION,
            serializer=database.serializer,
            log_level="WARNING",
            scheduler_polling_interval_sec=1.0,
            sys_db_idle_transaction_timeout_sec=database.patience,
        )
        self._dbos = DBOS(config=config)  # the one that there is, if there is one, whatever it is told
        if database.attached:
            self._listen([])
            return
        if DBOS.executor_id != self._executor:
            raise RunError(
                "this process has a DBOS of its own: open the engine with attach=True, before DBOS.launch()"
            )
        try:
            DBOS.listen_queues([self.here])
            DBOS.launch()
        except BaseException:
            DBOS.destroy()
            raise

    def start(
        self,
        member: Member,
        run: str,
        kind: str,
        payload: Json,
        attributes: dict[str, Any],
        timeout: float | None,
    ) -> None:
        """Start a run here and now."""
        self.launch(member)
        self._starters[run] = member

        def start() -> None:
            with (
                SetWorkflowID(run, workflow_id_reuse_policy="reject"),
                SetWorkflowAttributes(attributes),
                SetWorkflowTimeout(timeout),
            ):
                DBOS.start_workflow(self._functions[kind], payload)

        try:
            with member.database.said():
                member.database.client.check_connection()  # DBOS itself would wait for the server
                Context().run(start)  # in a run's context it would be a child of that
        except BaseException:
            self._starters.pop(run, None)
            raise

    def expect(self, run: str) -> Stay:
        """Return what says whether the run, which is about to begin here, has ended here without an end."""
        stay = self._stays[run] = Stay()
        return stay

    def check_gone(self, member: Member, row: WorkflowStatus) -> None:
        """Raise `LeaseHeld` while somebody works on the run."""
        executor = row.executor_id or ""
        with self._lock:
            runs = [*self._runs.get(row.workflow_id, ())]
        if executor and executor == self._executor and row.status == "PENDING" and runs:
            raise LeaseHeld(f"run:{row.workflow_id}", executor, time.time() + member.ttl)
        for run in runs:
            if not run.done.wait(_CLOSING):  # one that is over has yet to notice
                raise LeaseHeld(f"run:{row.workflow_id}", executor, time.time() + member.ttl)
        if row.status == "PENDING" and executor != self._executor:
            self._lease_of(member, executor).release()

    def rest(self, run: str, seconds: float) -> None:
        """Wait, less long if the run ends here."""
        with self._lock:
            runs = self._runs.get(run)
            done = runs[-1].done if runs else None
        if done is None:
            time.sleep(seconds)
        else:
            done.wait(seconds)

    def _lease_of(self, member: Member, executor: str) -> Lease:
        """Return the lease of a process that is gone. Raises `LeaseHeld` while it is there."""
        return member.store.lease(f"worker:{executor}", ttl=member.ttl)

    def _release(self) -> None:
        with self._keeping:
            leases, self._leases = self._leases, []
            for lease in leases:
                with suppress(StorageError):  # it ends by itself
                    lease.release()

    # The function of DBOS that does jobs of a kind.

    def _function(self, kind: str) -> Callable[..., Json]:
        def run(*given: Json) -> Json:  # a schedule gives the time, too
            return self._run(kind, given[-1])

        return run

    def _run(self, kind: str, payload: Json) -> Json:
        id = str(DBOS.workflow_id)

        def look() -> tuple[WorkflowStatus, list[Any]]:
            (row,) = DBOS.list_workflows(workflow_ids=[id], load_input=False, load_output=False)
            return row, list(DBOS.list_workflow_steps(id))

        row, rows = Context().run(look)  # in the run's context each would be a step
        stay = self._stays.get(id)
        with self._lock:
            able = [each for each in self._members if kind in each.bodies]
            starter = self._starters.pop(id, None)
            if not able or not (self._executor or able[-1].database.attached):
                # The engine is closed, or about to give back what DBOS still takes.
                _end(stay, LeaseLost(f"run:{id}"))
                raise _Released
            member = starter if starter in able else able[-1]
            run = DbosRun(member, row, rows)
            self._runs.setdefault(id, []).append(run)
            slots = None if not row.queue_name or row.queue_name == self.here else self._slots
        held = False
        try:
            while slots is not None and not held:
                run.check()
                held = slots.acquire(timeout=_LOOK)
            run.begin()
            output = member.bodies[kind](job_of(row, payload), run)
            if not run.leaving:
                run.check()
            run.has_returned = True
            return output
        except BaseException as error:
            if run.over is not None:
                _end(stay, run.over)
                raise _Released from error
            raise _Failed(failure_text(error)) from error
        finally:
            if held and slots is not None:
                slots.release()
            with self._lock:
                self._runs[id].remove(run)
                if not self._runs[id]:
                    del self._runs[id]
            run.done.set()

    # What goes on beside the runs.

    def _watch(self, stopped: Event) -> None:
        """Look whether our runs are still ours, and keep the leases by which others see that we are there."""
        renewed, own = time.monotonic(), self.here
        while not stopped.is_set():
            with self._lock:
                member = self._members[-1] if self._members else None
            if member is None:
                return
            ttl = min((lease.ttl for lease in self._leases), default=member.ttl)
            with suppress(RunError, StorageError):  # while the server is gone nobody can take them
                self._look(member)
            with suppress(RunError, StorageError):
                if time.monotonic() - renewed >= ttl / 3:
                    self._renew(member, own, stopped)
                    renewed = time.monotonic()
            stopped.wait(min(_LOOK, ttl / 6))

    def _renew(self, member: Member, own: str, stopped: Event) -> None:
        with self._keeping:
            if stopped.is_set():
                return
            for n, lease in enumerate(self._leases):
                try:
                    lease.renew()
                except (LeaseLost, StoreClosed):
                    # We were stopped for longer than it lasts: our runs were handed on, new ones are ours.
                    self._leases[n] = member.store.lease(lease.key, ttl=member.ttl)
            member.database.open_queue(own)  # who has handed them on has deleted it

    def _look(self, member: Member) -> None:
        runs = self._all_runs()
        if not runs:
            return
        ids = [run.run_id for run in runs]
        rows = {row.workflow_id: row for row in member.database.rows(workflow_ids=ids)}
        for run in runs:
            row = rows.get(run.run_id)
            if row is not None and row.status == "PENDING" and is_late(row):
                member.database.cancel(run.run_id)
            elif row is not None and row.status == "CANCELLED":
                run.end(RunCancelled(run.run_id, why_cancelled(row)))
            elif row is None or (
                row.status in ("PENDING", "ENQUEUED", "DELAYED") and claim_of(row) != run.claim
            ):
                run.end(LeaseLost(f"run:{run.run_id}", None if row is None else row.executor_id))
            run.tell()

    def work(self, member: Member, queues: Sequence[str] | None, concurrency: int, stop: Event) -> None:
        """Take runs from the queues until ``stop`` is set, and hand on those of processes that are gone."""
        self.launch(member)
        with self._lock:
            if self._slots is not None:
                raise RunError("this process works for engine 'dbos' already: stop that first")
            self._slots = BoundedSemaphore(concurrency)
        try:
            member.database.open_queue(ANY)
            looked = rescued = float("-inf")
            while self._executor:
                now = time.monotonic()
                with suppress(RunError, StorageError):  # the server is gone: it may come back
                    if now - looked >= _QUEUES:
                        names = member.database.queue_names() if queues is None else queues
                        self._listen([ANY, *names])
                        looked = now
                    if now - rescued >= member.ttl / 2:
                        self._rescue(member)
                        rescued = now
                if stop.wait(min(_LOOK, member.ttl / 4)):
                    break
        finally:
            self._shut(member, member.grace)
            with self._lock:
                self._slots = None

    def _listen(self, queues: Sequence[str]) -> None:
        """Take from these queues from now on, and from our own."""
        known = self._dbos._listening_queues
        if self._members[-1].database.attached:
            if known is None:
                return  # the application takes from all that there are
            queues = [*known, *queues]
        # DBOS lets this be said once, before it is launched, and looks at it again each second.
        self._dbos._listening_queues = list(dict.fromkeys([self.here, *queues]))

    def _rescue(self, member: Member) -> None:
        """Hand on the runs of processes that are gone."""
        try:
            rescue = member.store.lease("rescue", ttl=member.ttl)
        except LeaseHeld:
            return
        with rescue:
            database = member.database
            executors = {row.executor_id for row in database.rows(status="PENDING") if row.executor_id}
            queues = [name for name in database.queue_names(ours=True) if name.startswith(HERE)]
            executors |= {name.removeprefix(HERE) for name in queues}
            for executor in sorted(executors - {self._executor}):
                try:
                    gone = self._lease_of(member, executor)
                except LeaseHeld:
                    continue
                own = HERE + executor
                with gone:
                    # Asked for now: what it gave back itself since we looked is somebody else's.
                    for row in database.rows(status="PENDING", executor_id=executor):
                        database.hand_on(row)
                    for row in database.rows(status=["ENQUEUED", "DELAYED"], queue_name=own):
                        database.hand_on(row)
                    if own in queues:
                        database.delete_queue(own)
            for row in database.rows(status="ENQUEUED", queue_name=PARKED):
                if left_until(row) is not None and status_of(row) == QUEUED:
                    database.hand_on(row, is_lost=False)

    def _all_runs(self) -> list[DbosRun]:
        with self._lock:
            return [run for group in self._runs.values() for run in group]

    def _shut(self, member: Member, grace: float) -> None:
        """Let running steps end, for so many seconds, and give what is left to others."""
        with self._lock:
            if not self._executor:
                return
            executor, own, self._executor = self._executor, self.here, ""
        runs = self._all_runs()
        self._drain(member, runs, grace)
        with self._keeping:
            self._stopped.set()
        if not member.database.attached:
            DBOS.destroy()  # before they are given back: it takes new ones until then
        self._give_back(member, None, executor)
        with suppress(RunError, StorageError):
            member.database.delete_queue(own)
        self._release()

    def _drain(self, member: Member, runs: Sequence[DbosRun], grace: float) -> None:
        """Have runs stop where they can go on, and return when they have or won't."""
        for run in runs:
            run.leaving = run.over is None
            run.tell()
        ends = time.monotonic() + grace
        for run in runs:
            if not run.done.wait(max(0.0, ends - time.monotonic())):
                run.end(LeaseLost(f"run:{run.run_id}"))
                run.tell()
        ends = time.monotonic() + _CLOSING
        for run in runs:
            run.done.wait(max(0.0, ends - time.monotonic()))
        returned = [run.run_id for run in runs if run.has_returned]
        with suppress(RunError, StorageError):
            while returned and time.monotonic() < ends:
                if not member.database.rows(workflow_ids=returned, status="PENDING"):
                    return
                time.sleep(0.01)

    def _give_back(self, member: Member, ids: Sequence[str] | None, executor: str) -> None:
        """Have others take up those of our runs that haven't ended; ``ids`` None: all."""
        query: dict[str, Any] = {} if ids is None else {"workflow_ids": list(ids)}
        if ids == []:
            return
        with suppress(RunError, StorageError):  # the server is gone: others will see that we are, too
            for row in member.database.rows(status="PENDING", executor_id=executor, **query):
                member.database.hand_on(row, is_lost=False)


def _end(stay: Stay | None, why: Exception) -> None:
    if stay is not None and not isinstance(why, RunCancelled):
        stay.ended = why


#: DBOS is one a process, whoever opens it; this is what it is to us.
PROCESS = DbosProcess()
