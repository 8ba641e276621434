"""`RunLog`: a run as a stream of a store, and what its records come to. Spec: 10 §C19.2.

    run_created {job, forked?}      run_claimed {worker, attempt, job?}
    step_recorded {n, key, output}  run_cancel_requested {reason}
    run_finished {status, output | error}

The head has what lists show, its `RunHead`, and changes with the record that changes it. So that one step is
one append, no step changes it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct, field

from harnpy.storage.contract import Apart, Row, all_heads
from harnpy.storage.errors import CorruptLog
from harnpy.workflow.engines.contract import DELAYED, ENDED, QUEUED, Job, RunInfo, Step, StepInfo
from harnpy.workflow.engines.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from harnpy.storage.contract import Head, HeadQuery, Store
    from harnpy.storage.leases import Lease
    from harnpy.workflow.engines.contract import Json

#: What a store calls the streams of runs.
KIND = "run"
CREATED, CLAIMED, STEP = "run_created", "run_claimed", "step_recorded"
CANCEL, FINISHED = "run_cancel_requested", "run_finished"

#: A record that isn't written yet: its type and data.
Draft = tuple[str, dict[str, Any]]

_TEXT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ASCII = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


class RowCodec(Apart):
    """Records that are rows already, so that one in memory shares nothing with whoever wrote it."""

    def encode(self, records: Sequence[Row]) -> list[Row]:
        return [*records]

    def decode(self, rows: Sequence[Row]) -> list[Row]:
        return [*rows]

    def texts(self, rows: Sequence[Row]) -> list[str | None]:
        return [row.data for row in rows]


CODEC = RowCodec()


def is_left(store: Store, info: RunInfo) -> bool:
    """Return whether a run that hasn't ended has nobody who works on it, and waits in no queue."""
    if info.status in ENDED or info.queue is not None or info.status == DELAYED:
        return False
    return store.holder(f"{KIND}:{info.id}") is None


def rows(drafts: Sequence[Draft], version: int, time: int) -> list[Row]:
    """Return the drafts as one append behind record number ``version``. Raises ValueError for no JSON."""
    more = len(drafts)
    return [
        Row(version + n, type, time, json_text(data), more - n)
        for n, (type, data) in enumerate(drafts, start=1)
    ]


def json_text(data: Json) -> str:
    """Return data as JSON. Raises ValueError for what is none."""
    try:
        text = _TEXT.encode(data)
    except (TypeError, RecursionError) as error:
        raise ValueError from error
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:  # half a surrogate pair: as an escape it can be stored
            return _ASCII.encode(data)
    return text


class RunHead(Struct, omit_defaults=True, frozen=True):
    """What the head of a run has. Times are in seconds since 1970; ``agent`` is the queue, by which lists
    filter, "" without one."""

    status: str
    kind: str
    name: str
    agent: str = ""
    priority: int = 0
    #: Who works on it, or did last, and how often somebody has begun to.
    worker: str | None = None
    attempt: int = 0
    #: How many of them were lost.
    lost: int = 0
    started: float | None = None
    finished: float | None = None
    due: float | None = None
    #: Seconds that it may take, and when they will be over.
    timeout: float | None = None
    deadline: float | None = None
    forked_from: str | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    error: str | None = None

    def may_start(self, now: float) -> bool:
        """Return whether it is waiting for somebody to take it, and its time has come."""
        return self.status == QUEUED or (self.status == DELAYED and (self.due or 0.0) <= now)

    def info(self, head: Head, engine: str, now: float) -> RunInfo:
        created = head.created / 1e6
        return RunInfo(
            head.name,
            self.kind,
            self.name,
            QUEUED if self.may_start(now) else self.status,
            engine,
            self.agent or None,
            self.worker,
            self.attempt,
            self.priority,
            created,
            None if self.started is None else max(self.started, created),
            max(head.updated / 1e6, self.finished or 0.0),
            self.finished,
            self.due,
            self.forked_from,
            self.attributes,
            self.error,
        )


def read_head(head: Head) -> RunHead:
    """Return what a head of a run says. Raises `CorruptLog`."""
    try:
        return msgspec.convert(head.data, RunHead)
    except msgspec.ValidationError:
        raise CorruptLog(f"run '{head.name}'", "its head is none of a run") from None


def run_heads(
    store: Store, query: HeadQuery, skip: Callable[[str, str], object]
) -> Iterator[tuple[Head, RunHead]]:
    """Yield the heads of runs that ``query`` asks for; ``skip`` gets the ids of those that can't be read,
    and why."""
    for head in all_heads(store, query, skip):
        try:
            found = read_head(head)
        except CorruptLog as error:
            skip(head.name, error.reason)
        else:
            yield head, found


