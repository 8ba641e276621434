"""The leases of the sessions that a runtime works on, on a store that others may share. Spec: 10 §C7.2."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from harnpy.session.log import KIND
from harnpy.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.storage.contract import Store
    from harnpy.storage.leases import Lease

#: Seconds that a lease lasts unless it is renewed.
TTL = 30.0


class Leases:
    """Takes and renews leases: one thread for all that a runtime holds, as long as it holds any for long.

    A lease that was lost is found by the next append under it.
    """

    def __init__(self, store: Store, ttl: float = TTL) -> None:
        self._store = store
        self._ttl = ttl
        self._held: set[Lease] = set()
        self._lock = Lock()
        self._closed = Event()
        self._thread: Thread | None = None

    @contextmanager
    def lease(self, id: str, wait: float) -> Iterator[Lease]:
        """Hold the session's lease. Raises `LeaseHeld` when it isn't free within ``wait`` seconds."""
        lease = self._store.lease(f"{KIND}:{id}", ttl=self._ttl, wait=wait)
        with self._lock:
            self._held.add(lease)
            self._begin_renewing()
        try:
            yield lease
        finally:
            with self._lock:
                self._held.discard(lease)
            lease.release()

    def close(self) -> None:
        """Stop renewing."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _begin_renewing(self) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._renew, name=f"leases of {self._store.url}", daemon=True)
            self._thread.start()

    def _renew(self) -> None:
        while not self._closed.wait(self._ttl / 3):
            with self._lock:
                held = list(self._held)
            for lease in held:
                try:
                    lease.renew()
                except StorageError:
                    with self._lock:
                        self._held.discard(lease)  # an append under it will say so
