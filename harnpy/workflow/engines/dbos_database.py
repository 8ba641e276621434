"""`DbosDatabase`: what DBOS keeps of our runs, how it is asked, and what its rows mean. Spec: 10 §C19.3.

Whoever only starts, lists or cancels runs talks to the database, by a `DBOSClient`, and has no DBOS running.
What harnpy knows of a run and DBOS doesn't stands in the run's attributes, as ``harn.…``.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import sys
import time
from contextlib import closing, contextmanager, suppress
from contextvars import Context
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import convert
from msgspec.json import decode

from harnpy.storage.opening import parse_url, shown
from harnpy.version import install_command
from harnpy.workflow.engines.attempt import LEFT
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
)
from harnpy.workflow.engines.errors import QueueNotFound, RunError, RunNotFound
from harnpy.workflow.engines.run_log import json_text

try:
    from dbos import DBOS, DBOSClient, Serializer, SetWorkflowID
    from dbos import error as theirs
    from sqlalchemy import URL
    from sqlalchemy.exc import DataError, IntegrityError, ProgrammingError, SQLAlchemyError
except ImportError as missing:
    raise RunError(f"engine 'dbos' needs: {install_command('dbos')}") from missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dbos import WorkflowStatus

    from harnpy.storage.contract import Store
    from harnpy.workflow.engines.contract import Json

#: What the engine is called.
ENGINE: Final = "dbos"
#: The version of the code, as DBOS calls it: changes whenever the steps of the same job would.
VERSION: Final = "harnpy-1"
#: DBOS's names: the application's, the schema's, and how those of our bodies, queues and attributes begin.
APPLICATION, SCHEMA, OURS = "harnpy", "harn_dbos", "harn."
#: Queues of ours: what any worker takes, what nobody takes until it is complete, what one process takes.
ANY, PARKED, HERE = "harn.any", "harn.parked", "harn.here:"
#: DBOS's smallest priority is 0; ours may be negative.
MIDDLE: Final = 2**30
#: What a run that goes on, or is forked, doesn't take along of how it came to where it is.
CLEARED: Final = {f"harn.{name}": None for name in ("lost", "dead", "reason", "waiting", "deadline", "due")}

_STATUSES = {
    "DELAYED": DELAYED,
    "ENQUEUED": QUEUED,
    "PENDING": RUNNING,
    "SUCCESS": COMPLETED,
    "ERROR": FAILED,
    "CANCELLED": CANCELLED,
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": DEAD,
}
#: Where those stand that DBOS doesn't know.
_AMONG = {WAITING: "PENDING", DEAD: "CANCELLED", DELAYED: "ENQUEUED"}
_PAGE = 100
#: Seconds that a process may stand still in a transaction, at least: on a busy machine some do.
_STANDS_STILL = 5.0


class Place(NamedTuple):
    """Where DBOS has its tables. ``url`` has the password, ``shown`` hasn't."""

    url: str
    schema: str
    shown: str

    @property
    def is_server(self) -> bool:
        return self.url.startswith("postgresql")


def require_sqlite(python: tuple[int, ...], sqlite: tuple[int, ...]) -> None:
    """Raise `RunError` for a SQLite that DBOS's tables can't be used in: from Python 3.12 on, DBOS 3.4 takes
    times from a function that SQLite has since 3.42, and older ones answer with NULL."""
    if python >= (3, 12) and sqlite < (3, 42):
        raise RunError(
            f"DBOS needs SQLite 3.42 or newer with Python {'.'.join(map(str, python))}, and here is "
            f"{'.'.join(map(str, sqlite))}: use PostgreSQL, or the engine 'local'"
        )


class IdTaken(Exception):
    """There is a run of that id."""


class JsonSerializer(Serializer):
    """JSON, instead of DBOS's pickles; an exception is {"$error": its message}."""

    def name(self) -> str:
        return "harn_json"

    def serialize(self, data: Any) -> str:
        if isinstance(data, BaseException):
            data = {"$error": str(data)}
        elif isinstance(data, dict) and isinstance(data.get("args"), tuple):
            # What a run is given; by a schedule, the time, too.
            args = [each.isoformat() if isinstance(each, datetime) else each for each in data["args"]]
            data = {**data, "args": args}
        return json_text(data)

    def deserialize(self, serialized_data: str) -> Any:
        return json.loads(serialized_data)