class Outcome(NamedTuple):
    """How a run ended."""

    status: str
    output: Json
    error: str | None


class RunLog:
    """The stream of a run. ``version`` is that of the last record that this object knows of."""

    def __init__(self, store: Store, id: str, now: Callable[[], float]) -> None:
        self.id = id
        self.version = 0
        self._store = store
        self._stream = store.stream(KIND, id, CODEC)
        self._now = now
        self._steps = 0

    def append(self, *drafts: Draft, head: RunHead | None = None, fence: Lease | None = None) -> None:
        """Append the records, and replace the head. Raises `VersionConflict`, `LeaseLost`, `RunError`."""
        try:
            new = rows(drafts, self.version, round(self._now() * 1e6))
        except ValueError:
            what = ", ".join(f"step '{data['key']}'" if type == STEP else type for type, data in drafts)
            raise RunError(f"run '{self.id}' can only keep JSON, and {what} came to something else") from None
        data = None if head is None else msgspec.to_builtins(head)
        self._stream.append(new, self.version, head=data, fence=fence)
        self.version += len(new)

    def append_steps(self, steps: Sequence[Step], *, head: RunHead | None, fence: Lease) -> None:
        """Append the steps that come next."""
        first = self._steps + 1
        drafts = [
            (STEP, {"n": n, "key": key, "output": output}) for n, (key, output) in enumerate(steps, first)
        ]
        self.append(*drafts, head=head, fence=fence)
        self._steps += len(drafts)

    def read(self, after: int = 0, until: int | None = None, *types: str) -> Iterator[tuple[Row, Any]]:
        """The records behind ``after``, of the ``types`` if any are named, with their data."""
        for row in self._stream.read(after, until, types=frozenset(types) or None):
            yield row, json.loads(row.data)

    def load(self) -> RunFacts:
        """Read all of it."""
        facts, shared = RunFacts(), 0
        for row, data in self.read():
            self.version = row.seq
            if row.type == CREATED:
                facts.first_job = facts.job = read_job(data["job"])
                shared = data.get("forked", {}).get("seq", 0)
            elif row.type == STEP or row.seq > shared:
                facts.fold(row.type, data)
        self._steps = len(facts.steps)
        return facts

    def step_infos(self, after: int = 0) -> Iterator[tuple[int, StepInfo]]:
        """The steps that were recorded behind record number ``after``, each with its number there."""
        for row, data in self.read(after, None, STEP):
            yield row.seq, StepInfo(data["n"], data["key"], data["output"], row.time / 1e6)

    def branch(self, id: str, created: Draft, head: RunHead, until: int) -> None:
        """Make a run that shares the records up to ``until``, but for the first. Raises `StreamExists`."""
        [first] = rows([created], 0, round(self._now() * 1e6))
        self._store.branch(self._stream, id, first, until=until, head=msgspec.to_builtins(head))

    def outcome(self) -> Outcome:
        """Return how the run ended last."""
        row = next(self._stream.read(types=frozenset((FINISHED,)), reverse=True, limit=1))
        data = json.loads(row.data)
        return Outcome(data["status"], data.get("output"), data.get("error"))


class RunFacts:
    """What the records of a run say: its job, its steps, and whether somebody has asked to cancel it.

    A fork shares its past with another run: of that, only the steps are its own.
    """

    def __init__(self, job: Job | None = None) -> None:
        #: The job that it was made for; the one that it does now.
        self.first_job = self.job = job
        self.steps: list[Step] = []
        #: Why it is to be cancelled, None when nobody has asked for it.
        self.cancel: str | None = None

    def fold(self, type: str, data: Mapping[str, Any]) -> None:
        """Take one more record into account."""
        if type == STEP:
            self.steps.append(Step(data["key"], data["output"]))
        elif type == CLAIMED and "job" in data:
            self.job = read_job(data["job"])
        elif type == CANCEL:
            self.cancel = data["reason"]
        elif type == FINISHED:
            self.cancel = None


def read_job(data: Json) -> Job:
    return msgspec.convert(data, Job)


def job_data(job: Job) -> Json:
    return msgspec.to_builtins(job)


def as_stored(job: Job) -> Job:
    """Return the job as it comes back from a store: with lists for tuples, say."""
    return read_job(json.loads(json_text(job_data(job))))
