"""`LocalEngine`: durable runs in processes of one machine, in any store. Spec: 10 §C19.2.

Whoever works on a run holds the lease ``run:<id>``, and each append to the run's stream is made under it: who
has lost it writes nothing any more. A run whose lease is free and that hasn't ended is taken up by a worker,
by `resume`, and by `start` under the same id.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from contextvars import copy_context
from itertools import islice
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from harnpy.formats.suggestions import hint, nearest
from harnpy.storage.contract import PAGE, HeadQuery
from harnpy.storage.errors import (
    CorruptLog,
    LeaseHeld,
    LeaseLost,
    NoStore,
    StorageError,
    StoreBusy,
    StreamExists,
    VersionConflict,
)
from harnpy.storage.leases import Machine
from harnpy.storage.opening import open_store
from harnpy.workflow.engines.attempt import Attempt
from harnpy.workflow.engines.contract import (
    CANCELLED,
    COMPLETED,
    DEAD,
    DELAYED,
    ENDED,
    MOST_ATTEMPTS,
    QUEUED,
    RUNNING,
    WAITING,
    RunQuery,
    Step,
)
from harnpy.workflow.engines.errors import RunCancelled, RunError, RunExists, RunFailed, RunNotFound, unended
from harnpy.workflow.engines.queues import MANY, Queues, Room, Schedules, check_name, open_runs
from harnpy.workflow.engines.run_log import (
    CANCEL,
    CLAIMED,
    CREATED,
    FINISHED,
    KIND,
    RunFacts,
    RunHead,
    RunLog,
    as_stored,
    job_data,
    read_head,
    run_heads,
)
from harnpy.world.clock import RealClock, rfc3339
from harnpy.world.ids import RealIds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from harnpy.storage.contract import Head, Store
    from harnpy.storage.leases import Lease
    from harnpy.workflow.engines.contract import Body, Job, Json, RunInfo, Schedule, StepInfo
    from harnpy.workflow.engines.queues import OpenRuns
    from harnpy.workflow.engines.run_log import Draft

#: Seconds that the lease of a run lasts unless it is renewed.
TTL: Final = 30.0
#: Seconds that running steps may take when a worker stops.
GRACE: Final = 30.0
#: Seconds between two looks: at the runs that this engine works on, and of who waits for one elsewhere.
_LOOK, GLANCE = 0.2, 1.0
#: Seconds between two looks of a worker for what is queued, at least; else so many times what a look takes.
_PAUSE, _SHARE = 0.1, 5.0
#: Seconds that runs have to notice that the engine is closed, and that the lease of one that has ended may
#: take to be let go.
_CLOSING, _LETTING_GO = 1.0, 0.5


class LocalEngine:
    """The engine ``local`` on a store, given as its URL or opened. ``bodies`` do the jobs, by their kind.

    ``now`` is epoch seconds, None for the real time. ``ttl`` and ``grace`` are in seconds: how long a run
    waits for a worker that stands still, and running steps for one that stops. ``machine`` is for tests.
    """

    name: Final = "local"
    features: Final = frozenset({"rate_limits", "schedules"})

    def __init__(
        self,
        store: str | Store,
        bodies: Mapping[str, Body],
        *,
        now: Callable[[], float] | None = None,
        ttl: float = TTL,
        grace: float = GRACE,
        machine: Machine | None = None,
    ) -> None:
        self._owns_store = isinstance(store, str)
        self.store: Store = open_store(store) if isinstance(store, str) else store
        self._bodies = bodies
        self.now = RealClock().now if now is None else now
        self._ids = RealIds()
        self._ttl = ttl
        self._grace = grace
        self._machine = Machine() if machine is None else machine
        self._queues = Queues(self.store, self.now, self._machine.host, self.skip)
        self._schedules = Schedules(self.store, self.now)
        self.on_unreadable: Callable[[str, str], object] | None = None
        #: What was said to be unreadable already.
        self._skipped: set[str] = set()
        self._closed = Event()
        self._taker = _Worker(self, (), MANY)
        #: What this engine works on, by the ids of the runs.
        self._attempts: dict[str, Attempt] = {}
        self._lock = Lock()
        self._watch: Thread | None = None
        #: Wakes the thread that looks at the runs, and workers.
        self._look, self._news = Event(), Event()

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
    ) -> LocalHandle:
        self._check_open()
        self._check_kind(job.kind)
        check_options(priority, delay, timeout, attributes)
        if id is not None:
            check_name("run", id)
        if queue is not None:
            self._queues.require(queue)
        id = f"run_{self._ids.new()}" if id is None else id
        due = self.now() + delay if delay else None
        head = RunHead(
            DELAYED if due else QUEUED,
            job.kind,
            job.name,
            queue or "",
            priority,
            due=due,
            timeout=timeout,
            attributes=dict(attributes or {}),
        )
        created: Draft = (CREATED, {"job": job_data(job), "queue": queue})
        try:
            if queue is None and due is None:
                return LocalHandle(self, id, self._start_here(id, job, created, head))
            RunLog(self.store, id, self.now).append(created, head=head)
        except (LeaseHeld, VersionConflict):
            return self._existing(id, job, here=queue is None)
        self._news.set()
        if queue is None and due is not None:
            Thread(target=self._start_later, args=(id, due), name=f"run {id}", daemon=True).start()
        return LocalHandle(self, id)

    def _start_here(self, id: str, job: Job, created: Draft, head: RunHead) -> Attempt:
        """Make the run and claim it, in one append."""
        lease = self._lease(id)
        with _released_on_failure(lease):
            log = RunLog(self.store, id, self.now)
            head, claim = self._claimed(head)
            log.append(created, claim, head=head, fence=lease)
            return self._begin(log, RunFacts(job), head, lease)

    def _start_later(self, id: str, due: float) -> None:
        while (left := due - self.now()) > 0:
            if self._closed.wait(min(left, GLANCE)):
                return
        with suppress(StorageError, RunError):  # somebody else has it, or takes it up later
            self._take(id)

    def _existing(self, id: str, job: Job, *, here: bool) -> LocalHandle:
        """Return the run of that id, which goes on here if it should and nobody works on it."""
        self.store.changes(KIND, id, 0, GLANCE)  # it may be being made
        facts = self._known(id).load()
        if as_stored(job) not in (facts.first_job, facts.job):
            raise RunExists(id)
        attempt = None
        if here and not self._head(id).agent:
            with suppress(LeaseHeld):
                attempt = self._take(id)
        return LocalHandle(self, id, attempt)

    # Taking a run: its lease, then a claim in its stream, then a thread for its body.

    def _lease(self, id: str, wait: float = 0.0) -> Lease:
        return self.store.lease(f"{KIND}:{id}", ttl=self._ttl, wait=wait)

    def _take(
        self, id: str, *, fence: Lease | None = None, explicit: bool = False, job: Job | None = None
    ) -> Attempt | None:
        """Work on the run from here on; None for one that isn't to go on. Raises `LeaseHeld`.

        ``fence`` is the lease of the queue that it is taken from. ``explicit``: somebody has asked for this
        very run, so one that has ended, but for a completed one, goes on, too.
        """
        # Who has written the end of a run is about to let it go.
        wait = _LETTING_GO if explicit and self._head(id).status in ENDED else 0.0
        lease = self._lease(id, wait)
        with _released_on_failure(lease):
            while True:
                log = RunLog(self.store, id, self.now)
                facts = log.load()
                head = self._head(id)
                before = self._before(head, facts, explicit)
                if before is None:
                    lease.release()
                    return None
                drafts, head = before
                if head.status not in ENDED:
                    self._check_kind(head.kind if job is None else job.kind)
                    head, claim = self._claimed(head, job)
                    drafts = [*drafts, claim]
                try:
                    log.append(*drafts, head=head, fence=fence or lease)
                except VersionConflict:
                    continue  # somebody has asked to cancel it just now
                if head.status in ENDED:
                    lease.release()
                    return None
                facts.job = job or facts.job
                return self._begin(log, facts, head, lease)

    def _before(self, head: RunHead, facts: RunFacts, explicit: bool) -> tuple[list[Draft], RunHead] | None:
        """Return what is written before the run goes on, and its head then, or its end. None: nothing."""
        drafts: list[Draft] = []
        if facts.cancel is not None and head.status not in ENDED:
            draft, head = self._ended(head, CANCELLED, facts.cancel or None)
            drafts.append(draft)
        elif head.status in (RUNNING, WAITING):
            head = replace(head, lost=head.lost + 1)
            if head.lost >= MOST_ATTEMPTS and not explicit:
                draft, head = self._ended(head, DEAD, f"its worker was lost {head.lost} times")
                return [draft], head
        elif head.status == COMPLETED or (not explicit and not head.may_start(self.now())):
            return None
        if head.status in ENDED and explicit:
            head = replace(head, status=QUEUED, lost=0, deadline=None, finished=None, error=None)
        return drafts, head

    def _claimed(self, head: RunHead, job: Job | None = None) -> tuple[RunHead, Draft]:
        """Return the head of a run that this process works on, and the record that says so."""
        now = self.now()
        deadline = head.deadline
        if deadline is None and head.timeout is not None:
            deadline = now + head.timeout
        head = replace(
            head,
            status=RUNNING,
            worker=self._machine.owner(),
            attempt=head.attempt + 1,
            started=head.started or now,
            deadline=deadline,
        )
        claim: dict[str, Any] = {"worker": head.worker, "attempt": head.attempt}
        if job is not None:
            head = replace(head, kind=job.kind, name=job.name)
            claim["job"] = job_data(job)
        return head, (CLAIMED, claim)

    def _ended(self, head: RunHead, status: str, error: str | None) -> tuple[Draft, RunHead]:
        head = replace(head, status=status, error=error, finished=self.now())
        return (FINISHED, {"status": status, "error": error}), head

    def _begin(self, log: RunLog, facts: RunFacts, head: RunHead, lease: Lease) -> Attempt:
        attempt = Attempt(self.store, log, facts, head, lease, self.now)
        with self._lock:
            self._check_open()
            self._attempts[log.id] = attempt
            if self._watch is None:
                self._watch = Thread(target=self._watch_all, name="runs", daemon=True)
                self._watch.start()
        self._look.set()
        work = copy_context().run
        Thread(target=work, args=(self._run, attempt), name=f"run {log.id}", daemon=True).start()
        return attempt

    def _run(self, attempt: Attempt) -> None:
        try:
            try:
                output = self._bodies[attempt.head.kind](attempt.job, attempt)
            except BaseException as error:
                attempt.finish(failure=error)
            else:
                attempt.finish(output)
        except StorageError:
            pass  # `Attempt.unrecorded` says so to whoever waits; the run is taken up again
        except RunError as error:
            attempt.finish(failure=error)  # what it came to is no JSON
        finally:
            with suppress(StorageError):  # it ends by itself
                attempt.lease.release()
            with self._lock:
                if self._attempts.get(attempt.run_id) is attempt:
                    del self._attempts[attempt.run_id]
            attempt.done.set()
            self._news.set()

    # Watching the runs that this engine works on.

    def _watch_all(self) -> None:
        """Renew their leases; have those stop that were cancelled, take too long, or are another's now."""
        while not self._closed.is_set():
            attempts = self._working()
            for attempt in attempts:
                # A store that fails now is asked again in a moment; if it stays so, the next append says it.
                with suppress(StorageError, RunError):
                    if attempt.is_late:
                        reason = f"it took longer than {attempt.head.timeout:g} s"
                        self.cancel(attempt.run_id, reason=reason)
                    attempt.look()
                attempt.tell()
            self._look.wait(min(_LOOK, self._ttl / 6) if attempts else None)
            self._look.clear()

    def _working(self) -> list[Attempt]:
        with self._lock:
            return [*self._attempts.values()]

    # What there is.

    def get(self, id: str) -> RunInfo | None:
        self._check_open()
        head = self.store.head(KIND, id)
        return None if head is None else self.info(head)

    def job(self, id: str) -> Job:
        job = self._known(id).load().job
        assert job is not None
        return job

    def runs(self, query: RunQuery = RunQuery()) -> list[RunInfo]:  # noqa: B008 - immutable
        self._check_open()
        statuses = query.statuses
        if statuses is not None and QUEUED in statuses:
            statuses |= {DELAYED}  # until somebody looks, that is what stands there
        # Each page looks at all runs that there are.
        page = min(max(query.limit, PAGE), MANY)
        asked = HeadQuery(KIND, statuses, agent=query.queue, order="created", limit=page)
        heads = run_heads(self.store, asked, self.skip)
        infos = (run.info(head, self.name, self.now()) for head, run in heads)
        return [*islice((info for info in infos if _matches(info, query)), query.limit)]

    def skip(self, what: str, reason: str) -> None:
        """Say, once, that what is stored of a run, queue or schedule can't be read: it is left out."""
        if what not in self._skipped:
            self._skipped.add(what)
            if self.on_unreadable is not None:
                self.on_unreadable(what, reason)

    def steps(self, id: str) -> list[StepInfo]:
        return [step for _, step in self._known(id).step_infos()]

    def _known(self, id: str) -> RunLog:
        """Return the stream of a run. Raises `RunNotFound`."""
        self.stored(id)
        return RunLog(self.store, id, self.now)

    def stored(self, id: str) -> Head:
        """Return the head of a run. Raises `RunNotFound`."""
        self._check_open()
        head = self.store.head(KIND, id)
        if head is None:
            raise RunNotFound(id)
        return head

    def _head(self, id: str) -> RunHead:
        return read_head(self.stored(id))

    def info(self, head: Head) -> RunInfo:
        return read_head(head).info(head, self.name, self.now())

    # Changing a run.

    def resume(self, id: str, *, job: Job | None = None) -> LocalHandle:
        self._known(id)
        if job is not None:
            self._check_kind(job.kind)
            check_successor(self._bodies[job.kind], job, id, self.steps(id))
        return LocalHandle(self, id, self._take(id, explicit=True, job=job))

    def cancel(self, id: str, *, reason: str = "") -> bool:
        self._check_open()
        while True:
            log = self._known(id)
            try:
                lease = self._lease(id)
            except LeaseHeld:
                lease = None
            try:
                log.load()
                head = self._head(id)
                if head.status in ENDED:
                    return False
                drafts: list[Draft] = [(CANCEL, {"reason": reason})]
                if lease is None:  # who has it is asked to end it
                    log.append(*drafts)
                else:
                    finished, head = self._ended(head, CANCELLED, reason or None)
                    log.append(*drafts, finished, head=head, fence=lease)
            except VersionConflict:
                continue
            finally:
                if lease is not None:
                    lease.release()
            self._look.set()
            return True

    def delete(self, id: str) -> None:
        self.stored(id)
        try:
            lease = self._lease(id)
        except LeaseHeld:
            raise unended(id) from None
        with lease:
            if self._head(id).status not in ENDED:
                raise unended(id)
            self.store.delete(KIND, id)

    def fork(self, id: str, step: int | str, *, new_id: str | None = None) -> LocalHandle:
        log = self._known(id)
        if new_id is not None:
            check_name("run", new_id)
        facts, head = log.load(), self._head(id)
        assert facts.job is not None
        self._check_kind(facts.job.kind)
        shared = self._before_step(log, step)
        new_id = f"run_{self._ids.new()}" if new_id is None else new_id
        forked = {"run": id, "seq": shared}
        created: Draft = (CREATED, {"job": job_data(facts.job), "queue": None, "forked": forked})
        new = RunHead(
            QUEUED,
            head.kind,
            head.name,
            priority=head.priority,
            timeout=head.timeout,
            attributes=head.attributes,
            forked_from=id,
        )
        try:
            log.branch(new_id, created, new, shared)
        except StreamExists:
            raise RunExists(new_id) from None
        attempt = None
        with suppress(LeaseHeld):  # a worker was quicker
            attempt = self._take(new_id)
        return LocalHandle(self, new_id, attempt)

    def _before_step(self, log: RunLog, step: int | str) -> int:
        """Return the number of the record before which a fork at that step leaves its source."""
        steps = [*log.step_infos()]
        if isinstance(step, str):
            at = next((n for n, (_, info) in enumerate(steps, 1) if info.key == step), None)
            if at is None:
                near = nearest(step, (info.key for _, info in steps), limit=3)
                shown = f"`harnpy runs steps {log.id}` shows those that it has"
                known = f"did you mean `{near}`?" if near else shown
                raise RunError(f"run '{log.id}' has no step '{step}': {known}")
            step = at
        if type(step) is not int or not 1 <= step <= len(steps) + 1:
            raise RunError(f"run '{log.id}' has {len(steps)} steps: it can't be forked at step {step!r}")
        return 1 if step == 1 else steps[step - 2][0]

    # Queues, schedules, workers.

    def queue(
        self,
        name: str,
        *,
        concurrency: int | None = None,
        worker_concurrency: int | None = None,
        rate: tuple[int, float] | None = None,
    ) -> None:
        self._check_open()
        limits = {"concurrency": concurrency, "worker_concurrency": worker_concurrency, "rate": rate}
        self._queues.set(name, **limits)
        self._news.set()

    def schedule(
        self, name: str, cron: str, job: Job, *, queue: str | None = None, timezone: str = "UTC"
    ) -> None:
        self._check_open()
        self._check_kind(job.kind)
        if queue is not None:
            self._queues.require(queue)
        self._schedules.set(name, cron, job, queue, timezone)
        self._news.set()

    def unschedule(self, name: str) -> bool:
        self._check_open()
        return self._schedules.remove(name)

    def schedules(self) -> list[Schedule]:
        self._check_open()
        return self._schedules.all()

    def work(
        self, *, queues: Sequence[str] | None = None, concurrency: int = 4, stop: Event | None = None
    ) -> None:
        self._check_open()
        if type(concurrency) is not int or concurrency < 1:
            raise RunError(f"`concurrency` must be an int >= 1, got {concurrency!r}")
        for name in queues or ():
            check_name("queue", name)
        worker = _Worker(self, queues, concurrency)
        try:
            while not self._closed.is_set() and not (stop is not None and stop.is_set()):
                began = monotonic()
                with suppress(StoreBusy, LeaseHeld, LeaseLost):  # the next look comes soon
                    worker.look()
                # Where there are very many runs, looking at them mustn't be all that it does.
                self._rest(max(_PAUSE, _SHARE * (monotonic() - began)), stop)
        finally:
            self._give_back(worker.attempts, self._grace)

    def take_up(self, is_ours: Callable[[RunHead], bool]) -> None:
        """Work on the runs in no queue that nobody works on any more, as `work` does: on those that
        ``is_ours``."""
        self._check_open()
        heads = open_runs(self.store, self.skip, "")
        self._taker._take_up((), [(head, run) for head, run in heads if is_ours(run)])

    @property
    def at_work(self) -> list[str]:
        """The ids of the runs that this engine works on."""
        return [attempt.run_id for attempt in self._working() if attempt.lost is None]

    def give_back(self) -> int:
        """Leave the runs that this engine works on to others, who go on behind the last recorded step.
        Return how many those are."""
        left = [attempt for attempt in self._working() if attempt.lost is None]
        self._give_back(left, 0.0)
        return sum(attempt.lost is not None for attempt in left)

    def _rest(self, seconds: float, stop: Event | None) -> None:
        """Wait for so many seconds, for news or until the worker is to stop."""
        ends = monotonic() + seconds
        while not self._news.wait(max(0.0, min(ends - monotonic(), _LOOK))):
            if monotonic() >= ends or (stop is not None and stop.is_set()):
                break
        self._news.clear()

    def _give_back(self, attempts: Sequence[Attempt], grace: float) -> None:
        """Let the steps that are running end, ``grace`` seconds at most, and others have the runs."""
        for attempt in attempts:
            attempt.leaving = True
        ends = monotonic() + grace
        for attempt in attempts:
            attempt.done.wait(max(ends - monotonic(), 0.0))
        for attempt in attempts:
            with suppress(StorageError):  # then they are found without a worker
                attempt.give_back()
            attempt.tell()

    def close(self) -> None:
        """Give back what this engine works on, and let go of the store if the engine has opened it."""
        with self._lock:
            if self._closed.is_set():
                return
            self._closed.set()
        self._look.set()
        self._news.set()
        attempts = self._working()
        self._give_back(attempts, 0.0)
        ends = monotonic() + _CLOSING
        for attempt in attempts:
            attempt.done.wait(max(ends - monotonic(), 0.0))
        if self._owns_store:
            self.store.close()

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise RunError("the engine is closed: open another one")

    def _check_kind(self, kind: str) -> None:
        if kind not in self._bodies:
            raise RunError(f"no body does jobs of kind '{kind}': {hint(kind, self._bodies)}")


