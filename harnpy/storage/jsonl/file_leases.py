"""Leases as files: ``leases/<key>.json`` holds who has the key, and who waits for it. Spec: 10 §C6, §C6.1."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from harnpy.formats.json import refuse_depth
from harnpy.storage.errors import CorruptLog
from harnpy.storage.jsonl.layout import Folder, disk_errors, file_name, locked
from harnpy.storage.leases import PAUSE, Held, Lease, Machine, check_fence, refusal, wall

if TYPE_CHECKING:
    from harnpy.storage.leases import Check

LEASE_SUFFIX = ".json"
#: Seconds of uptime after which somebody who waits, and hasn't said that he still does, has lost his place.
_PATIENCE = 2.0
#: How many bytes at the beginning of a file one call writes, all or none.
_PAGE = 4096


class Ticket(msgspec.Struct):
    """A place in the queue for a key."""

    id: str
    process: str
    until: float


class Place(msgspec.Struct):
    """The content of a lease's file."""

    held: Held | None = None
    queue: list[Ticket] = []


_PLACE = msgspec.json.Decoder(Place)


class FileLeases:
    """The leases in ``folder``."""

    def __init__(self, folder: Folder, machine: Machine, timeout: float, *, folded: bool) -> None:
        self.folder = folder
        self._machine = machine
        self._timeout = timeout
        self._folded = folded
        self._taken: set[Lease] = set()

    def take(self, key: str, owner: str | None, ttl: float, wait: float, check: Check | None = None) -> Lease:
        owner = owner or self._machine.owner()
        ticket = Ticket(os.urandom(8).hex(), self._machine.owner(), 0.0)
        gives_up = time.monotonic() + wait
        while True:
            with self._place(key) as place:
                if self._is_mine(place, ticket):
                    return self._taken_by(owner, key, ttl, place)
                left = gives_up - time.monotonic()
                if left <= 0:
                    self._leave(key, place, ticket)
                    raise refusal(key, place.held, self._machine)
                if ticket.until < self._machine.uptime() + _PATIENCE / 2:
                    self._queue(place, ticket)
                    self._write(key, place)
            time.sleep(min(left, PAUSE))
            try:
                if check is not None:
                    check()
            except BaseException:
                with self._place(key) as place:
                    self._leave(key, place, ticket)
                raise

    def holder(self, key: str) -> str | None:
        with self._place(key) as place:
            return None if place.held is None else place.held.holder(self._machine)

    @contextmanager
    def fenced(self, fence: Lease) -> Iterator[None]:
        """Keep ``fence`` from being taken by somebody else meanwhile. Raises `LeaseLost`."""
        file = self._file(fence.key)
        with disk_errors(self.folder.where(file)), locked(self.folder, file, self._timeout, shared=True):
            check_fence(self._read(file).held, fence)
            yield

    def renew(self, lease: Lease) -> float:
        with self._place(lease.key) as place:
            held = check_fence(place.held, lease)
            ends = self._machine.uptime() + lease.ttl
            place.held = held._replace(ends=ends)
            self._write(lease.key, place)
        return wall(self._machine, ends)

    def release(self, lease: Lease) -> None:
        self._taken.discard(lease)
        with self._place(lease.key) as place:
            if place.held is not None and place.held.token == lease.token:
                place.held = place.held._replace(ends=0.0)
                self._write(lease.key, place)

    def is_wanted(self, lease: Lease) -> bool:
        file = self._file(lease.key)
        with disk_errors(self.folder.where(file)), locked(self.folder, file, self._timeout, shared=True):
            return bool(self._waiting(self._read(file)))

    def release_all(self) -> None:
        """Let go of all leases that were taken here."""
        for lease in list(self._taken):
            self.release(lease)

    def drop_dead(self, *, dry_run: bool) -> list[str]:
        """Remove the files of leases that nobody has or waits for; return their names."""
        dead: list[str] = []
        for file in self.folder.files(LEASE_SUFFIX):
            with disk_errors(self.folder.where(file)), locked(self.folder, file, self._timeout):
                place = self._read(file)
                if not self._waiting(place) and (place.held is None or place.held.is_free(self._machine)):
                    dead.append(file + LEASE_SUFFIX)
                    if not dry_run:
                        self.folder.remove(file + LEASE_SUFFIX)
        return dead

    def _is_mine(self, place: Place, ticket: Ticket) -> bool:
        """Return whether the key is free, and nobody has waited for it longer."""
        if place.held is not None and not place.held.is_free(self._machine):
            return False
        queue = place.queue = self._waiting(place)
        if queue and queue[0].id != ticket.id:
            return False
        place.queue = queue[1:]
        return True

    def _waiting(self, place: Place) -> list[Ticket]:
        """The queue without those who have gone."""
        now, gone = self._machine.uptime(), self._machine.is_gone
        return [one for one in place.queue if now < one.until <= now + _PATIENCE and not gone(one.process)]

    def _queue(self, place: Place, ticket: Ticket) -> None:
        """Say that ``ticket`` still waits, in its place or at the end."""
        ticket.until = self._machine.uptime() + _PATIENCE
        for number, other in enumerate(place.queue):
            if other.id == ticket.id:
                place.queue[number] = ticket
                return
        place.queue.append(ticket)

    def _leave(self, key: str, place: Place, ticket: Ticket) -> None:
        place.queue = [other for other in place.queue if other.id != ticket.id]
        self._write(key, place)

    def _taken_by(self, owner: str, key: str, ttl: float, place: Place) -> Lease:
        # The first token is the time: tokens rise even where the file of an earlier lease was removed.
        token = place.held.token + 1 if place.held is not None else time.time_ns() // 1000
        ends = self._machine.uptime() + ttl
        place.held = Held(owner, token, self._machine.boot, ends)
        self._write(key, place)
        lease = Lease(self, key, owner, token, ttl, wall(self._machine, ends))
        self._taken.add(lease)
        return lease

    def _file(self, key: str) -> str:
        return file_name(key, folded=self._folded)

    @contextmanager
    def _place(self, key: str) -> Iterator[Place]:
        file = self._file(key)
        with disk_errors(self.folder.where(file)), locked(self.folder, file, self._timeout):
            yield self._read(file)

    def _read(self, file: str) -> Place:
        line = (self.folder.read(file + LEASE_SUFFIX) or b"").partition(b"\n")[0].strip(b"\0")
        try:
            refuse_depth(line)
            return _PLACE.decode(line) if line else Place()  # a power cut may leave an empty file, or zeros
        except (msgspec.DecodeError, ValueError) as error:
            from harnpy.formats.mismatch import unread

            raise CorruptLog(self.folder.where(file + LEASE_SUFFIX), unread(line, Place)) from error

    def _write(self, key: str, place: Place) -> None:
        # Not synced: a power cut ends the holder, too. A process that is killed has written all or nothing.
        file, line = self._file(key) + LEASE_SUFFIX, msgspec.json.encode(place) + b"\n"
        if len(line) <= _PAGE:
            self.folder.overwrite(file, line)
        else:
            self.folder.replace(file, line, lasting=False)
