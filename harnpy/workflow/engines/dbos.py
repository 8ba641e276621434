"""`DbosEngine`: durable runs of many machines, by DBOS Transact on the PostgreSQL that holds the sessions.

DBOS keeps runs and steps, queues them, hands them to one process at a time, schedules and forks them. Ours
are three things: what a body is given (`_Run`); a lease for each worker, by which others notice that it is
gone; and what DBOS would accept in silence and never run, which is refused. Spec: 10 §C19.3.

A process has one DBOS (`_Process`); whoever only starts, lists or cancels talks to the database alone, by a
`DBOSClient`. What the engine knows of a run and DBOS doesn't stands in the run's attributes, as ``harn.…``.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from contextvars import Context, copy_context
from threading import BoundedSemaphore, Event, RLock, Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

from msgspec import convert, to_builtins
from msgspec.json import decode, encode

from harnpy.eventlog.topics import StoreEventLog
from harnpy.eventlog.waitpoints import Waitpoints
from harnpy.formats.suggestions import hint
from harnpy.storage.errors import LeaseHeld, LeaseLost, StorageError
from harnpy.storage.leases import Machine
from harnpy.storage.opening import open_store, parse_url, shown
from harnpy.workflow.engines.contract import (
    CANCELLED,
    COMPLETED,
    DEAD,
    DELAYED,
    ENDED,
    FAILED,
    MOST_ATTEMPTS,
    QUEUED,
    RUNNING,
    WAITING,
    Job,
    RunInfo,
    RunQuery,
    Schedule,
    Step,
    StepInfo,
)
from harnpy.workflow.engines.errors import (
    ReplayDiverged,
    RunCancelled,
    RunError,
    RunExists,
    RunFailed,
    RunNotFound,
)
from harnpy.world.ids import RealIds

try:
    from croniter import croniter
    from dbos import (
        DBOS,
        DBOSClient,
        DBOSConfig,
        DBOSPortableJSONSerializer,
        SetWorkflowAttributes,
        SetWorkflowID,
        SetWorkflowTimeout,
    )
    from dbos import error as theirs
    from sqlalchemy import URL
    from sqlalchemy.exc import IntegrityError, SQLAlchemyError
except ImportError as missing:
    raise RunError("engine 'dbos' needs: pip install 'harnpy[dbos]'") from missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dbos import EnqueueOptions, Serializer, WorkflowStatus

    from harnpy.storage.contract import Store
    from harnpy.storage.leases import Lease
    from harnpy.workflow.engines.contract import Body, Json, RunHandle

    T = TypeVar("T")

#: The version of the code, as DBOS calls it: changes whenever the steps of the same job would.
VERSION: Final = "harnpy-1"
#: DBOS's names: the application's, the schema's, and what a body's begins with.
_APPLICATION, _SCHEMA, _NAME = "harnpy", "harn_dbos", "harn."
#: Queues of ours: what any worker takes, what nobody does until it is complete, what one process takes.
_ANY, _PARKED, _HERE = "harn.any", "harn.parked", "harn.here:"
#: Runs at once on a worker, of a queue that doesn't say. DBOS's own "no limit" would have the first worker
#: that looks claim all that is queued.
_USUAL_CONCURRENCY = 4
_MOST_PRIORITY = 2**31 - 1
#: Seconds: between looks at whether runs were cancelled, at which queues there are; that steps get to end.
_LOOK, _QUEUES, _GRACE = 0.2, 1.0, 30.0
#: Seconds until a run that was resumed here must have begun.
_BEGUN = 10.0
_PAGE = 100

_STATUSES = {
    "DELAYED": DELAYED,
    "ENQUEUED": QUEUED,
    "PENDING": RUNNING,
    "SUCCESS": COMPLETED,
    "ERROR": FAILED,
    "CANCELLED": CANCELLED,
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": DEAD,
}
#: The same, for those that DBOS doesn't know.
_FOUND_AMONG = {WAITING: "PENDING", DEAD: "CANCELLED"}


#: What a run that goes on, or a new one that is like it, has not: attributes of how it came to where it is.
_CLEARED = {f"harn.{name}": None for name in ("lost", "dead", "reason", "waiting", "deadline")}


class _Released(BaseException):
    """Ends a run's function without an end of the run: DBOS would record any `Exception` as one."""


class _Place(NamedTuple):
    """Where DBOS keeps its runs. ``url`` has the password, ``shown`` hasn't."""

    url: str
    schema: str
    shown: str