class _Worker:
    """What one call of `LocalEngine.work` works on, and where it looks for more."""

    def __init__(self, engine: LocalEngine, queues: Sequence[str] | None, concurrency: int) -> None:
        self._engine = engine
        self._named = queues
        self._concurrency = concurrency
        self._mine: list[Attempt] = []
        #: When to try next, by the monotonic clock, whether somebody still works on a run.
        self._tries: dict[str, float] = {}

    @property
    def attempts(self) -> list[Attempt]:
        """Those that go on."""
        self._mine = [attempt for attempt in self._mine if not attempt.done.is_set()]
        return self._mine

    @property
    def _room(self) -> int:
        return self._concurrency - len(self.attempts)

    def look(self) -> None:
        """Start what is due, and take up what there is, as far as there is room.

        Raises `RunError` for a queue that another machine serves.
        """
        engine = self._engine
        queues = engine._queues.names() if self._named is None else self._named
        for name in queues:
            with self._skipping(f"queue {name}"):
                engine._queues.serve(name)
        engine._schedules.fire(queues, self._start, engine.skip)
        heads = open_runs(engine.store, engine.skip)
        self._take_up(queues, heads)
        for name in queues:
            running = sum(attempt.head.agent == name for attempt in self.attempts)
            room = Room(self._room, running, engine._bodies.keys())
            with suppress(LeaseHeld, LeaseLost), self._skipping(f"queue {name}"):  # others choose
                engine._queues.take(name, heads, room, self._take_queued)

    @contextmanager
    def _skipping(self, what: str) -> Iterator[None]:
        """Leave out what can't be read: the rest goes on."""
        try:
            yield
        except CorruptLog as error:
            self._engine.skip(what, error.reason)

    def _start(self, schedule: Schedule, due: float) -> None:
        name = f"{schedule.name}@{rfc3339(due).replace('.000Z', 'Z')}"
        with suppress(RunExists):  # it has started with the job that the schedule had then
            self._add(self._engine.start(schedule.job, id=name, queue=schedule.queue).attempt)

    def _take_queued(self, id: str, fence: Lease) -> None:
        self._take(id, fence)

    def _take_up(self, queues: Sequence[str], heads: OpenRuns) -> None:
        """Take up runs whose worker is gone, and those that are in no queue."""
        for head, run in heads:
            if self._room <= 0:
                return
            is_queued = run.agent != "" and run.status in (QUEUED, DELAYED)
            is_ours = run.agent in ("", *queues) and run.kind in self._engine._bodies
            if is_ours and not is_queued and self._is_free(head.name, run):
                self._take(head.name)
        known = {head.name for head, _ in heads}
        self._tries = {id: time for id, time in self._tries.items() if id in known}

    def _is_free(self, id: str, run: RunHead) -> bool:
        """Return whether the run's lease may be free: asking for it costs a write."""
        engine = self._engine
        if run.status in (QUEUED, DELAYED):
            return run.may_start(engine.now())
        if id in engine._attempts:
            return False
        if run.worker is not None and engine._machine.is_gone(run.worker):
            return True
        now = monotonic()
        if self._tries.get(id, 0.0) > now:
            return False
        self._tries[id] = now + engine._ttl / 2
        return True

    def _take(self, id: str, fence: Lease | None = None) -> None:
        with suppress(LeaseHeld), self._skipping(id):  # another worker was quicker
            self._add(self._engine._take(id, fence=fence))

    def _add(self, attempt: Attempt | None) -> None:
        if attempt is not None:
            self._mine.append(attempt)


