"""`DbosEngine`: durable runs of many machines, by DBOS Transact on the PostgreSQL that holds the sessions.

DBOS keeps runs and steps, queues and schedules them, hands each to one process, and forks them:
`dbos_database` is what it keeps, `dbos_process` is it at work. Refused here is what DBOS takes in silence and
would never run: jobs that nobody does, queues that nobody has made. Spec: 10 §C19.3.
"""

from __future__ import annotations

import time
from threading import Event
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from msgspec import convert, to_builtins
from msgspec.json import encode

from harnpy.formats.suggestions import hint
from harnpy.storage.errors import LeaseHeld, LeaseLost
from harnpy.storage.opening import open_store
from harnpy.workflow.engines.contract import CANCELLED, COMPLETED, ENDED, Job, RunQuery, Schedule, StepInfo
from harnpy.workflow.engines.dbos_database import (
    ANY,
    CLEARED,
    ENGINE,
    MIDDLE,
    OURS,
    SCHEMA,
    DbosDatabase,
    IdTaken,
    attempts_of,
    flat,
    info_of,
    job_of,
    last_number,
    payload_of,
    place_of,
    plain,
    queue_of,
    status_of,
    why_cancelled,
)
from harnpy.workflow.engines.dbos_process import PROCESS, Member, Stay
from harnpy.workflow.engines.errors import RunCancelled, RunError, RunExists, RunFailed, unended
from harnpy.workflow.engines.local import GLANCE, check_options, check_successor
from harnpy.workflow.engines.queues import check_name, check_queue, next_time
from harnpy.world.ids import RealIds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dbos import EnqueueOptions, Serializer, WorkflowStatus

    from harnpy.storage.contract import Store
    from harnpy.workflow.engines.contract import Body, Json, RunInfo

#: Runs at once on a worker, of a queue that doesn't say. By DBOS's own "no limit" the first worker that looks
#: claims all that is queued.
_USUAL_CONCURRENCY = 4
#: Seconds within which a run that was resumed must have begun here.
_BEGUN = 10.0