class DbosEngine:
    """``store`` is on PostgreSQL; on SQLite, to try it out, one process at a time runs jobs.

    ``attach``: the process has a DBOS of its own, which runs our jobs, too; open the engine before its
    `launch`, with its ``schema`` and ``serializer``. ``ttl``: seconds after which the runs of a worker that
    shows no sign of life are handed on. ``poll``: seconds between looks at a queue.
    """

    name = "dbos"
    features = frozenset({"many_machines", "rate_limits", "schedules"})

    def __init__(
        self,
        store: str | Store,
        bodies: Mapping[str, Body],
        *,
        attach: bool = False,
        schema: str | None = None,
        serializer: Serializer | None = None,
        ttl: float = 30.0,
        poll: float = 0.25,
    ) -> None:
        self.attached, self.ttl, self.poll = attach, ttl, poll
        self.bodies = dict(bodies)
        self._owns_store = isinstance(store, str)
        self.store = open_store(store) if isinstance(store, str) else store
        try:
            self.place = _place(self.store, schema or ("dbos" if attach else _SCHEMA))
            self.serializer = serializer or DBOSPortableJSONSerializer()
            _quiet()
            with self._said():
                if not attach:
                    DBOS.migrate(self.place.url, schema=self.place.schema)
                self.client = DBOSClient(
                    system_database_url=self.place.url,
                    dbos_system_schema=self.place.schema,
                    serializer=self.serializer,
                    application_name=None if attach else _APPLICATION,
                    retry_connection_errors=False,
                    lazy=True,
                )
            _PROCESS.enter(self)
        except BaseException:
            self._close_store()
            raise
        self._ids = RealIds()
        self._is_closed = False

    # What a run is, and how it begins.

    def start(
        self,
        job: Job,
        *,
        id: str | None = None,
        queue: str | None = None,
        priority: int = 0,
        delay: float | None = None,
        timeout: float | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> RunHandle:
        self._check_job(job)
        if not 0 <= priority <= _MOST_PRIORITY:
            raise RunError(f"`priority` must be 0 to {_MOST_PRIORITY}, got {priority}")
        given = dict(attributes or {})
        if any(key.startswith(_NAME) for key in given):
            raise RunError(
                f"attributes whose names begin with `{_NAME}` are the engine's own: name it otherwise"
            )
        if queue is not None:
            self._check_queue(queue)
        if id is not None and (row := self._row(id)) is not None:
            return self._same(row, job)
        run = id or self._ids.new()
        given.update({"harn.name": job.name} | ({} if queue is None else {"harn.queue": queue}))
        payload = to_builtins(job)
        try:
            if queue is None and delay is None:
                _PROCESS.start(self, run, job.kind, payload, given | {"harn.started": time.time()}, timeout)
                return _Handle(self, run)
            if queue is None:
                _PROCESS.launch(self)
            options = {
                "workflow_name": _NAME + job.kind,
                "queue_name": _PROCESS.here if queue is None else queue,
                "workflow_id": run,
                "workflow_id_reuse_policy": "reject",
                "attributes": given,
                "app_version": None if self.attached else VERSION,
                "priority": priority or None,
                "delay_seconds": delay,
                "workflow_timeout": timeout,
            }
            with self._said():
                self.client.enqueue(cast("EnqueueOptions", options), payload)
        except theirs.DBOSWorkflowIDInUseError:
            return self._same(self._known(run), job)
        return _Handle(self, run)

    def get(self, id: str) -> RunInfo | None:
        row = self._row(id, load_output=True)
        return None if row is None else _info(row)

    def job(self, id: str) -> Job:
        return _job(self._known(id, load_input=True))

    def runs(self, query: RunQuery = RunQuery()) -> list[RunInfo]:  # noqa: B008 - immutable
        found: list[RunInfo] = []
        offset = 0
        statuses = None if query.statuses is None else {*_statuses_of(query.statuses)}
        # SQLite can't look into attributes, and DBOS forgets the queue of a run that was cancelled.
        seeks = dict(query.attributes) if self.place.url.startswith("postgresql") else {}
        while len(found) < query.limit and statuses != set():
            with self._said():
                rows = self.client.list_workflows(
                    status=None if statuses is None else sorted(statuses),
                    name=None if query.kind is None else _NAME + query.kind,
                    workflow_id_prefix=query.prefix or None,
                    attributes=seeks or None,
                    limit=_PAGE,
                    offset=offset,
                    sort_desc=True,
                    load_input=False,
                    load_output=False,
                )
            infos = [_info(row) for row in rows if row.name.startswith(_NAME)]
            found += [info for info in infos if _is_sought(info, query)]
            offset += len(rows)
            if len(rows) < _PAGE:
                break
        return self._with_errors(found[: query.limit])

    def steps(self, id: str) -> list[StepInfo]:
        self._known(id)
        with self._said():
            rows = self.client.list_workflow_steps(id)
        return [
            StepInfo(n, key, output, (row["completed_at_epoch_ms"] or 0) / 1000)
            for n, (row, key, output) in enumerate(_flat(rows), 1)
        ]

    # What is done to a run.

    def resume(self, id: str, *, job: Job | None = None) -> RunHandle:
        if job is not None:
            self._check_job(job)
        if self._known(id).status == "SUCCESS":
            return _Handle(self, id)
        # Of several that resume it one wins, and has begun before the others look.
        with self.store.lease(f"run:{id}", ttl=self.ttl):
            row = self._known(id)
            if row.status == "SUCCESS":
                return _Handle(self, id)
            self._check_version(row)
            if job is not None and _NAME + job.kind != row.name:
                raise RunError(f"run '{id}' is a {row.name[len(_NAME) :]}, and can't go on as a {job.kind}")
            if row.status == "PENDING":
                _PROCESS.check_gone(self, row)
            _PROCESS.launch(self)
            known = _attributes(row)
            with self._said():
                self.client.update_workflow_attributes(
                    id,
                    {
                        "harn.attempts": _attempts(row),
                        **_CLEARED,
                        **({} if job is None else {"harn.job": encode(job).decode(), "harn.name": job.name}),
                        **({} if known.get("harn.queue") else _queue_of(row.queue_name)),
                    },
                    merge=True,
                )
                if row.status == "ERROR":
                    recorded = self.client.list_workflow_steps(id, load_output=False)
                    self.client.rewind_workflow(
                        id,
                        start_step=recorded[-1]["function_id"] + 1 if recorded else 1,
                        queue_name=_PROCESS.here,
                        application_version=None if self.attached else VERSION,
                    )
                else:
                    self.client.resume_workflow(id, queue_name=_PROCESS.here)
            self._await_begin(id)
        return _Handle(self, id)

    def cancel(self, id: str, *, reason: str = "") -> bool:
        if _status(self._known(id)) in ENDED:
            return False
        with self._said():
            if reason:
                self.client.update_workflow_attributes(id, {"harn.reason": reason}, merge=True)
            self.client.cancel_workflow(id)
        return self._known(id).status == "CANCELLED"

    def fork(self, id: str, step: int | str, *, new_id: str | None = None) -> RunHandle:
        row = self._known(id)
        self._check_version(row)
        new = new_id or self._ids.new()
        if self._row(new) is not None:
            raise RunExists(new)
        with self._said():
            rows = self.client.list_workflow_steps(id)
        flat = _flat(rows)
        at = _position(id, [key for _, key, _ in flat], step)
        first = flat[at][0]["function_id"] if at < len(flat) else len(rows) + 1
        # Steps that were recorded together stand in one row of DBOS's: those before are carried over.
        carried = [[key, output] for each, key, output in flat[:at] if each["function_id"] == first]
        _PROCESS.launch(self)
        begun = {
            "harn.attempts": None,
            "harn.started": None,
            "harn.carried": encode(carried).decode() if carried else None,
            "harn.carried_at": first,
        }

        def fork() -> None:
            with SetWorkflowID(new):
                self.client.fork_workflow(
                    id,
                    first,
                    application_version=None if self.attached else VERSION,
                    queue_name=_PARKED,
                )

        try:
            with self._said():
                Context().run(fork)
                self.client.update_workflow_attributes(new, {**_CLEARED, **begun}, merge=True)
                self.client.resume_workflow(new, queue_name=_PROCESS.here)
        except IntegrityError:
            raise RunExists(new) from None
        return _Handle(self, new)

    # Queues, schedules and workers.

    def queue(
        self,
        name: str,
        *,
        concurrency: int | None = None,
        worker_concurrency: int | None = None,
        rate: tuple[int, float] | None = None,
    ) -> None:
        if name.startswith(_NAME):
            raise RunError(f"queues whose names begin with `{_NAME}` are the engine's own: name it otherwise")
        each = worker_concurrency
        if each is None:
            each = _USUAL_CONCURRENCY if concurrency is None else min(_USUAL_CONCURRENCY, concurrency)
        with self._said(f"queue '{name}'"):
            self.client.register_queue(
                name,
                global_concurrency=concurrency,
                worker_concurrency=each,
                limiter=None if rate is None else {"limit": rate[0], "period": rate[1]},
                polling_interval_sec=self.poll,
            )

    def schedule(
        self, name: str, cron: str, job: Job, *, queue: str | None = None, timezone: str = "UTC"
    ) -> None:
        self._check_job(job)
        if len(cron.split()) != 5:
            raise RunError(f"schedule '{name}': `cron` must be five fields, as in `0 3 * * *`, got `{cron}`")
        if queue is not None:
            self._check_queue(queue)
        self._schedule(name, cron, job, queue, timezone)

    def _schedule(self, name: str, cron: str, job: Job, queue: str | None, timezone: str) -> None:
        with self._said(f"schedule '{name}'"):
            if queue is None:
                self.open_queue(_ANY)
            self.client.apply_schedules(
                [
                    {
                        "schedule_name": name,
                        "workflow_name": _NAME + job.kind,
                        "schedule": cron,
                        "context": to_builtins(job),
                        "cron_timezone": timezone,
                        "queue_name": queue or _ANY,
                    }
                ]
            )

    def unschedule(self, name: str) -> bool:
        with self._said():
            if self.client.get_schedule(name) is None:
                return False
            self.client.delete_schedule(name)
        return True

    def schedules(self) -> list[Schedule]:
        from datetime import datetime
        from zoneinfo import ZoneInfo

        found = []
        with self._said():
            known = self.client.list_schedules()
        for each in known:
            if each["workflow_name"].startswith(_NAME):
                zone = each["cron_timezone"] or "UTC"
                times = croniter(each["schedule"], datetime.now(ZoneInfo(zone)), second_at_beginning=True)
                queue = None if each["queue_name"] == _ANY else each["queue_name"]
                job = convert(each["context"], Job)
                following = times.get_next(datetime).timestamp()
                found.append(Schedule(each["schedule_name"], each["schedule"], job, queue, zone, following))
        return found

    def work(
        self, *, queues: Sequence[str] | None = None, concurrency: int = 4, stop: Event | None = None
    ) -> None:
        for name in queues or ():
            self._check_queue(name)
        _PROCESS.work(self, queues, concurrency, stop or Event())

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            _PROCESS.leave(self)
            self.client.destroy()
            self._close_store()

    def _close_store(self) -> None:
        if self._owns_store:
            self.store.close()

    # How it talks to DBOS.

    def queue_names(self) -> list[str]:
        with self._said():
            return [queue.name for queue in self.client.list_queues() if not queue.name.startswith(_NAME)]

    def open_queue(self, name: str) -> None:
        """Make a queue of our own, unless it is there."""
        with self._said():
            self.client.register_queue(name, polling_interval_sec=self.poll, on_conflict="never_update")

    def hand_on(self, row: WorkflowStatus) -> None:
        """Have another worker take up a run that has lost its own; after `MOST_ATTEMPTS` times, none."""
        known = _attributes(row)
        lost = known.get("harn.lost") or 0
        with self._said():
            if lost + 1 >= MOST_ATTEMPTS:
                self.client.update_workflow_attributes(row.workflow_id, {"harn.dead": True}, merge=True)
                self.client.cancel_workflow(row.workflow_id)
                return
            # DBOS forgets attempts and deadline of a run that is resumed.
            kept = {"harn.attempts": _attempts(row), "harn.lost": lost + 1, "harn.waiting": None}
            if row.workflow_deadline_epoch_ms and not known.get("harn.deadline"):
                kept["harn.deadline"] = row.workflow_deadline_epoch_ms / 1000
            self.client.update_workflow_attributes(row.workflow_id, kept, merge=True)
            queue = row.queue_name
            if not queue or queue.startswith(_NAME):
                self.open_queue(queue := _ANY)
            self.client.resume_workflow(row.workflow_id, queue_name=queue)

    def rows(self, **query: Any) -> list[WorkflowStatus]:
        """Return what DBOS has on runs, without what goes in and comes out."""
        with self._said():
            rows = self.client.list_workflows(load_input=False, load_output=False, **query)
        return [row for row in rows if row.name.startswith(_NAME)]

    def _row(self, id: str, *, load_input: bool = False, load_output: bool = False) -> WorkflowStatus | None:
        with self._said():
            rows = self.client.list_workflows(
                workflow_ids=[id], load_input=load_input, load_output=load_output
            )
        return rows[0] if rows and rows[0].name.startswith(_NAME) else None

    def _known(self, id: str, *, load_input: bool = False, load_output: bool = False) -> WorkflowStatus:
        row = self._row(id, load_input=load_input, load_output=load_output)
        if row is None:
            raise RunNotFound(id)
        return row

    def _same(self, row: WorkflowStatus, job: Job) -> RunHandle:
        if self.job(row.workflow_id) != job:
            raise RunExists(row.workflow_id)
        return _Handle(self, row.workflow_id)

    def _check_job(self, job: Job) -> None:
        """DBOS takes a run of which it knows no function, and would never run it."""
        if job.kind not in self.bodies:
            raise RunError(f"nothing here does jobs of the kind '{job.kind}': {hint(job.kind, self.bodies)}")

    def _check_queue(self, name: str) -> None:
        """DBOS takes a run for a queue that nobody has made, and would never run it."""
        with self._said():
            if not name.startswith(_NAME) and self.client.retrieve_queue(name) is not None:
                return
        known = self.queue_names()
        what = hint(name, known) if known else "there is none"
        raise RunError(f"unknown queue '{name}': {what}; `queue({name!r})` makes it")

    def _check_version(self, row: WorkflowStatus) -> None:
        if not self.attached and row.app_version not in (None, VERSION):
            raise RunError(
                f"run '{row.workflow_id}' is of version {row.app_version} of the engine, this is {VERSION}:"
                f" it goes on where that version of harnpy is installed"
            )

    def _await_begin(self, id: str) -> None:
        """Return once the run was taken from our queue, which takes no longer than a look at it."""
        until = time.monotonic() + _BEGUN
        while time.monotonic() < until and self._known(id).status == "ENQUEUED":
            time.sleep(self.poll / 4)

    def _with_errors(self, infos: list[RunInfo]) -> list[RunInfo]:
        """Add the errors of those that failed: DBOS gives them out with the results only."""
        failed = [info.id for info in infos if info.status == FAILED]
        if not failed:
            return infos
        with self._said():
            rows = self.client.list_workflows(workflow_ids=failed, load_input=False)
        errors = {row.workflow_id: _info(row).error for row in rows}
        return [info._replace(error=errors.get(info.id)) for info in infos]

    @contextmanager
    def _said(self, what: str = "") -> Iterator[None]:
        """Report what DBOS and its database say in one sentence, without a password."""
        try:
            yield
        except (IntegrityError, theirs.DBOSWorkflowIDInUseError):
            raise
        except SQLAlchemyError as error:
            raise RunError(f"engine 'dbos' can't reach {self.place.shown}: {_reason(error)}") from error
        except (theirs.DBOSException, ValueError) as error:
            raise RunError(f"{what or 'engine dbos'}: {shown(str(error))}") from error


class _Handle:
    """A run, wherever it runs."""

    def __init__(self, engine: DbosEngine, id: str) -> None:
        self._engine = engine
        self.id = id

    def status(self) -> str:
        return _status(self._engine._known(self.id))

    def result(self, timeout: float | None = None) -> Json:
        until = None if timeout is None else time.monotonic() + timeout
        pause = 0.01
        while True:
            row = self._engine._known(self.id, load_output=True)
            status = _status(row)
            if status == COMPLETED:
                return row.output
            if status == CANCELLED:
                raise RunCancelled(self.id, _why_cancelled(row))
            if status in ENDED:
                raise RunFailed(self.id, _info(row).error or status)
            left = pause if until is None else min(pause, until - time.monotonic())
            if left <= 0:
                raise TimeoutError(f"run '{self.id}' is {status} after {timeout:g} seconds")
            _PROCESS.rest(self.id, left)
            pause = min(pause * 1.5, self._engine.poll)

    def events(self) -> Iterator[StepInfo]:
        seen = 0
        while True:
            is_over = self.status() in ENDED
            for step in self._engine.steps(self.id)[seen:]:
                seen += 1
                yield step
            if is_over:
                return
            _PROCESS.rest(self.id, self._engine.poll)


class _Run:
    """What a body is given: a `RunContext`."""

    def __init__(self, engine: DbosEngine, row: WorkflowStatus, rows: Sequence[Any]) -> None:
        self._engine = engine
        self.run_id = row.workflow_id
        self.attempt = _attempts(row)
        self.recorded: Sequence[Step] = [Step(key, output) for _, key, output in _flat(rows)]
        self._asked = 0
        #: DBOS's place in the run, which steps count in.
        self._context = copy_context()
        #: Which of the times that somebody had it go on this is: a later one takes it from us.
        self.claim = _claim(row)
        self.done = Event()
        self._over: Exception | None = None
        #: The process gives its runs back; this one is still ours.
        self.is_drained = False
        self._calls: list[Callable[[], None]] = []
        self._lock = RLock()
        known = _attributes(row)
        carried = known.get("harn.carried")
        # The first of its steps are reserved: DBOS would look each of them up once more.
        for _ in rows:
            DBOS.reserve_step()
        if carried and len(rows) < known["harn.carried_at"]:
            steps = [Step(key, output) for key, output in decode(carried)]
            self._write(steps)
            self.recorded = [*self.recorded, *steps]

    def step(self, key: str, work: Callable[[], Json]) -> Json:
        self.check()
        if self._asked < len(self.recorded):
            return self._replayed(key).output
        output = work()
        self._write([Step(key, output)])
        return output

    def record(self, *steps: Step) -> None:
        self.check()
        replayed = min(len(steps), len(self.recorded) - self._asked)
        for step in steps[:replayed]:
            self._replayed(step.key)
        if steps[replayed:]:
            self._write(steps[replayed:])

    def wait(self, waitpoints: Sequence[str], *, key: str, timeout: float | None = None) -> Json:
        return self.step(key, lambda: self._wait(waitpoints, f"{self.run_id}:{key}", timeout))

    def _wait(self, waitpoints: Sequence[str], wait_id: str, timeout: float | None) -> Json:
        points = Waitpoints(StoreEventLog(self._engine.store))
        waiting = points.enter(waitpoints, wait_id=wait_id, timeout=timeout, run_id=self.run_id)
        result = waiting.look()
        if result is None:
            self._say_waiting(True)
            while result is None:
                self.check()
                waiting.rest()
                result = waiting.look()
            self._say_waiting(False)
        return result.to_dict()

    def _say_waiting(self, waits: bool) -> None:
        _off_loop(
            lambda: Context().run(
                DBOS.update_workflow_attributes, self.run_id, {"harn.waiting": waits or None}, merge=True
            )
        )

    def check(self) -> None:
        if self._over is not None:
            raise self._over

    def on_end(self, call: Callable[[], None]) -> None:
        with self._lock:
            self._calls.append(call)
        if self._over is not None:
            self.tell()

    def end(self, error: Exception) -> None:
        """Have `check` raise from now on."""
        with self._lock:
            self._over = self._over or error

    def tell(self) -> None:
        """Call, once, whoever wants to know that it is over."""
        with self._lock:
            calls, self._calls = self._calls, []
        for call in calls:
            Thread(target=call, name=f"end of run {self.run_id}", daemon=True).start()

    @property
    def over(self) -> Exception | None:
        return self._over

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
            found = _off_loop(lambda: self._context.run(record))
        except theirs.DBOSWorkflowCancelledError:
            row = self._engine._row(self.run_id)
            self._stop(RunCancelled(self.run_id, "" if row is None else _why_cancelled(row)))
        except (theirs.DBOSWorkflowConflictIDError, theirs.DBOSUnexpectedStepError):
            self._stop(LeaseLost(f"run:{self.run_id}"))
        else:
            if found is not pairs:  # the step of another owner, who has come further
                self._stop(LeaseLost(f"run:{self.run_id}"))

    def _stop(self, error: Exception) -> None:
        self.end(error)
        self.tell()
        self.check()


class _Process:
    """DBOS in this process, and our leases, for all engines that are open here. Any thread may call."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._engines: list[DbosEngine] = []
        self._functions: dict[str, Any] = {}
        self._runs: dict[str, list[_Run]] = {}
        self._executor = ""
        self._pid = 0
        self._leases: list[Lease] = []
        self._dbos: Any = None
        self._stopped = Event()
        self._slots: BoundedSemaphore | None = None

    @property
    def here(self) -> str:
        """The queue of what is to go on in this process."""
        return _HERE + self._executor

    def enter(self, engine: DbosEngine) -> None:
        with self._lock:
            place = self._engines[0].place if self._engines else engine.place
            if place != engine.place:
                raise RunError(
                    f"DBOS serves one database a process, and here that is {place.shown}:"
                    f" close that engine first, or open {engine.place.shown} in another process"
                )
            self._engines.append(engine)
            for kind in engine.bodies:
                if kind not in self._functions:
                    self._functions[kind] = DBOS.workflow(name=_NAME + kind, max_recovery_attempts=None)(
                        self._function(kind)
                    )

    def leave(self, engine: DbosEngine) -> None:
        with self._lock:
            self._engines.remove(engine)
            is_last = not self._engines
            if not is_last:
                return
        self._shut(engine, grace=0.0)

    def start(
        self,
        engine: DbosEngine,
        run: str,
        kind: str,
        payload: Any,
        attributes: dict[str, Any],
        timeout: float | None,
    ) -> None:
        self.launch(engine)
        with engine._said():
            engine.client.check_connection()  # DBOS itself would wait for the server

        def start() -> None:
            with (
                SetWorkflowID(run, workflow_id_reuse_policy="reject"),
                SetWorkflowAttributes(attributes),
                SetWorkflowTimeout(timeout),
            ):
                DBOS.start_workflow(self._functions[kind], payload)

        with engine._said():
            Context().run(start)

    def launch(self, engine: DbosEngine) -> None:
        """Have DBOS run in this process, which takes from no queue yet but the one that is its own."""
        with self._lock:
            if self._executor:
                if self._pid != os.getpid():
                    raise RunError(
                        "engine 'dbos' was at work before this process was forked off: start a new one"
                    )
                return
            executor = DBOS.executor_id if engine.attached else f"{Machine().owner()}:{os.urandom(4).hex()}"
            keys = [f"worker:{executor}"]
            if not engine.place.url.startswith("postgresql"):
                keys.append("worker:dbos")  # SQLite serves one worker
            try:
                for key in keys:
                    self._leases.append(engine.store.lease(key, ttl=engine.ttl))
                with engine._said():
                    engine.open_queue(_HERE + executor)
                    self._launch(engine, executor)
            except BaseException:
                self._release()
                raise
            self._executor, self._pid = executor, os.getpid()
            self._stopped = Event()
            Thread(
                target=self._watch, args=(engine.ttl, self._stopped), name="harnpy dbos", daemon=True
            ).start()

    def _launch(self, engine: DbosEngine, executor: str) -> None:
        config = DBOSConfig(
            name=_APPLICATION,
            system_database_url=engine.place.url,
            dbos_system_schema=engine.place.schema,
            executor_id=executor,
            application_version=VERSION,
            serializer=engine.serializer,
            log_level="WARNING",
            scheduler_polling_interval_sec=1.0,
        )
        self._dbos = DBOS(config=config)  # the one that there is, whatever it is told
        if engine.attached:
            self._listen([])
            return
        if DBOS.executor_id != executor:
            raise RunError(
                "this process has a DBOS of its own: open the engine with attach=True, before DBOS.launch()"
            )
        try:
            DBOS.listen_queues([_HERE + executor])
            DBOS.launch()
        except BaseException:
            DBOS.destroy()
            raise

    def rest(self, run: str, seconds: float) -> None:
        """Wait, less long when the run ends here."""
        with self._lock:
            runs = self._runs.get(run)
        if runs:
            runs[-1].done.wait(seconds)
        else:
            time.sleep(seconds)

    def check_gone(self, engine: DbosEngine, row: WorkflowStatus) -> None:
        """Raise `LeaseHeld` while a worker has the run."""
        executor = row.executor_id or ""
        if executor == self._executor:
            if row.workflow_id in self._runs:
                raise LeaseHeld(f"run:{row.workflow_id}", executor, time.time() + engine.ttl)
            return
        self._lease_of(engine, executor).release()

    def _lease_of(self, engine: DbosEngine, executor: str) -> Lease:
        """Return the lease of a worker that is gone. Raises `LeaseHeld` while it is there."""
        return engine.store.lease(f"worker:{executor}", ttl=engine.ttl)

    # The function of DBOS that does jobs of a kind.

    def _function(self, kind: str) -> Callable[..., Json]:
        def run(*given: Json) -> Json:  # a schedule gives the time, too
            return self._run(kind, given[-1])

        return run

    def _run(self, kind: str, payload: Json) -> Json:
        id = str(DBOS.workflow_id)
        # In an empty context: in this one, each would be a step.
        (row,) = Context().run(
            lambda: DBOS.list_workflows(workflow_ids=[id], load_input=False, load_output=False)
        )
        rows = Context().run(DBOS.list_workflow_steps, id)
        with self._lock:
            engine = next(each for each in reversed(self._engines) if kind in each.bodies)
            slots = None if not row.queue_name or row.queue_name.startswith(_HERE) else self._slots
        run = _Run(engine, row, rows)
        with self._lock:
            self._runs.setdefault(id, []).append(run)
        held = False
        try:
            while slots is not None and not held:
                run.check()
                held = slots.acquire(timeout=_LOOK)
            output = engine.bodies[kind](_job_of(row, payload), run)
            if not run.is_drained:
                run.check()
            return output
        except BaseException as error:
            if run.over is not None:
                raise _Released from error
            raise
        finally:
            if held and slots is not None:
                slots.release()
            with self._lock:
                self._runs[id].remove(run)
                if not self._runs[id]:
                    del self._runs[id]
            run.done.set()

    # What goes on beside the runs.

    def _watch(self, ttl: float, stopped: Event) -> None:
        """Look whether our runs are still ours, and keep the lease by which others see that we are there."""
        renewed = time.monotonic()
        while not stopped.wait(_LOOK):
            with self._lock:
                engine = self._engines[-1] if self._engines else None
            if engine is None:
                return
            # While the server is gone nobody can take anything from us.
            with suppress(RunError, StorageError):
                if time.monotonic() - renewed >= ttl / 3:
                    self._renew(engine)
                    renewed = time.monotonic()
                self._look(engine)

    def _renew(self, engine: DbosEngine) -> None:
        for n, lease in enumerate(self._leases):
            try:
                lease.renew()
            except LeaseLost:
                # We were stopped for longer than it lasts: our runs were handed on, new ones are ours again.
                self._leases[n] = engine.store.lease(lease.key, ttl=engine.ttl)

    def _release(self) -> None:
        leases, self._leases = self._leases, []
        for lease in leases:
            with suppress(StorageError):  # it ends by itself
                lease.release()

    def _look(self, engine: DbosEngine) -> None:
        with self._lock:
            runs = [run for group in self._runs.values() for run in group]
        if not runs:
            return
        rows = {row.workflow_id: row for row in engine.rows(workflow_ids=[run.run_id for run in runs])}
        for run in runs:
            row = rows.get(run.run_id)
            if row is not None and row.status == "PENDING" and _is_overdue(row):
                engine.cancel(run.run_id)
            elif row is not None and row.status == "CANCELLED":
                run.end(RunCancelled(run.run_id, _why_cancelled(row)))
                run.tell()
            elif row is None or (
                row.status in ("PENDING", "ENQUEUED", "DELAYED") and _claim(row) != run.claim
            ):
                run.end(LeaseLost(f"run:{run.run_id}", None if row is None else row.executor_id))
                run.tell()

    def work(self, engine: DbosEngine, queues: Sequence[str] | None, concurrency: int, stop: Event) -> None:
        self.launch(engine)
        with self._lock:
            if self._slots is not None:
                raise RunError("this process works for engine 'dbos' already: stop that first")
            self._slots = BoundedSemaphore(concurrency)
        try:
            engine.open_queue(_ANY)
            looked = rescued = float("-inf")
            while self._executor and not stop.wait(min(_LOOK, engine.ttl / 4)):
                now = time.monotonic()
                with suppress(RunError, StorageError):  # the server is gone: it may come back
                    if now - looked >= _QUEUES:
                        self._listen([_ANY, *(engine.queue_names() if queues is None else queues)])
                        looked = now
                    if now - rescued >= engine.ttl / 2:
                        self._rescue(engine)
                        rescued = now
        finally:
            self._shut(engine, grace=_GRACE)
            with self._lock:
                self._slots = None

    def _listen(self, queues: Sequence[str]) -> None:
        """Take from these queues from now on, and from our own."""
        known = self._dbos._listening_queues
        if self._engines[-1].attached:
            if known is None:
                return  # the application takes from all that there are
            queues = [*known, *queues]
        # DBOS lets this be said once, before it is launched, and looks at it again each second.
        self._dbos._listening_queues = list(dict.fromkeys([self.here, *queues]))

    def _rescue(self, engine: DbosEngine) -> None:
        """Hand on the runs of workers that are gone; DBOS leaves that to whoever operates it."""
        try:
            rescue = engine.store.lease("rescue", ttl=engine.ttl)
        except LeaseHeld:
            return
        with rescue:
            running = engine.rows(status="PENDING")
            waiting = engine.rows(status=["ENQUEUED", "DELAYED"], queues_only=True)
            with engine._said():
                queues = [queue.name for queue in engine.client.list_queues()]
            executors = {row.executor_id or "" for row in running}
            executors |= {name[len(_HERE) :] for name in queues if name.startswith(_HERE)}
            for executor in sorted(executors - {self._executor}):
                try:
                    gone = self._lease_of(engine, executor)
                except LeaseHeld:
                    continue
                with gone:
                    own = _HERE + executor
                    for row in running:
                        if row.executor_id == executor:
                            engine.hand_on(row)
                    for row in waiting:
                        if row.queue_name == own:
                            engine.hand_on(row)
                    if own in queues:
                        with engine._said():
                            engine.client.delete_queue(own)

    def _shut(self, engine: DbosEngine, grace: float) -> None:
        """Let running steps end, for so many seconds, and give the runs back to whoever works."""
        with self._lock:
            if not self._executor:
                return
            executor, self._executor = self._executor, ""
            runs = [run for group in self._runs.values() for run in group]
        for run in runs:
            run.is_drained = run.over is None
            run.end(LeaseLost(f"run:{run.run_id}"))
        until = time.monotonic() + grace
        for run in runs:
            if not run.done.wait(max(0.0, until - time.monotonic())):
                run.tell()
        for run in runs:
            run.done.wait(_LOOK)
        self._stopped.set()
        with suppress(RunError, StorageError):  # the server is gone: others see that we are, too
            for row in engine.rows(status="PENDING", executor_id=executor):
                engine.hand_on(row)
            with engine._said():
                engine.client.delete_queue(_HERE + executor)
        if not engine.attached:
            DBOS.destroy()
        self._release()


#: DBOS is one a process, whoever opens it; this is what it is to us.
_PROCESS = _Process()


# What DBOS's rows mean.


def _attributes(row: WorkflowStatus) -> dict[str, Any]:
    return row.attributes or {}


def _attempts(row: WorkflowStatus) -> int:
    """Return how many processes have begun it: DBOS counts since it was last resumed."""
    return int(_attributes(row).get("harn.attempts") or 0) + (row.recovery_attempts or 0)


def _claim(row: WorkflowStatus) -> tuple[str | None, int]:
    """Return who has the run, since which resumption: another one takes it from whoever had it."""
    return row.executor_id, int(_attributes(row).get("harn.attempts") or 0)


def _status(row: WorkflowStatus) -> str:
    known = _attributes(row)
    if known.get("harn.dead") and row.status == "CANCELLED":
        return DEAD
    if known.get("harn.waiting") and row.status == "PENDING":
        return WAITING
    return _STATUSES[row.status]


def _statuses_of(wanted: frozenset[str]) -> set[str]:
    """Return the statuses that DBOS gives to runs of ours."""
    given = {theirs for theirs, ours in _STATUSES.items() if ours in wanted}
    return given | {theirs for ours, theirs in _FOUND_AMONG.items() if ours in wanted}


def _queue_of(name: str | None) -> dict[str, str]:
    return {} if not name or name.startswith(_NAME) else {"harn.queue": name}


def _is_overdue(row: WorkflowStatus) -> bool:
    return time.time() >= (_attributes(row).get("harn.deadline") or float("inf"))


def _why_cancelled(row: WorkflowStatus) -> str:
    reason = _attributes(row).get("harn.reason")
    if reason:
        return str(reason)
    due = row.workflow_deadline_epoch_ms
    is_late = _is_overdue(row) or (due is not None and due <= (row.completed_at or 0) + 1000)
    return (
        f"it took longer than {row.workflow_timeout_ms / 1000:g} s"
        if row.workflow_timeout_ms and is_late
        else ""
    )


def _job(row: WorkflowStatus) -> Job:
    """Return what a run does, of a row that has its input."""
    return _job_of(row, None if row.input is None else row.input["args"][-1])


def _job_of(row: WorkflowStatus, payload: Json) -> Job:
    replaced = _attributes(row).get("harn.job")
    return decode(replaced, type=Job) if replaced else convert(payload, Job)


def _info(row: WorkflowStatus) -> RunInfo:
    known = _attributes(row)
    status = _status(row)
    error = None if row.error is None else str(row.error)
    if status == DEAD:
        error = f"its worker was lost {MOST_ATTEMPTS} times"
    due, finished = row.delay_until_epoch_ms, row.completed_at
    began = known.get("harn.started") or (row.dequeued_at or 0) / 1000
    return RunInfo(
        id=row.workflow_id,
        kind=row.name[len(_NAME) :],
        name=str(known.get("harn.name") or row.schedule_name or ""),
        status=status,
        engine=DbosEngine.name,
        queue=known.get("harn.queue") or _queue_of(row.queue_name).get("harn.queue"),
        worker=row.executor_id,
        attempt=_attempts(row),
        priority=row.priority or 0,
        created=(row.created_at or 0) / 1000,
        started=began or None,
        updated=(row.updated_at or 0) / 1000,
        finished=finished / 1000 if finished and status in ENDED else None,
        due=None if due is None else due / 1000,
        forked_from=row.forked_from,
        attributes={key: str(value) for key, value in known.items() if not key.startswith(_NAME)},
        error=error,
    )


def _is_sought(info: RunInfo, query: RunQuery) -> bool:
    return (
        (query.statuses is None or info.status in query.statuses)
        and (query.queue is None or info.queue == query.queue)
        and info.id.startswith(query.prefix)
        and all(info.attributes.get(key) == value for key, value in query.attributes.items())
    )


def _flat(rows: Sequence[Any]) -> list[tuple[Any, str, Json]]:
    """Return the steps in DBOS's rows, each of which has those that were recorded together."""
    return [(row, key, output) for row in rows for key, output in row["output"]]


def _position(run: str, keys: Sequence[str], step: int | str) -> int:
    """Return how many steps come before ``step``, a number from 1 on or a key."""
    if isinstance(step, str):
        if step in keys:
            return keys.index(step)
        what = hint(step, keys) if keys else "it has none"
        raise RunError(f"run '{run}' has no step '{step}': {what}")
    if not 1 <= step <= len(keys) + 1:
        raise RunError(f"run '{run}' has {len(keys)} steps: it can't be forked at step {step}")
    return step - 1


# Where DBOS keeps things, and what it says.


def _place(store: Store, schema: str) -> _Place:
    """Return where DBOS has its tables: on the store's server, or in a file beside it."""
    conninfo = getattr(store, "conninfo", None)
    if conninfo is not None:
        from psycopg.conninfo import conninfo_to_dict

        known = {key: str(value) for key, value in conninfo_to_dict(conninfo).items()}
        user, password, database = (known.pop(key, None) for key in ("user", "password", "dbname"))
        url = URL.create("postgresql", user, password or None, database=database, query=known)
        return _Place(url.render_as_string(hide_password=False), schema, store.url)
    parsed = parse_url(store.url)
    if parsed.scheme != "sqlite" or parsed.target in ("", ":memory:"):
        raise RunError(
            f"engine 'dbos' keeps its runs in PostgreSQL or, to try it out, in SQLite: not in {store.url}"
        )
    path = os.path.abspath(f"{parsed.target}.dbos")
    mode, _ = parsed.modes
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, mode))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")  # which stays: readers don't wait for writers
    return _Place(f"sqlite:///{path}", schema, store.url)


def _quiet() -> None:
    """Have what DBOS and its database log go where the program says, and to nobody else."""
    for name in ("dbos", "sqlalchemy"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


def _reason(error: SQLAlchemyError) -> str:
    words = str(getattr(error, "orig", None) or error)
    return shown("; ".join(line.strip() for line in words.splitlines() if line.strip()))


def _off_loop(call: Callable[[], T]) -> T:
    """Call it where no event loop runs, as DBOS demands: a body may be in the middle of one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call()
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(call).result()
