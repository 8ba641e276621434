"""Leases that are held for as long as the work takes: a thread renews them. Spec: 10 §C6, §C9."""

from __future__ import annotations

from threading import Event, Thread
from typing import TYPE_CHECKING

from harnpy.storage.errors import StorageError

if TYPE_CHECKING:
    from harnpy.storage.leases import Lease


class KeptLease:
    """A lease that is renewed three times in each ``ttl``, until `release`."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self._done = Event()
        self._thread = Thread(target=self._keep, name=f"lease {lease.key}", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Let the lease go."""
        self._done.set()
        self._thread.join()
        self.lease.release()

    def _keep(self) -> None:
        while not self._done.wait(self.lease.ttl / 3):
            try:
                self.lease.renew()
            except StorageError:
                return  # an append under it will say so
