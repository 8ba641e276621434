"""Transactions, and appends that share one.

Appends that are made while a commit is under way wait, and share the next one (*group commit*): with
`synchronous=FULL` a commit costs as much as hundreds of rows. One of them leads: its thread writes them all,
wakes the others, and has the first of those that came meanwhile lead next. Spec: 10 §C6.2.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from threading import Condition, Lock
from typing import TYPE_CHECKING, TypeVar

from harnpy.storage.errors import StorageError
from harnpy.storage.sqlite.failures import translated

if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable, Sequence

    from harnpy.storage.sqlite.connections import Connections

T = TypeVar("T")


class Job:
    """A part of a transaction that others may share. ``error`` is why it wasn't done."""

    __slots__ = ("done", "error", "leads", "wake")

    def __init__(self) -> None:
        self.done = False
        self.error: StorageError | None = None
        #: Held until the job is done, or is to lead; None for one that needn't wait.
        self.wake: LockType | None = None
        self.leads = False

    def write(self, cursor: sqlite3.Cursor) -> None:
        """Write. Raises a `StorageError` before anything is written, or whatever SQLite raises."""
        raise NotImplementedError

    def committed(self) -> None:
        """Called right after the commit, in the order of the writes."""


class Commits:
    """The transactions of one store in this process, one after the other."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._url = connections.url
        self._lock = connections.lock
        self._cursor = connections.writer.cursor()
        self._queue: deque[Job] = deque()
        #: Guards the queue, and whether somebody leads.
        self._entry = Lock()
        self._led = False
        self._begun = False
        #: Announces commits of this process, which ``count`` counts, to those who wait for some.
        self._changed = Condition()
        self.count = 0
        self._waiting = 0

    def run(self, job: Job) -> None:
        """Write ``job``, together with all others that wait. Returns after its commit."""
        with self._entry:
            self._queue.append(job)
            if self._led:
                job.wake = Lock()
                job.wake.acquire()
            self._led = True
        try:
            if job.wake is not None:
                job.wake.acquire()
            if not job.done:
                self._lead()
        except BaseException:
            self._leave(job)
            raise
        if job.error is not None:
            raise job.error

    def _lead(self) -> None:
        with self._lock:
            self._write_all()
        self._hand_on()

    def _leave(self, job: Job) -> None:
        """Take a job out whose thread was interrupted; if it led, somebody else must."""
        with self._entry:
            if job in self._queue:
                self._queue.remove(job)
        if job.leads or job.wake is None:
            self._hand_on()

    def _hand_on(self) -> None:
        """Have the first one that waits lead."""
        with self._entry:
            self._led = bool(self._queue)
            if self._led:
                heir = self._queue[0]
                heir.leads = True
                if heir.wake is not None:
                    heir.wake.release()

    def transact(self, work: Callable[[sqlite3.Cursor], T], *, lasting: bool = True) -> T:
        """Return what ``work`` does in a transaction of its own; nothing of it stays when it raises.

        Unless it is ``lasting``, a power cut may take it: nobody waits for the disk.
        """
        with self._lock:
            self._connections.check_open()
            if not lasting:
                self._connections.wait_for_disk(wait=False)
            try:
                self._cursor.execute("BEGIN IMMEDIATE")
                result = work(self._cursor)
                self.commit()
            except sqlite3.Error as error:
                self._roll_back()
                raise translated(error, self._url) from error
            except BaseException:
                self._roll_back()
                raise
            finally:
                if not lasting:
                    self._connections.wait_for_disk(wait=True)
            self._announce()
        return result

    def commit(self) -> None:
        """End the transaction."""
        self._cursor.execute("COMMIT")

    def _write_all(self) -> None:
        """Write the jobs that wait, in one transaction, or one by one when one of them spoils it."""
        jobs = self._waiting_jobs()
        try:
            self._connections.check_open()
            self._write(jobs)
        except StorageError as error:
            self._fail(jobs, error)
        except sqlite3.Error as error:
            self._roll_back()
            if len(jobs) == 1:
                self._fail(jobs, translated(error, self._url))
            else:
                self._write_apart(jobs)
        except BaseException:
            self._give_up(jobs)
            raise
        else:
            self._finish(jobs)

    def _waiting_jobs(self) -> list[Job]:
        with self._entry:
            jobs = [*self._queue]
            self._queue.clear()
        return jobs

    def _write(self, jobs: Sequence[Job]) -> None:
        cursor = self._cursor
        self._begun = False
        cursor.execute("BEGIN IMMEDIATE")
        self._begun = True
        for job in jobs:
            try:
                job.write(cursor)
            except StorageError as error:
                job.error = error
        self.commit()

    def _write_apart(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            job.error = None
            try:
                self._write((job,))
            except sqlite3.Error as error:
                self._roll_back()
                job.error = translated(error, self._url)
            except BaseException:
                self._give_up([job for job in jobs if not job.done])
                raise
            self._finish((job,))

    def _finish(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            if job.error is None:
                job.committed()
            _end(job)
        self._announce()

    def _fail(self, jobs: Sequence[Job], error: StorageError) -> None:
        for job in jobs:
            job.error = error
            _end(job)

    def _give_up(self, jobs: Sequence[Job]) -> None:
        """Leave the jobs of others to the next one who gets the lock: this thread was interrupted."""
        if self._begun and not self._connections.writer.in_transaction:
            self._finish(jobs)  # the interruption came right behind the commit
            return
        self._roll_back()
        with self._entry:
            self._queue.extendleft(reversed(jobs))

    def _roll_back(self) -> None:
        if not self._connections.closed and self._connections.writer.in_transaction:
            self._cursor.execute("ROLLBACK")

    def wait(self, seen: int, timeout: float) -> None:
        """Wait for a commit of this process, unless there were some since ``seen`` of them."""
        with self._changed:
            self._waiting += 1
            try:
                if self.count == seen:
                    self._changed.wait(timeout)
            finally:
                self._waiting -= 1

    def _announce(self) -> None:
        self.count += 1
        if self._waiting:
            with self._changed:
                self._changed.notify_all()


def _end(job: Job) -> None:
    job.done = True
    if job.wake is not None and not job.leads:
        job.wake.release()
