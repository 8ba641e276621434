"""The contract of workflow engines: jobs, runs, steps, and what the body of a run is given. Spec: 10 §C19.

A *job* is what is to be done, as JSON. A *run* is its durable execution: an *engine* starts it, keeps each
*step* as it ends, and gives the records back to whoever runs the job again after a crash. A *body* is the
function that does jobs of one kind; it knows nothing of the engine but its `RunContext`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from threading import Event

#: What JSON can hold: None, bool, int, float, str, and lists and dicts of these.
Json = Any

GRAPH: Final = "graph"
PROGRAM: Final = "program"

DELAYED: Final = "delayed"
QUEUED: Final = "queued"
RUNNING: Final = "running"
WAITING: Final = "waiting"
COMPLETED: Final = "completed"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
DEAD: Final = "dead"
STATUSES: Final = (DELAYED, QUEUED, RUNNING, WAITING, COMPLETED, FAILED, CANCELLED, DEAD)
#: The statuses of runs that won't go on by themselves.
ENDED: Final = frozenset({COMPLETED, FAILED, CANCELLED, DEAD})

#: How often a run may lose its worker before it is `DEAD`.
MOST_ATTEMPTS: Final = 20


class Job(Struct, frozen=True):
    """What a run does. It is stored once, with the run.

    ``kind`` says which body does it; ``name`` is for people. ``body`` of a graph: {graph, task, artifacts,
    options}, as `workflow_execute` takes them; of a program: {entry, files: {path: text}, args, pipeline}.
    ``store`` is the sessions' store, as a URL whose secrets stay names of environment variables.
    """

    kind: str
    name: str
    body: dict[str, Json]
    store: str = ""


class Step(NamedTuple):
    """A recorded step: ``key`` names it within its run, ``output`` is what it came to."""

    key: str
    output: Json


class RunContext(Protocol):
    """What the body of a run is given. Only the thread that runs the body may call it, but for `on_end`.

    One that also has `on_leave(call)` calls that, once and from another thread, when its worker stops: then
    `check` gives the run back, so the body asks it as soon as nothing is under way that would be lost. One
    that has `leave(why)` leaves the run to other workers: a body that may not do it here then raises ``why``.
    """

    run_id: str
    #: 1 for the first process that works on the run.
    attempt: int
    #: The steps that earlier attempts have recorded, in their order.
    recorded: Sequence[Step]

    def step(self, key: str, work: Callable[[], Json]) -> Json:
        """Return the recorded output of the next step, or run ``work`` and record what it returns.

        What ``work`` raises goes to the caller, and nothing is recorded: who runs the job again runs it
        again. Raises `ReplayDiverged` when the record's next step has another key, `RunCancelled`, and
        `LeaseLost` when another worker has the run now.
        """

    def record(self, *steps: Step) -> None:
        """Record steps that have already happened, all in one append or none.

        While there are recorded steps that weren't asked for yet, these must be the next of them.
        """

    def wait(self, waitpoints: Sequence[str], *, key: str, timeout: float | None = None) -> Json:
        """Return what the waitpoints were completed with: `Waitpoints.wait`'s result, recorded as a step.

        The run is `WAITING` meanwhile. The deadline is that of the first attempt (10 §C18).
        """

    def check(self) -> None:
        """Raise `RunCancelled` when the run was cancelled, `LeaseLost` when another worker has it."""

    def on_end(self, call: Callable[[], None]) -> None:
        """Have ``call`` called, once and from another thread, when `check` would raise from now on."""


#: Does a job, and returns what its run comes to. One that also has `check(job, run_id, steps)` is asked by
#: `Engine.resume` before another job takes the place of a run's: it raises what keeps the run from going on.
Body: TypeAlias = "Callable[[Job, RunContext], Json]"


class RunInfo(NamedTuple):
    """The facts about a run. Times are in seconds since 1970; ``queue`` is None for one that runs at once."""

    id: str
    kind: str
    name: str
    status: str
    engine: str
    queue: str | None = None
    #: Who works on the run, or did last.
    worker: str | None = None
    attempt: int = 0
    priority: int = 0
    created: float = 0.0
    started: float | None = None
    updated: float = 0.0
    finished: float | None = None
    #: Not before.
    due: float | None = None
    forked_from: str | None = None
    attributes: Mapping[str, str] = {}
    error: str | None = None


class StepInfo(NamedTuple):
    """A step of a run; ``n`` counts from 1, ``time`` is when it was recorded, in seconds since 1970."""

    n: int
    key: str
    output: Json
    time: float


class RunQuery(NamedTuple):
    """A query for runs, the newest first. ``statuses`` None: all."""

    statuses: frozenset[str] | None = None
    queue: str | None = None
    kind: str | None = None
    #: Runs whose ids begin with this.
    prefix: str = ""
    attributes: Mapping[str, str] = {}
    limit: int = 100


class Schedule(NamedTuple):
    """Starts ``job`` at each time of ``cron``, five fields, in ``timezone``.

    ``next`` is in seconds since 1970.
    """

    name: str
    cron: str
    job: Job
    queue: str | None
    timezone: str
    next: float | None


class RunHandle(Protocol):
    """A run that was started or resumed."""

    id: str

    def status(self) -> str: ...

    def result(self, timeout: float | None = None) -> Json:
        """Wait for the end, at most ``timeout`` seconds, and return what the run came to.

        Raises `RunFailed`, `RunCancelled`, `TimeoutError`.
        """

    def events(self) -> Iterator[StepInfo]:
        """Yield the steps as they are recorded, until the run ends."""


class Engine(Protocol):
    """Starts, queues, resumes, cancels, forks and lists runs. Any thread may call. Raises `RunError`s."""

    name: str
    #: ``many_machines``, ``rate_limits``, ``schedules``.
    features: frozenset[str]
    #: Called once with each run, queue or schedule that is left out since what is stored of it can't be read:
    #: its name, and why.
    on_unreadable: Callable[[str, str], object] | None

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
        """Start a run: at once and in this process, or where a worker of ``queue`` takes it.

        An ``id`` that exists is that run; raises `RunExists` when it is of another job. Of the runs in a
        queue the smaller ``priority`` goes first, then the older. ``delay`` and ``timeout`` are in seconds;
        a run that takes longer than ``timeout`` is cancelled.
        """

    def get(self, id: str) -> RunInfo | None: ...

    def job(self, id: str) -> Job:
        """Return what a run does. Raises `RunNotFound`."""

    def runs(self, query: RunQuery = RunQuery()) -> list[RunInfo]: ...  # noqa: B008 - immutable

    def steps(self, id: str) -> list[StepInfo]:
        """Return the steps that were recorded. Raises `RunNotFound`."""

    def resume(self, id: str, *, job: Job | None = None) -> RunHandle:
        """Have a run that failed, was cancelled, is dead or lost its worker go on at its first unrecorded
        step, in this process; with ``job``, as that one from now on.

        A completed one is its result. Raises `LeaseHeld` while a worker runs it.
        """

    def cancel(self, id: str, *, reason: str = "") -> bool:
        """Cancel a run; a stage that runs is reached within a second. Return False for one that has ended."""

    def delete(self, id: str) -> None:
        """Delete a run that has ended; the sessions that it used stay. Raises `RunNotFound`, and `RunError`
        for one that hasn't ended."""

    def fork(self, id: str, step: int | str, *, new_id: str | None = None) -> RunHandle:
        """Start a new run that has the records before ``step``, a number or a key, and goes on from there."""

    def queue(
        self,
        name: str,
        *,
        concurrency: int | None = None,
        worker_concurrency: int | None = None,
        rate: tuple[int, float] | None = None,
    ) -> None:
        """Make a queue, or change its limits: how many runs at once, in all and on one worker; ``rate``:
        starts, in so many seconds."""

    def schedule(
        self, name: str, cron: str, job: Job, *, queue: str | None = None, timezone: str = "UTC"
    ) -> None: ...

    def unschedule(self, name: str) -> bool: ...

    def schedules(self) -> list[Schedule]: ...

    def work(
        self, *, queues: Sequence[str] | None = None, concurrency: int = 4, stop: Event | None = None
    ) -> None:
        """Run what is queued (in ``queues``; None: all) until ``stop`` is set.

        Then let running steps end, 30 seconds at most, and give the rest back. Takes up runs whose worker
        is gone, and starts what is scheduled.
        """

    def close(self) -> None: ...