class DbosEngine:
    """The engine ``dbos`` on a store, given as its URL or opened; on SQLite one process at a time runs jobs.

    ``ttl`` and ``grace`` are in seconds: how long a run waits for a worker that stands still, and running
    steps for one that stops; ``poll``: between two looks at a queue. ``attach``: the process has a DBOS of
    its own, with that ``schema`` and ``serializer``, which does our jobs, too; open the engine before its
    launch.
    """

    name: Final = ENGINE
    features: Final = frozenset({"many_machines", "rate_limits", "schedules"})

    def __init__(
        self,
        store: str | Store,
        bodies: Mapping[str, Body],
        *,
        attach: bool = False,
        schema: str | None = None,
        serializer: Serializer | None = None,
        ttl: float = 30.0,
        grace: float = 30.0,
        poll: float = 0.25,
    ) -> None:
        owns_store = isinstance(store, str)
        self.store: Store = open_store(store) if isinstance(store, str) else store
        self._bodies = bodies
        self._ids = RealIds()
        self._is_closed = False
        self.on_unreadable: Callable[[str, str], object] | None = None  # DBOS's rows are DBOS's to read
        database: DbosDatabase | None = None
        try:
            place = place_of(self.store, schema or ("dbos" if attach else SCHEMA))
            database = DbosDatabase(place, attached=attach, serializer=serializer, poll=poll, ttl=ttl)
            self._member = Member(database, self.store, bodies, ttl, grace, owns_store=owns_store)
            PROCESS.enter(self._member)
        except BaseException:
            if database is not None:
                database.close()
            if owns_store:
                self.store.close()
            raise
        self._database = database

    # Starting a run.

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
    ) -> DbosHandle:
        self._check_kind(job.kind)
        check_options(priority, delay, timeout, attributes)
        if not -MIDDLE < priority < MIDDLE:
            raise RunError(f"`priority` must be an int between -2**30 and 2**30, got {priority}")
        ours = next((key for key in attributes or {} if key.startswith(OURS)), None)
        if ours is not None:
            raise RunError(f"`attributes` that begin with {OURS} are the engine's own: rename {ours!r}")
        if queue is not None:
            self._database.require_queue(queue)
        if id is not None:
            check_name("run", id)
            if self._database.row(id) is not None:
                return self._existing(id, job, here=queue is None)
        id = f"run_{self._ids.new()}" if id is None else id
        noted: dict[str, Any] = {**(attributes or {}), "harn.name": plain(job.name)}
        payload = to_builtins(job)
        stay = PROCESS.expect(id) if queue is None else None
        try:
            if queue is None and not delay:
                noted["harn.here"] = True
                PROCESS.start(self._member, id, job.kind, payload, noted, timeout)
            else:
                self._enqueue(id, job.kind, payload, queue, noted, priority, delay, timeout)
        except IdTaken:
            return self._existing(id, job, here=queue is None)
        return DbosHandle(self, id, stay)

    def _enqueue(
        self,
        id: str,
        kind: str,
        payload: Json,
        queue: str | None,
        noted: dict[str, Any],
        priority: int,
        delay: float | None,
        timeout: float | None,
    ) -> None:
        if queue is None:
            PROCESS.launch(self._member)
        options = {
            "workflow_name": OURS + kind,
            "queue_name": PROCESS.here if queue is None else queue,
            "workflow_id": id,
            "workflow_id_reuse_policy": "reject",
            "app_version": self._database.version,
            "attributes": noted if queue is None else {**noted, "harn.queue": queue},
            "priority": priority + MIDDLE,
            "delay_seconds": delay,
            "workflow_timeout": timeout,
        }
        with self._database.said():
            self._database.client.enqueue(cast("EnqueueOptions", options), payload)

    def _existing(self, id: str, job: Job, *, here: bool) -> DbosHandle:
        """Return the run of that id, which goes on here if it should and nobody works on it."""
        row = self._database.known(id, load_input=True)
        payload = payload_of(row)
        if to_builtins(job) not in (payload, to_builtins(job_of(row, payload))):
            raise RunExists(id)
        if here and row.status == "PENDING" and queue_of(row) is None:
            try:
                return self.resume(id)
            except LeaseHeld:
                pass  # somebody works on it
        return DbosHandle(self, id)

    # What there is.

    def get(self, id: str) -> RunInfo | None:
        row = self._database.row(id, load_output=True)
        return None if row is None else info_of(row)

    def job(self, id: str) -> Job:
        row = self._database.known(id, load_input=True)
        return job_of(row, payload_of(row))

    def runs(self, query: RunQuery = RunQuery()) -> list[RunInfo]:  # noqa: B008 - immutable
        return self._database.infos(query)

    def steps(self, id: str) -> list[StepInfo]:
        self._database.known(id)
        return [
            StepInfo(n, key, output, (row["completed_at_epoch_ms"] or 0) / 1000)
            for n, (row, key, output) in enumerate(flat(self._database.steps(id)), start=1)
        ]

    # Changing a run.

    def resume(self, id: str, *, job: Job | None = None) -> DbosHandle:
        database = self._database
        row = database.known(id)
        if job is not None:
            self._check_kind(job.kind)
            if OURS + job.kind != row.name:
                raise RunError(f"run '{id}' is of the kind {row.name.removeprefix(OURS)}: it stays that")
            check_successor(self._bodies[job.kind], job, id, self.steps(id))
        # Of several that resume it one wins, and has begun before the others look.
        with self.store.lease(f"run:{id}", ttl=self._member.ttl):
            row = database.known(id)
            if row.status == "SUCCESS":
                return DbosHandle(self, id)
            self._check_version(row)
            PROCESS.check_gone(self._member, row)
            PROCESS.launch(self._member)
            noted: dict[str, Json] = {
                **CLEARED,
                "harn.attempts": attempts_of(row),
                "harn.queue": queue_of(row),
            }
            if job is not None:
                noted |= {"harn.job": encode(job).decode(), "harn.name": plain(job.name)}
            database.note(id, noted)
            stay = PROCESS.expect(id)
            if row.status == "ERROR":
                first = last_number(database.steps(id)) + 1
                with database.said():
                    database.client.rewind_workflow(
                        id,
                        start_step=first,
                        queue_name=PROCESS.here,
                        application_version=database.version,
                    )
            else:
                database.enqueue(id, PROCESS.here)
            self._await_begin(id)
        return DbosHandle(self, id, stay)

    def _await_begin(self, id: str) -> None:
        ends = time.monotonic() + _BEGUN
        while time.monotonic() < ends and self._database.known(id).status == "ENQUEUED":
            time.sleep(0.02)

    def cancel(self, id: str, *, reason: str = "") -> bool:
        if status_of(self._database.known(id)) in ENDED:
            return False
        if reason:
            self._database.note(id, {"harn.reason": plain(reason)})
        self._database.cancel(id)
        return self._database.known(id).status == "CANCELLED"

    def delete(self, id: str) -> None:
        if status_of(self._database.known(id)) not in ENDED:
            raise unended(id)
        self._database.delete(id)

    def fork(self, id: str, step: int | str, *, new_id: str | None = None) -> DbosHandle:
        database = self._database
        row = database.known(id)
        self._check_version(row)
        self._check_kind(row.name.removeprefix(OURS))
        if new_id is not None:
            check_name("run", new_id)
            if database.row(new_id) is not None:
                raise RunExists(new_id)
        new = f"run_{self._ids.new()}" if new_id is None else new_id
        rows = database.steps(id)
        steps = flat(rows)
        at = _position(id, [key for _, key, _ in steps], step)
        first = steps[at][0]["function_id"] if at < len(steps) else last_number(rows) + 1
        # Steps that were recorded together are one of DBOS's: those of them before the fork are carried over.
        carried = [[key, output] for each, key, output in steps[:at] if each["function_id"] == first]
        PROCESS.launch(self._member)
        try:
            database.fork(id, first, new)
        except IdTaken:
            raise RunExists(new) from None
        database.note(
            new,
            {
                **CLEARED,
                "harn.attempts": None,
                "harn.here": None,
                "harn.queue": None,
                "harn.carried": encode(carried).decode() if carried else None,
                "harn.carried_at": first,
            },
        )
        stay = PROCESS.expect(new)
        database.enqueue(new, PROCESS.here)
        return DbosHandle(self, new, stay)

    # Queues, schedules, workers.

    def queue(
        self,
        name: str,
        *,
        concurrency: int | None = None,
        worker_concurrency: int | None = None,
        rate: tuple[int, float] | None = None,
    ) -> None:
        limits = {"concurrency": concurrency, "worker_concurrency": worker_concurrency, "rate": rate}
        self._make_queue(name, limits, "always_update")

    def _make_queue(
        self, name: str, limits: dict[str, Any], on_conflict: Literal["always_update", "never_update"]
    ) -> None:
        check_queue(name, limits)
        if name.startswith(OURS):
            raise RunError(f"queues that begin with {OURS} are the engine's own: rename '{name}'")
        concurrency, worker_concurrency, rate = limits.values()
        each = _USUAL_CONCURRENCY if worker_concurrency is None else worker_concurrency
        with self._database.said(f"queue '{name}'"):
            self._database.client.register_queue(
                name,
                global_concurrency=concurrency,
                worker_concurrency=each if concurrency is None else min(each, concurrency),
                limiter=None if rate is None else {"limit": int(rate[0]), "period": float(rate[1])},
                polling_interval_sec=self._database.poll,
                on_conflict=on_conflict,
            )

    def schedule(
        self, name: str, cron: str, job: Job, *, queue: str | None = None, timezone: str = "UTC"
    ) -> None:
        self._check_kind(job.kind)
        check_name("schedule", name)
        next_time(name, cron, timezone, time.time())
        if queue is None:
            self._database.open_queue(ANY)
        else:
            self._database.require_queue(queue)
        with self._database.said(f"schedule '{name}'"):
            self._database.client.apply_schedules(
                [
                    {
                        "schedule_name": name,
                        "workflow_name": OURS + job.kind,
                        "schedule": cron,
                        "context": to_builtins(job),
                        "cron_timezone": timezone,
                        "queue_name": queue or ANY,
                    }
                ]
            )

    def unschedule(self, name: str) -> bool:
        with self._database.said():
            if self._database.client.get_schedule(name) is None:
                return False
            self._database.client.delete_schedule(name)
        return True

    def schedules(self) -> list[Schedule]:
        with self._database.said():
            found = self._database.client.list_schedules()
        return [_schedule(each) for each in found if each["workflow_name"].startswith(OURS)]

    def work(
        self, *, queues: Sequence[str] | None = None, concurrency: int = 4, stop: Event | None = None
    ) -> None:
        if type(concurrency) is not int or concurrency < 1:
            raise RunError(f"`concurrency` must be an int >= 1, got {concurrency!r}")
        known = self._database.queue_names() if queues else ()
        for name in queues or ():
            if name not in known:
                unlimited = {"concurrency": None, "worker_concurrency": None, "rate": None}
                self._make_queue(name, unlimited, "never_update")
        PROCESS.work(self._member, queues, concurrency, stop or Event())

    def close(self) -> None:
        """Give back what this engine works on, and let go of the store if the engine has opened it."""
        if self._is_closed:
            return
        self._is_closed = True
        PROCESS.leave(self._member)
        self._database.close()

    def _check_kind(self, kind: str) -> None:
        """Raise `RunError` for jobs that nobody does: DBOS takes them, and would never run them."""
        if kind not in self._bodies:
            raise RunError(f"no body does jobs of kind '{kind}': {hint(kind, self._bodies)}")

    def _check_version(self, row: WorkflowStatus) -> None:
        version = self._database.version
        if version is not None and row.app_version not in (None, version):
            raise RunError(
                f"run '{row.workflow_id}' is of the engine's version {row.app_version}, this is {version}: "
                "it goes on where a harnpy with that version works"
            )


