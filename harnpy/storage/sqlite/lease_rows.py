"""Leases as rows, with a queue of tickets for those who wait. Spec: 10 §C6, §C6.2.

Time is the machine's uptime, together with its boot. A ticket belongs to the process that waits and dies
with it, or when it isn't renewed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from sqlite3 import Connection, Cursor
from typing import TypeVar

from harnpy.storage.leases import PAUSE, Check, Held, Lease, Machine, check_fence, refusal, wall
from harnpy.storage.sqlite.database import Commits, Connections

T = TypeVar("T")

#: Seconds that a ticket lasts unless it is renewed, and how often a waiting process looks at first.
_PATIENCE = 5.0
_FIRST_PAUSE = 0.001


def find_lease(db: Connection | Cursor, key: str) -> Held | None:
    """Return the newest lease of a key."""
    row = db.execute("SELECT owner, token, boot, expires_at FROM leases WHERE key = ?", (key,)).fetchone()
    return None if row is None else Held(*row)


class SqliteLeases:
    """The leases of a store, as one process takes them."""

    def __init__(self, connections: Connections, commits: Commits, machine: Machine) -> None:
        self._connections = connections
        self._commits = commits
        self._machine = machine
        #: Those that this object holds, to be let go in the end.
        self._mine: dict[tuple[str, int], Lease] = {}

    def take(self, key: str, owner: str | None, ttl: float, wait: float, check: Check | None = None) -> Lease:
        owner = owner or self._machine.owner()
        gives_up = time.monotonic() + wait
        lease = self._try(key, owner, ttl, None)
        if lease is None and wait > 0:
            lease = self._wait(key, owner, ttl, gives_up, check)
        if lease is None:
            with self._connections.reading() as db:
                raise refusal(key, find_lease(db, key), self._machine)
        self._mine[key, lease.token] = lease
        return lease

    def holder(self, key: str) -> str | None:
        with self._connections.reading() as db:
            held = find_lease(db, key)
        return None if held is None else held.holder(self._machine)

    def _wait(self, key: str, owner: str, ttl: float, gives_up: float, check: Check | None) -> Lease | None:
        """Stand in the queue until the lease is ours, or the time is over."""
        ticket = self._transact(lambda cursor: self._draw(cursor, key))
        renewed = self._machine.uptime()
        pause = _FIRST_PAUSE
        try:
            while (left := gives_up - time.monotonic()) > 0:
                if self._may_take(key, ticket):
                    lease = self._try(key, owner, ttl, ticket)
                    if lease is not None:
                        return lease
                if self._machine.uptime() - renewed > _PATIENCE / 2:
                    ticket = self._transact(lambda cursor: self._renew_ticket(cursor, key, ticket))  # noqa: B023
                    renewed = self._machine.uptime()
                time.sleep(min(left, pause))
                if check is not None:
                    check()
                pause = min(pause * 2, PAUSE)
            return None
        finally:
            if not self._connections.closed:
                self._transact(lambda cursor: _remove(cursor, ticket))

    def _transact(self, work: Callable[[Cursor], T]) -> T:
        # Not synced: a power cut ends the holder and those who wait as well.
        return self._commits.transact(work, lasting=False)

    def _draw(self, cursor: Cursor, key: str) -> int:
        cursor.execute(
            "INSERT INTO tickets (key, owner, alive_until) VALUES (?, ?, ?)",
            (key, self._machine.owner(), self._machine.uptime() + _PATIENCE),
        )
        return int(cursor.lastrowid or 0)

    def _renew_ticket(self, cursor: Cursor, key: str, ticket: int) -> int:
        """Keep the ticket alive; draw another one if it was taken away while this process was stopped."""
        alive = self._machine.uptime() + _PATIENCE
        cursor.execute("UPDATE tickets SET alive_until = ? WHERE ticket = ?", (alive, ticket))
        return ticket if cursor.rowcount else self._draw(cursor, key)

    def _may_take(self, key: str, ticket: int) -> bool:
        with self._connections.reading() as db:
            return self._is_free(db, key) and not self._ahead(db, key, ticket)

    def _is_free(self, db: Connection | Cursor, key: str) -> bool:
        held = find_lease(db, key)
        return held is None or held.is_free(self._machine)

    def _ahead(self, db: Connection | Cursor, key: str, ticket: int | None) -> list[int]:
        """Return the tickets of others who are still there and came earlier; all, to who has none."""
        rows = db.execute("SELECT ticket, owner, alive_until FROM tickets WHERE key = ?", (key,)).fetchall()
        now = self._machine.uptime()
        return [
            number
            for number, owner, alive_until in rows
            if (ticket is None or number < ticket) and alive_until > now and not self._machine.is_gone(owner)
        ]

    def _try(self, key: str, owner: str, ttl: float, ticket: int | None) -> Lease | None:
        """Take the lease if it is free and nobody has waited for it longer."""

        def take(cursor: Cursor) -> Lease | None:
            if not self._is_free(cursor, key) or self._ahead(cursor, key, ticket):
                return None
            ends = self._machine.uptime() + ttl
            token = cursor.execute(
                "INSERT INTO leases (key, owner, token, boot, expires_at) VALUES (?, ?, 1, ?, ?)"
                " ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, token = leases.token + 1,"
                " boot = excluded.boot, expires_at = excluded.expires_at"
                " RETURNING token",
                (key, owner, self._machine.boot, ends),
            ).fetchall()[0][0]
            return Lease(self, key, owner, token, ttl, wall(self._machine, ends))

        return self._transact(take)

    def renew(self, lease: Lease) -> float:
        self._connections.check_there()
        ends = self._machine.uptime() + lease.ttl

        def extend(cursor: Cursor) -> None:
            check_fence(find_lease(cursor, lease.key), lease)
            cursor.execute("UPDATE leases SET expires_at = ? WHERE key = ?", (ends, lease.key))

        self._transact(extend)
        return wall(self._machine, ends)

    def release(self, lease: Lease) -> None:
        if self._mine.pop((lease.key, lease.token), None) is None or self._connections.closed:
            return
        self._transact(
            lambda cursor: cursor.execute(
                "UPDATE leases SET expires_at = 0 WHERE key = ? AND token = ?", (lease.key, lease.token)
            )
        )

    def is_wanted(self, lease: Lease) -> bool:
        with self._connections.reading() as db:
            return bool(self._ahead(db, lease.key, None))

    def release_all(self) -> None:
        """Let go of what this object holds."""
        for lease in [*self._mine.values()]:
            self.release(lease)

    def collect(self, cursor: Cursor, dry_run: bool) -> list[str]:
        """Remove the tickets of those who are gone, and return the keys they waited for."""
        now = self._machine.uptime()
        rows = cursor.execute("SELECT ticket, key, owner, alive_until FROM tickets").fetchall()
        dead = [
            (ticket, key)
            for ticket, key, owner, alive_until in rows
            if alive_until <= now or self._machine.is_gone(owner)
        ]
        if not dry_run:
            for ticket, _ in dead:
                _remove(cursor, ticket)
        return [f"ticket for {key}" for _, key in dead]


def _remove(cursor: Cursor, ticket: int) -> None:
    cursor.execute("DELETE FROM tickets WHERE ticket = ?", (ticket,))
