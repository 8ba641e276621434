"""The runs and waitpoints of a store, as callers may see and change them. Spec: 11 §1.3, 10 §C18, §C19."""

from __future__ import annotations

import os.path
import re
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from harnpy.agent.people import KINDS, QUESTION, Request
from harnpy.client import types as t
from harnpy.eventlog.waitpoints import FAMILY, OPEN, Point, Waitpoints
from harnpy.serve import shown
from harnpy.serve.refusals import Refused
from harnpy.workflow.engines import open_engine
from harnpy.workflow.engines.contract import COMPLETED, STATUSES, RunQuery
from harnpy.workflow.engines.errors import RunNotFound
from harnpy.workflow.engines.local import LocalEngine
from harnpy.workflow.engines.run_log import RunLog, is_left
from harnpy.world.files import plain_reason

if TYPE_CHECKING:
    from harnpy.eventlog.contract import EventLog
    from harnpy.serve.prompted import Prompted
    from harnpy.storage.contract import Store
    from harnpy.workflow.engines.contract import Engine, Job, RunInfo

#: The attribute of a run that names its owner.
OWNER: Final = shown.OWNER
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: How many runs are looked at for one list.
_MANY: Final = 10_000


class Runs:
    """The runs of a store. ``engine`` is opened by the first use when none is given. All calls may wait.

    ``owner`` is whose runs are meant, None everybody's: somebody else's isn't found.
    """

    def __init__(self, store: Store, log: EventLog, engine: Engine | None) -> None:
        self._store = store
        self._waitpoints = Waitpoints(log)
        self._given = engine
        self._opened: Engine | None = None
        self._lock = Lock()
        #: Waitpoints by their topics.
        self._known: dict[str, Point] = {}

    @property
    def engine(self) -> Engine:
        if self._given is not None:
            return self._given
        with self._lock:
            if self._opened is None:
                self._opened = open_engine("local", self._store)
            return self._opened

    def close(self) -> None:
        """Give back the runs of the engine that was opened."""
        if self._opened is not None:
            self._opened.close()

    # Whose server is gone, and which this one leaves to others.

    def take_up(self, prompted: Prompted) -> None:
        """Work on the runs of these agents' programs that nobody works on any more."""
        files = filter(None, map(prompted.file, prompted.names))
        names = {os.path.basename(file) for file in files}
        engine: object = self.engine if names else None
        if isinstance(engine, LocalEngine):
            engine.take_up(lambda run: OWNER in run.attributes and run.name in names)

    @property
    def at_work(self) -> list[str]:
        """Return the runs that are worked on here."""
        engine: object = self._given or self._opened
        return engine.at_work if isinstance(engine, LocalEngine) else []

    def give_back(self) -> int:
        """Leave the runs that are worked on here to others. Return how many those are."""
        engine: object = self._given or self._opened
        return engine.give_back() if isinstance(engine, LocalEngine) else 0

    def _is_left(self, info: RunInfo) -> bool:
        return is_left(self._store, info)

    def listed(self, owner: str | None, status: str | None, limit: int, after: str | None) -> t.RunList:
        if status is not None and status not in STATUSES:
            raise Refused(422, "invalid", f"`status` must be one of {', '.join(STATUSES)}")
        query = RunQuery(
            None if status is None else frozenset({status}),
            attributes={} if owner is None else {OWNER: owner},
            limit=_MANY if after is not None else limit + 1,
        )
        found = self.engine.runs(query)
        if after is not None:
            at = next((n for n, run in enumerate(found, 1) if run.id == after), None)
            if at is None:
                raise Refused(400, "bad_request", f"`after`: no page of this list ends with '{after}'")
            found = found[at:]
        shown_runs = [shown.run(run, steps=self._count(run.id)) for run in found[:limit]]
        return t.RunList(runs=shown_runs, next=shown_runs[-1].id if len(found) > limit else None)

    def get(self, owner: str | None, id: str) -> t.Run:
        info = self._info(owner, id)
        output = None
        if info.status == COMPLETED:
            output = RunLog(self._store, id, lambda: 0.0).outcome().output
        return shown.run(info, steps=self._count(id), output=output, left=self._is_left(info))

    def _count(self, id: str) -> int:
        return sum(1 for _ in RunLog(self._store, id, lambda: 0.0).step_infos())

    def _info(self, owner: str | None, id: str) -> RunInfo:
        info = self.engine.get(id)
        if info is None or (owner is not None and info.attributes.get(OWNER) != owner):
            raise RunNotFound(id)
        return info

    def owner(self, id: str) -> str | None:
        """Return whose a run is. Raises `RunNotFound`."""
        found = self._info(None, id).attributes.get(OWNER)
        return found if isinstance(found, str) else None

    def steps(self, owner: str | None, id: str, after: int) -> list[t.RunStep]:
        self._info(owner, id)
        return [shown.step(step) for step in self.engine.steps(id)[after:]]

    def job(self, prompted: Prompted, body: t.StartRun) -> Job:
        """Return the job that a caller asks for: the program of an agent, with ``params`` as its globals."""
        from harnpy.durable.programs import program_job

        for name in body.params:
            if not _NAME.fullmatch(name):
                raise Refused(422, "invalid", f"`params`: {name!r} can't be the name of a variable")
        file = prompted.file(body.agent)
        if file is None:
            raise Refused(422, "invalid", f"agent '{body.agent}' is no program: send it a prompt")
        try:
            return program_job(file, values=body.params)
        except (OSError, UnicodeDecodeError) as error:
            why = plain_reason(error) if isinstance(error, OSError) else "it is no UTF-8"
            raise Refused(409, "conflict", f"agent '{body.agent}' can't be read any more: {why}") from None

    def start(self, job: Job, id: str | None, principal: str) -> t.Run:
        known = None if id is None else self.engine.get(id)
        if known is not None and known.attributes.get(OWNER) != principal:
            raise Refused(409, "conflict", f"run '{id}' exists already: take another id")
        handle = self.engine.start(job, id=id, attributes={OWNER: principal})
        return self.get(None, handle.id)

    def cancel(self, owner: str | None, id: str) -> t.Run:
        self._info(owner, id)
        self.engine.cancel(id)
        return self.get(owner, id)

    def resume(self, owner: str | None, id: str) -> t.Run:
        self._info(owner, id)
        self.engine.resume(id)
        return self.get(owner, id)

    # Waitpoints, which belong to the owners of the runs that wait for them.

    def waitpoints(self, owner: str | None) -> list[t.Waitpoint]:
        return [_waitpoint(point) for point in self._points() if self._sees(owner, point)]

    def _points(self) -> list[Point]:
        """Return all that were created, as far as they are now."""
        log = self._waitpoints.log
        with self._lock:
            for topic in log.topics():
                if topic.startswith((f"{FAMILY}.", f"{FAMILY}-")) and topic not in self._known:
                    self._known[topic] = Point(log, "", topic)
            points = list(self._known.values())
        for point in points:
            if point.record.status == OPEN:
                point.read()
        return [point for point in points if point.is_known]

    def _sees(self, owner: str | None, point: Point) -> bool:
        if owner is None:
            return True
        infos = (self.engine.get(run) for run in _runs_of(point))
        return any(info.attributes.get(OWNER) == owner for info in infos if info is not None)

    def has_waitpoint(self, owner: str | None, id: str) -> bool:
        """Return whether a waitpoint is there for an owner."""
        point = Point(self._waitpoints.log, id)
        point.read()
        return point.is_known and self._sees(owner, point)

    def complete(self, owner: str | None, id: str, value: Any, by: str) -> t.Waitpoint:
        points = self._waitpoints
        point = Point(points.log, id)
        point.read()
        if not point.is_known or not self._sees(owner, point):
            raise Refused(404, "not_found", f"no waitpoint has the id '{id}'")
        changed = points.complete(id, value, by=by)
        if not changed.changed:
            raise Refused(409, "conflict", f"waitpoint '{id}' is {changed.waitpoint.status} already")
        point.read()
        return _waitpoint(point)

    # What runs ask people, which are waitpoints with the request's id. Spec: 10 §C19.1.

    def requests(self, owner: str | None) -> list[t.Request]:
        """Return what runs ask, and nobody has answered."""
        asking = (point for point in self._points() if point.record.status == OPEN and _is_request(point))
        return [_request(point) for point in asking if self._sees(owner, point)]

    def answer(self, request: t.Request, body: t.Answer, by: str) -> bool:
        """Note an answer. Return False if there is one already."""
        value: dict[str, Any] = {"reviewer": by, "reason": body.reason or None}
        if request.kind == "question":
            value["answer"] = body.answer
        else:
            value |= dict.fromkeys(("approved", "accepted"), body.decision == "allow")
        return self._waitpoints.complete(request.id, value, by=by).changed


def _runs_of(point: Point) -> list[str]:
    return [wait.run_id for wait in point.waits.values() if wait.run_id is not None]


def _is_request(point: Point) -> bool:
    return (point.record.metadata or {}).get("kind") in KINDS


def _request(point: Point) -> t.Request:
    of, metadata = point.record, dict(point.record.metadata or {})
    details = metadata.get("request")
    asked = Request(
        of.id, metadata["kind"], "", of.created_at or "", details if isinstance(details, dict) else {}
    )
    is_question = metadata["kind"] == QUESTION
    args = asked.payload.get("args")
    return t.Request(
        id=of.id,
        session=None,
        kind="question" if is_question else "approval",
        prompt=str(asked.prompt or ""),
        since=of.created_at or "",
        tool=None if is_question else str(asked.payload.get("action") or asked.payload.get("role") or ""),
        args=None if args is None else shown.text_of(args),
        run=next(iter(_runs_of(point)), None),
    )


def _waitpoint(point: Point) -> t.Waitpoint:
    of = point.record
    return t.Waitpoint(
        id=of.id,
        status=of.status,
        since=of.created_at or "",
        value=of.value,
        by=of.completed_by or of.cancelled_by,
    )