class DbosHandle:
    """A run of the engine, which may be at work in any process; with ``stay``, in this one."""

    def __init__(self, engine: DbosEngine, id: str, stay: Stay | None = None) -> None:
        self.id = id
        self._engine = engine
        self._stay = stay
        #: When it was noticed that this process has lost the run, by the monotonic clock.
        self._lost_since: float | None = None

    def status(self) -> str:
        return status_of(self._engine._database.known(self.id))

    def result(self, timeout: float | None = None) -> Json:
        database = self._engine._database
        ends = None if timeout is None else time.monotonic() + timeout
        pause = 0.01
        while True:
            row = database.known(self.id, load_output=True)
            status = status_of(row)
            if status == COMPLETED:
                return row.output
            if status == CANCELLED:
                raise RunCancelled(self.id, why_cancelled(row))
            if status in ENDED:
                raise RunFailed(self.id, info_of(row).error or "")
            self._check_stay()
            left = pause if ends is None else min(pause, ends - time.monotonic())
            if left <= 0:
                raise TimeoutError(f"run '{self.id}' has not ended within {timeout:g} s")
            PROCESS.rest(self.id, left)
            pause = min(pause * 1.5, database.poll)

    def events(self) -> Iterator[StepInfo]:
        seen = 0
        while True:
            is_over = self.status() in ENDED
            for step in self._engine.steps(self.id)[seen:]:
                seen += 1
                yield step
            if is_over:
                return
            self._check_stay()
            PROCESS.rest(self.id, self._engine._database.poll)

    def _check_stay(self) -> None:
        """Raise why this process doesn't do the run any more, or `LeaseLost` when it has lost it a look ago:
        who has it now may be about to end it, and where nobody has it nobody would."""
        ended = None if self._stay is None else self._stay.ended
        if ended is None:
            return
        if self._lost_since is None:
            self._lost_since = time.monotonic()
        if not isinstance(ended, LeaseLost) or time.monotonic() - self._lost_since >= GLANCE:
            raise ended


def _schedule(found: Any) -> Schedule:
    name, cron, timezone = found["schedule_name"], found["schedule"], found["cron_timezone"] or "UTC"
    queue = None if found["queue_name"] == ANY else found["queue_name"]
    following = next_time(name, cron, timezone, time.time())
    return Schedule(name, cron, convert(found["context"], Job), queue, timezone, following)


def _position(run: str, keys: Sequence[str], step: int | str) -> int:
    """Return how many steps come before ``step``, a number from 1 on or a key."""
    if isinstance(step, str):
        if step in keys:
            return keys.index(step)
        known = hint(step, dict.fromkeys(keys)) if keys else "it has none yet"
        raise RunError(f"run '{run}' has no step '{step}': {known}")
    if type(step) is not int or not 1 <= step <= len(keys) + 1:
        raise RunError(f"run '{run}' has {len(keys)} steps: it can't be forked at step {step!r}")
    return step - 1