class DbosDatabase:
    """The runs at ``place``. Any thread may call. Raises `RunError`s, and `IdTaken`.

    ``poll``: seconds between two looks at a queue. ``attached``: tables, application and ``serializer``
    (None: DBOS's own) are somebody else's.
    """

    def __init__(
        self,
        place: Place,
        *,
        attached: bool = False,
        serializer: Serializer | None = None,
        poll: float = 0.25,
        ttl: float = 30.0,
    ) -> None:
        self.place, self.attached, self.poll = place, attached, poll
        if not place.is_server:
            require_sqlite(sys.version_info[:2], sqlite3.sqlite_version_info)
        #: Seconds after which a process that stands still in a transaction loses it and its locks. DBOS waits
        #: for a minute, and with it whoever would hand on the runs.
        self.patience = max(_STANDS_STILL, ttl)
        #: None: whichever version is the newest.
        self.version = None if attached else VERSION
        self.serializer = serializer if attached else serializer or JsonSerializer()
        self._is_closed = False
        given: dict[str, Any] = {} if self.serializer is None else {"serializer": self.serializer}
        _quiet()
        with self.said():
            if not attached:
                DBOS.migrate(place.url, schema=place.schema)
            self.client = DBOSClient(
                system_database_url=place.url,
                dbos_system_schema=place.schema,
                application_name=None if attached else APPLICATION,
                retry_connection_errors=False,
                lazy=True,
                sys_db_idle_transaction_timeout_sec=self.patience,
                **given,
            )

    def close(self) -> None:
        self._is_closed = True
        self.client.destroy()

    @contextmanager
    def said(self, what: str = "") -> Iterator[None]:
        """Report what DBOS and its database say in one sentence, without a password."""
        if self._is_closed:
            raise RunError("the engine is closed: open another one")
        try:
            yield
        except (IntegrityError, theirs.DBOSWorkflowIDInUseError):
            raise IdTaken from None
        except (DataError, ProgrammingError) as error:
            raise RunError(f"engine 'dbos': {self.place.shown} refuses it: {_reason(error)}") from error
        except SQLAlchemyError as error:
            raise RunError(f"engine 'dbos' can't reach {self.place.shown}: {_reason(error)}") from error
        except (theirs.DBOSException, ValueError) as error:
            raise RunError(f"{what or 'engine dbos'}: DBOS refuses it ({type(error).__name__})") from error

    # Runs.

    def rows(self, **query: Any) -> list[WorkflowStatus]:
        """Return what DBOS has on our runs, without what goes in and comes out unless ``query`` says so."""
        with self.said():
            rows = self.client.list_workflows(**{"load_input": False, "load_output": False, **query})
        return [row for row in rows if row.name.startswith(OURS)]

    def row(self, id: str, **query: Any) -> WorkflowStatus | None:
        rows = self.rows(workflow_ids=[id], **query)
        return rows[0] if rows else None

    def known(self, id: str, **query: Any) -> WorkflowStatus:
        """Return it. Raises `RunNotFound`."""
        row = self.row(id, **query)
        if row is None:
            raise RunNotFound(id)
        return row

    def steps(self, id: str) -> list[Any]:
        with self.said():
            return list(self.client.list_workflow_steps(id))

    def infos(self, query: RunQuery) -> list[RunInfo]:
        found: list[RunInfo] = []
        statuses = None if query.statuses is None else _statuses_of(query.statuses)
        if statuses == []:
            return found
        page: list[WorkflowStatus] | None = None
        offset = 0
        while len(found) < query.limit and (page is None or page):
            # SQLite can't look into attributes, and DBOS forgets the queue of a run that was cancelled.
            with self.said():
                page = self.client.list_workflows(
                    status=list[str](statuses) if statuses else None,
                    name=None if query.kind is None else OURS + query.kind,
                    workflow_id_prefix=query.prefix or None,
                    attributes=(dict(query.attributes) or None) if self.place.is_server else None,
                    limit=_PAGE,
                    offset=offset,
                    sort_desc=True,
                    load_input=False,
                    load_output=False,
                )
            offset += len(page)
            infos = [info_of(row) for row in page if row.name.startswith(OURS)]
            found += [info for info in infos if _is_sought(info, query)]
        return self._with_errors(found[: query.limit])

    def _with_errors(self, infos: list[RunInfo]) -> list[RunInfo]:
        """Add what those that failed say: DBOS gives that out with the results only."""
        failed = [info.id for info in infos if info.status == FAILED]
        if not failed:
            return infos
        errors = {
            row.workflow_id: info_of(row).error for row in self.rows(workflow_ids=failed, load_output=True)
        }
        return [info._replace(error=errors[info.id]) if info.id in errors else info for info in infos]

    def note(self, id: str, attributes: dict[str, Json]) -> None:
        """Change some of a run's attributes."""
        with self.said():
            self.client.update_workflow_attributes(id, attributes, merge=True)

    def cancel(self, id: str) -> None:
        with self.said():
            self.client.cancel_workflow(id)

    def delete(self, id: str) -> None:
        with self.said():
            self.client.delete_workflow(id)

    def enqueue(self, id: str, queue: str) -> None:
        """Have a run go on where that queue is worked on."""
        with self.said():
            self.client.resume_workflow(id, queue_name=queue)

    def fork(self, id: str, first: int, new: str) -> None:
        """Make a run that has the steps before DBOS's number ``first``; nobody takes it yet."""

        def fork() -> None:
            with SetWorkflowID(new):
                self.client.fork_workflow(id, first, application_version=self.version, queue_name=PARKED)

        with self.said():
            Context().run(fork)

    def leave(self, id: str) -> bool:
        """Leave a run that is at work to other workers, in a while. Return False for one that isn't."""
        row = self.known(id)
        if row.status == "PENDING":
            self.hand_on(row, is_lost=False, due=time.time() + LEFT)
        return row.status == "PENDING"

    def hand_on(self, row: WorkflowStatus, *, is_lost: bool = True, due: float | None = None) -> None:
        """Have another worker take up a run, not before ``due``; none when it has lost its own for the
        `MOST_ATTEMPTS`th time."""
        known = attributes_of(row)
        lost = int(known.get("harn.lost") or 0) + is_lost
        if lost >= MOST_ATTEMPTS:
            self.note(row.workflow_id, {"harn.dead": True})
            self.cancel(row.workflow_id)
            return
        # DBOS forgets how often a run that goes on was begun, and when it should have ended.
        queue = queue_of(row)
        kept: dict[str, Json] = {
            "harn.attempts": attempts_of(row),
            "harn.lost": lost,
            "harn.waiting": None,
            "harn.queue": queue,
            "harn.due": due,
        }
        if row.workflow_deadline_epoch_ms and not known.get("harn.deadline"):
            kept["harn.deadline"] = row.workflow_deadline_epoch_ms / 1000
        self.note(row.workflow_id, kept)
        if due is not None:
            queue = PARKED  # until a worker sees that it is time
        elif queue is None:
            self.open_queue(queue := ANY)
        self.enqueue(row.workflow_id, queue)

    # Queues.

    def queue_names(self, *, ours: bool = False) -> list[str]:
        """Return the names of all queues that somebody has made, or of those that the engine has."""
        with self.said():
            names = [queue.name for queue in self.client.list_queues()]
        return [name for name in names if name.startswith(OURS) == ours]

    def open_queue(self, name: str) -> None:
        """Make a queue of our own, unless it is there, or another process makes it at this moment."""
        with suppress(IdTaken), self.said():
            self.client.register_queue(
                name, polling_interval_sec=min(self.poll, 0.1), on_conflict="never_update"
            )

    def delete_queue(self, name: str) -> None:
        with self.said():
            self.client.delete_queue(name)

    def require_queue(self, name: str) -> None:
        """Raise `RunError` unless somebody has made it: DBOS takes a run for any, and would never run it."""
        known = self.queue_names()
        if name not in known:
            raise QueueNotFound(name, known, " --engine dbos")