class LocalHandle:
    """A run of the engine, which may be at work in any process. ``attempt`` is the work of this one."""

    def __init__(self, engine: LocalEngine, id: str, attempt: Attempt | None = None) -> None:
        self.id = id
        self.attempt = attempt
        self._engine = engine
        #: When it was noticed that this process has lost the run, by the monotonic clock.
        self._lost_since: float | None = None

    def status(self) -> str:
        return self._engine.info(self._engine.stored(self.id)).status

    def result(self, timeout: float | None = None) -> Json:
        ends = None if timeout is None else monotonic() + timeout
        while True:
            if self.attempt is not None and isinstance(self.attempt.unrecorded, NoStore):
                raise self.attempt.unrecorded
            head = self._engine.stored(self.id)
            if read_head(head).status in ENDED:
                return self._outcome()
            left = GLANCE if ends is None else min(ends - monotonic(), GLANCE)
            if left <= 0:
                raise TimeoutError(f"run '{self.id}' has not ended within {timeout:g} s")
            attempt = self.attempt
            self._check_lost()
            if attempt is None or attempt.done.is_set() or attempt.lost is not None:
                self._engine.store.changes(KIND, self.id, head.version, left)
            else:
                attempt.done.wait(left)
            if attempt is not None and attempt.unrecorded is not None:
                raise attempt.unrecorded

    def events(self) -> Iterator[StepInfo]:
        log, after = RunLog(self._engine.store, self.id, self._engine.now), 0
        while True:
            head = self._engine.stored(self.id)
            for seq, step in log.step_infos(after):
                after = seq
                yield step
            if read_head(head).status in ENDED:
                return
            self._check_lost()
            self._engine.store.changes(KIND, self.id, max(head.version, after), GLANCE)

    def _check_lost(self) -> None:
        """Raise `LeaseLost` when this process has lost the run a look ago: who has it now may be about to end
        it, and where nobody has it nobody would."""
        if self.attempt is None or self.attempt.lost is None:
            return
        if self._lost_since is None:
            self._lost_since = monotonic()
        elif monotonic() - self._lost_since >= GLANCE:
            raise self.attempt.lost

    def _outcome(self) -> Json:
        outcome = RunLog(self._engine.store, self.id, self._engine.now).outcome()
        if outcome.status == COMPLETED:
            return outcome.output
        if outcome.status == CANCELLED:
            raise RunCancelled(self.id, outcome.error or "")
        cause = None if self.attempt is None else self.attempt.failure
        raise RunFailed(self.id, outcome.error or "") from cause


