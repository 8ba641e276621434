"""Leases by the server's clock, and the queue of those who wait for one. Spec: 10 §C6, §C6.3."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from harnpy.storage.errors import LeaseHeld, LeaseLost
from harnpy.storage.leases import PAUSE, Lease

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Event

    from psycopg import Connection

    from harnpy.storage.leases import Check, Machine
    from harnpy.storage.postgres.database import Database, Listener

#: How long a ticket stands without its owner's word, in seconds, and how often a waiting owner looks and
#: gives it: a lease that expires, or whose owner dies, is announced by nobody.
_TICKET_LASTS = 10.0
_LOOKS_EVERY = 0.25

# Taken when it is free and nobody came earlier.
_TAKE = """
INSERT INTO harn.leases AS held (key, owner, token, expires_at)
SELECT %(key)s, %(owner)s, 1, now() + %(ttl)s * interval '1 second'
WHERE NOT EXISTS (
  SELECT 1 FROM harn.tickets t WHERE t.key = %(key)s
  AND (%(ticket)s::bigint IS NULL OR t.ticket < %(ticket)s)
  AND t.alive_until > now() AND t.owner <> ALL(%(gone)s::text[]))
ON CONFLICT (key) DO UPDATE
SET owner = excluded.owner, token = held.token + 1, expires_at = excluded.expires_at
WHERE held.expires_at <= now() OR held.owner = ANY(%(gone)s::text[])
RETURNING token, extract(epoch FROM expires_at)::float8
"""
_OWNERS = """
SELECT owner FROM harn.leases WHERE key = %(key)s UNION SELECT owner FROM harn.tickets WHERE key = %(key)s
"""
_HELD = """
SELECT owner, extract(epoch FROM expires_at)::float8 FROM harn.leases
WHERE key = %(key)s AND expires_at > now()
"""
_RENEW = """
UPDATE harn.leases SET expires_at = now() + %(ttl)s * interval '1 second'
WHERE key = %(key)s AND token = %(token)s AND owner = %(owner)s AND expires_at > '-infinity'
RETURNING extract(epoch FROM expires_at)::float8
"""
_RELEASE = """
UPDATE harn.leases SET expires_at = '-infinity'
WHERE key = %(key)s AND token = %(token)s AND owner = %(owner)s
"""
_HOLDER = "SELECT owner FROM harn.leases WHERE key = %(key)s AND expires_at > '-infinity'"
_QUEUE = """
INSERT INTO harn.tickets (key, owner, alive_until)
VALUES (%(key)s, %(owner)s, now() + %(lasts)s * interval '1 second') RETURNING ticket
"""
_STAY = """
UPDATE harn.tickets SET alive_until = now() + %(lasts)s * interval '1 second' WHERE ticket = %(ticket)s
RETURNING ticket
"""
_LEAVE = "DELETE FROM harn.tickets WHERE ticket = %s"
_WANTED = "SELECT 1 FROM harn.tickets WHERE key = %(key)s AND alive_until > now() LIMIT 1"
_NOTIFY = "SELECT pg_notify('harn', %s)"

#: What announcements of leases begin with, where those of streams have their kind.
_LEASE = "lease"


class PostgresLeases:
    """The leases of one store. Tokens of a key only rise: its row is never deleted."""

    def __init__(self, database: Database, machine: Machine, listener: Listener) -> None:
        self._database = database
        self._machine = machine
        self._listener = listener

    def take(self, key: str, owner: str | None, ttl: float, wait: float, check: Check | None = None) -> Lease:
        owner = owner or self._machine.owner()
        lease = self._attempt(key, owner, ttl, None)
        if lease is None and wait > 0:
            lease = self._wait(key, owner, ttl, wait, check)
        if lease is None:
            raise self._refusal(key)
        return lease

    def holder(self, key: str) -> str | None:
        found = self._database.read(_HELD, {"key": key})
        return found[0][0] if found and not self._machine.is_gone(found[0][0]) else None

    def _last(self, key: str) -> str | None:
        """Return whose the lease is or was until it expired, None when it was let go."""
        found = self._database.read(_HOLDER, {"key": key})
        return found[0][0] if found else None

    def renew(self, lease: Lease) -> float:
        found = self._row(_RENEW, {**_identity(lease), "ttl": lease.ttl})
        if found is None:
            raise LeaseLost(lease.key, self._last(lease.key))
        return float(found[0])

    def release(self, lease: Lease) -> None:
        def let_go(connection: Connection) -> None:
            connection.execute(_RELEASE, _identity(lease))
            connection.execute(_NOTIFY, [f"{_LEASE} {lease.key} 0"])

        self._database.write(let_go, waits=False)

    def is_wanted(self, lease: Lease) -> bool:
        return bool(self._database.read(_WANTED, {"key": lease.key}))

    def _attempt(self, key: str, owner: str, ttl: float, ticket: int | None) -> Lease | None:
        wanted = {"key": key, "owner": owner, "ttl": ttl, "ticket": ticket}
        for gone in self._gone(key):
            found = self._row(_TAKE, {**wanted, "gone": gone}, waits=True)
            if found is not None:
                return Lease(self, key, owner, found[0], ttl, found[1])
        return None

    def _gone(self, key: str) -> Iterator[list[str]]:
        """Yield which owners to take for gone: none at first, then those found dead, if there are any."""
        yield []
        owners = self._database.read(_OWNERS, {"key": key})
        gone = [owner for (owner,) in owners if self._machine.is_gone(owner)]
        if gone:
            yield gone

    def _wait(self, key: str, owner: str, ttl: float, wait: float, check: Check | None) -> Lease | None:
        gives_up = time.monotonic() + wait
        stay = {"key": key, "owner": owner, "lasts": _TICKET_LASTS}
        queued = self._row(_QUEUE, stay)
        stay["ticket"] = ticket = None if queued is None else queued[0]
        try:
            with self._listener.watching(_LEASE, key) as announced:
                while True:
                    lease = self._attempt(key, owner, ttl, ticket)
                    left = gives_up - time.monotonic()
                    if lease is not None or left <= 0:
                        return lease
                    _wait_for(announced, min(left, _LOOKS_EVERY), check)
                    announced.clear()
                    self._row(_STAY, stay)
        finally:
            self._leave(key, ticket)

    def _leave(self, key: str, ticket: int | None) -> None:
        """Give the ticket back. Whoever is next looks again."""

        def leave(connection: Connection) -> None:
            connection.execute(_LEAVE, [ticket])
            connection.execute(_NOTIFY, [f"{_LEASE} {key} 0"])

        self._database.write(leave, waits=False)

    def _row(self, statement: str, values: dict[str, Any], *, waits: bool = False) -> tuple[Any, ...] | None:
        """Run one statement, and return the row that it returns."""

        def run(connection: Connection) -> tuple[Any, ...] | None:
            row: tuple[Any, ...] | None = connection.execute(statement, values).fetchone()
            return row

        return self._database.write(run, waits=waits)

    def _refusal(self, key: str) -> LeaseHeld:
        held = self._database.read(_HELD, {"key": key})
        if not held:
            return LeaseHeld(key, "somebody who waits for it, too,", time.time())
        return LeaseHeld(key, *held[0])


def _wait_for(announced: Event, seconds: float, check: Check | None) -> None:
    ends = time.monotonic() + seconds
    while not announced.wait(max(0.0, min(PAUSE, ends - time.monotonic()))) and time.monotonic() < ends:
        if check is not None:
            check()


def _identity(lease: Lease) -> dict[str, Any]:
    return {"key": lease.key, "owner": lease.owner, "token": lease.token}