# What DBOS's rows mean.


def attributes_of(row: WorkflowStatus) -> dict[str, Any]:
    return row.attributes or {}


def attempts_of(row: WorkflowStatus) -> int:
    """Return how many processes have begun it: DBOS counts since somebody had it go on."""
    return int(attributes_of(row).get("harn.attempts") or 0) + (row.recovery_attempts or 0)


def claim_of(row: WorkflowStatus) -> tuple[str | None, int]:
    """Return who has the run, and how often it had been begun before: the next claim is another one."""
    return row.executor_id, int(attributes_of(row).get("harn.attempts") or 0)


def status_of(row: WorkflowStatus) -> str:
    known = attributes_of(row)
    if row.status == "CANCELLED" and known.get("harn.dead"):
        return DEAD
    if row.status == "PENDING" and known.get("harn.waiting"):
        return WAITING
    if row.status == "ENQUEUED" and (left_until(row) or 0.0) > time.time():
        return DELAYED
    return _STATUSES[row.status]


def left_until(row: WorkflowStatus) -> float | None:
    """Return when others may take a run that a worker has left to them."""
    return attributes_of(row).get("harn.due")


def is_late(row: WorkflowStatus) -> bool:
    """Return whether it should have ended, by the deadline that DBOS has forgotten."""
    return time.time() >= (attributes_of(row).get("harn.deadline") or float("inf"))


def why_cancelled(row: WorkflowStatus) -> str:
    reason = attributes_of(row).get("harn.reason")
    due = row.workflow_deadline_epoch_ms
    if (
        not reason
        and row.workflow_timeout_ms
        and (is_late(row) or (due is not None and due <= time.time() * 1000))
    ):
        return f"it took longer than {row.workflow_timeout_ms / 1000:g} s"
    return str(reason or "")