@contextmanager
def _released_on_failure(lease: Lease) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(StorageError):  # it ends by itself
            lease.release()
        raise


def _matches(info: RunInfo, query: RunQuery) -> bool:
    return (
        (query.statuses is None or info.status in query.statuses)
        and (query.kind is None or info.kind == query.kind)
        and info.id.startswith(query.prefix)
        and query.attributes.items() <= info.attributes.items()
    )


def check_successor(body: Body, job: Job, id: str, steps: Sequence[StepInfo]) -> None:
    """Raise what the body has against going on with another job than that of the recorded steps."""
    check = getattr(body, "check", None)
    if check is not None:
        check(job, id, [Step(step.key, step.output) for step in steps])


def check_options(
    priority: object, delay: object, timeout: object, attributes: Mapping[str, str] | None
) -> None:
    """Raise `RunError` for what a run can't be started with."""
    if type(priority) is not int:
        raise RunError(f"`priority` must be an int, got {priority!r}")
    for name, value in (("delay", delay), ("timeout", timeout)):
        if value is not None and (not isinstance(value, int | float) or not 0 <= value < float("inf")):
            raise RunError(f"`{name}` must be a number of seconds, got {value!r}")
    for key, text in (attributes or {}).items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise RunError(f"`attributes` must be strings by strings, got {key!r}: {text!r}")