def job_of(row: WorkflowStatus, payload: Json) -> Job:
    """Return what a run does; ``payload`` is what it was started with."""
    replaced = attributes_of(row).get("harn.job")
    return decode(replaced, type=Job) if replaced else convert(payload, Job)


def payload_of(row: WorkflowStatus) -> Json:
    """Return what a run was started with; a schedule gives the time, too."""
    return None if row.input is None else row.input["args"][-1]


def queue_of(row: WorkflowStatus) -> str | None:
    """Return the queue that it was started in, if any."""
    known = attributes_of(row).get("harn.queue") or row.queue_name
    return None if not known or known.startswith(OURS) else str(known)


def info_of(row: WorkflowStatus) -> RunInfo:
    known, status = attributes_of(row), status_of(row)
    error: str | None = None
    if status == FAILED:
        error = _error_of(row.error)
    elif status == CANCELLED:
        error = why_cancelled(row) or None
    elif status == DEAD:
        error = f"its worker was lost {MOST_ATTEMPTS} times"
    return RunInfo(
        id=row.workflow_id,
        kind=row.name.removeprefix(OURS),
        name=str(known.get("harn.name") or row.schedule_name or ""),
        status=status,
        engine=ENGINE,
        queue=queue_of(row),
        worker=row.executor_id,
        attempt=attempts_of(row),
        priority=row.priority - MIDDLE if row.priority else 0,
        created=_seconds(row.created_at) or 0.0,
        started=_seconds(row.created_at if known.get("harn.here") else row.dequeued_at),
        updated=_seconds(row.updated_at) or 0.0,
        finished=_seconds(row.completed_at) if status in ENDED else None,
        due=left_until(row) or _seconds(row.delay_until_epoch_ms),
        forked_from=row.forked_from,
        attributes={key: str(value) for key, value in known.items() if not key.startswith(OURS)},
        error=error,
    )


def last_number(rows: Sequence[Any]) -> int:
    """Return DBOS's number of the last of its steps, 0 without any. One that was no JSON leaves a gap."""
    return int(rows[-1]["function_id"]) if rows else 0


def flat(rows: Sequence[Any]) -> list[tuple[Any, str, Json]]:
    """Return the steps in DBOS's, each of which has those that were recorded together."""
    return [(row, key, output) for row in rows for key, output in row["output"]]


def plain(text: str) -> str:
    """Return a text for people as PostgreSQL can keep it in an attribute."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def _error_of(error: Any) -> str:
    return str(error["$error"] if isinstance(error, dict) else error)


def _statuses_of(wanted: frozenset[str]) -> list[str]:
    """Return the statuses that DBOS gives to runs of ours."""
    given = {status for status, ours in _STATUSES.items() if ours in wanted}
    return sorted(given | {status for ours, status in _AMONG.items() if ours in wanted})


def _is_sought(info: RunInfo, query: RunQuery) -> bool:
    return (
        (query.statuses is None or info.status in query.statuses)
        and (query.queue is None or info.queue == query.queue)
        and info.id.startswith(query.prefix)
        and query.attributes.items() <= info.attributes.items()
    )


# Where DBOS has its tables, and what it says.


def place_of(store: Store, schema: str) -> Place:
    """Return where DBOS has its tables: on the store's server, or in a file beside it."""
    conninfo = getattr(store, "conninfo", None)
    if conninfo is not None:
        from psycopg.conninfo import conninfo_to_dict

        known = {key: str(value) for key, value in conninfo_to_dict(conninfo).items()}
        user, password, database = (known.pop(key, None) for key in ("user", "password", "dbname"))
        url = URL.create("postgresql", user, password or None, database=database, query=known)
        return Place(url.render_as_string(hide_password=False), schema, store.url)
    parsed = parse_url(store.url)
    if parsed.scheme != "sqlite" or parsed.target in ("", ":memory:"):
        raise RunError(
            f"engine 'dbos' keeps its runs in PostgreSQL or, to try it out, in SQLite: not in {store.url}"
        )
    path = os.path.abspath(f"{parsed.target}.dbos")
    mode, _ = parsed.modes
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, mode))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")  # which stays: who reads doesn't wait for who writes
    return Place(f"sqlite:///{path}", schema, store.url)


def _quiet() -> None:
    """Have what DBOS and its database log go where the program says, and else nowhere."""
    for name in ("dbos", "sqlalchemy"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


def _reason(error: SQLAlchemyError) -> str:
    words = str(getattr(error, "orig", None) or error)
    return shown("; ".join(line.strip() for line in words.split("\n") if line.strip()))
