"""The leases of the sessions that a runtime works on, on a store that others may share. Spec: 10 §C7.2.

A lease outlasts its action by a moment, as the next action on the session is often near, and taking a lease
costs more than what is written under it. Whoever else wants it gets it when the action ends, or soon after.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from threading import Condition, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final
from weakref import finalize

from harnpy.faults import is_cancelled
from harnpy.session.log import KIND
from harnpy.storage.errors import LeaseHeld, LeaseLost, StorageError
from harnpy.world.threads import OfProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.session.calling import Caller
    from harnpy.session.lanes import Waiter
    from harnpy.storage.contract import Store
    from harnpy.storage.leases import Lease

#: Seconds that a lease lasts unless it is renewed, that it is kept without an action, and between two looks
#: whether somebody else wants it; those after which one that still isn't free has an action.
TTL: Final = 30.0
IDLE: Final = 0.1
LOOK: Final = 0.01
LEAST_WAIT: Final = 0.05
#: Seconds that the thread stays without a lease.
REST: Final = 5.0


class Held:
    """A lease that this process has, and the callers of the turns that work under it."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.callers: list[Caller] = []
        self.lost: LeaseLost | None = None
        self.renewed = self.used = self.looked = monotonic()

    @property
    def may_be_unused(self) -> bool:
        """Return whether no turn has it, or one that has only just begun and may soon end."""
        return not self.callers or monotonic() - self.used < IDLE

    def is_wanted(self) -> bool:
        """Return whether somebody waits for it, as far as anyone has looked lately."""
        now = monotonic()
        if now - self.looked < LOOK:
            return False
        self.looked = now
        try:
            return self.lease.is_wanted()
        except StorageError:
            return True  # nobody knows

    def renew(self) -> None:
        """Renew it. If it is lost, stop the turns."""
        try:
            self.lease.renew()
            self.renewed = monotonic()
        except LeaseLost as lost:
            self.lost = lost
            for call in [*self.callers]:
                call.stop()
        except StorageError:
            pass  # the next round tries again; if none succeeds, the next append says so

    def release(self) -> None:
        with suppress(StorageError):  # it ends by itself
            self.lease.release()


class Leases(OfProcess):
    """Takes, keeps and renews the leases of one store, with one thread for all of them."""

    def __init__(self, store: Store, ttl: float = TTL) -> None:
        self._store = store
        self._ttl = ttl
        self.forked()
        self.bind()

    def forked(self) -> None:
        self._held: dict[str, Held] = {}
        self._changed = Condition()
        self._looks = False  # the thread waits no longer than `LOOK`
        self._stays = True  # it waits for the next lease when there is none
        self._thread: Thread | None = None
        finalize(self, _release_all, self._held, os.getpid())

    @contextmanager
    def lease(
        self, id: str, wait: float, call: Caller, waiter: Waiter, check: Callable[[], None], kind: str = KIND
    ) -> Iterator[Lease]:
        """Have the lease of a session, or of what else ``kind`` says, for a turn, whose functions ``call``
        calls. Turns that share their session share it.

        ``check`` raises to end the waiting. Raises `LeaseHeld` when it isn't free within ``wait`` seconds,
        `LeaseLost` when it was lost meanwhile, which stops the turn.
        """
        key = f"{kind}:{id}"
        held = self._reused(key, call) or self._acquired(key, wait, call, waiter, check)
        try:
            yield held.lease
        except LeaseLost as lost:
            held.lost = lost
            raise
        except BaseException as error:
            if held.lost is None or not is_cancelled(error):
                raise
            raise held.lost from error
        finally:
            self._leave(key, held, call)

    def users(self, id: str) -> int:
        """Return how many turns work under the lease of a session."""
        with self._changed:
            held = self._held.get(f"{KIND}:{id}")
            return 0 if held is None else len(held.callers)

    def hand_on(self, id: str) -> bool:
        """Let go of the lease of a session although turns work under it. They stop, and write nothing more:
        whoever takes the lease next goes on with them. Return False where this process has no such lease."""
        with self._changed:
            held = self._held.pop(f"{KIND}:{id}", None)
        if held is None:
            return False
        held.lost = LeaseLost(held.lease.key)
        held.release()
        for call in [*held.callers]:
            call.stop()
        return True

    def release_unused(self) -> None:
        """Let go of the leases that no turn has; those of turns go soon after these end. So does the thread,
        which keeps the store alive."""
        for key, held in self._unused():
            self._release_if_unused(key, held)
        with self._changed:
            self._stays = False
            self._changed.notify_all()

    def _reused(self, key: str, call: Caller) -> Held | None:
        now = monotonic()
        with self._changed:
            held = self._held.get(key)
            if held is None:
                return None
            if held.callers or now - held.used < self._ttl / 3:
                held.used = now
                held.callers.append(call)
                return held
            del self._held[key]  # the process has stood still: somebody else may have it
        held.release()
        return None

    def _acquired(
        self, key: str, wait: float, call: Caller, waiter: Waiter, check: Callable[[], None]
    ) -> Held:
        def both() -> None:
            call.check()
            check()

        lease = self._lease(key, wait, waiter, both)
        try:
            held = Held(lease)
            held.callers.append(call)
            with self._changed:
                self._held[key] = held
                self._stays = True
                self._wake()
        except BaseException:  # a signal: nobody would let it go
            self._held.pop(key, None)
            with suppress(StorageError):  # it ends by itself
                lease.release()
            raise
        return held

    def _lease(self, key: str, wait: float, waiter: Waiter, check: Callable[[], None]) -> Lease:
        if waiter.blocks:
            return self._store.lease(key, ttl=self._ttl, wait=max(wait, LEAST_WAIT), check=check)
        gives_up, pause = waiter.now() + wait, waiter.pause()
        while True:
            try:
                return self._store.lease(key, ttl=self._ttl, wait=LEAST_WAIT, check=check)
            except LeaseHeld:
                if waiter.now() >= gives_up:
                    raise
            pause.wait(LEAST_WAIT)

    def _leave(self, key: str, held: Held, call: Caller) -> None:
        with self._changed:
            held.callers.remove(call)
            self._wake()
        held.used = monotonic()
        if held.lost is not None or held.is_wanted():
            self._release_if_unused(key, held)

    def _release_if_unused(self, key: str, held: Held) -> None:
        """Release a lease, unless a turn has it again."""
        with self._changed:
            if held.callers or self._held.get(key) is not held:
                return
            del self._held[key]
        held.release()

    def _unused(self) -> list[tuple[str, Held]]:
        with self._changed:
            return [(key, held) for key, held in self._held.items() if not held.callers]

    # The thread, which ends when there has been no lease for a while.

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._run, name=f"leases of {self._store.url}", daemon=True)
            self._thread.start()
        elif not self._looks:
            self._changed.notify_all()

    def _run(self) -> None:
        while self._wait():
            for key, held in self._unused():
                if held.lost or monotonic() - held.used > IDLE or held.is_wanted():
                    self._release_if_unused(key, held)
            with self._changed:
                due = [held for held in self._held.values() if held.callers and held.lost is None]
            for held in due:
                if monotonic() - held.renewed > self._ttl / 3:
                    held.renew()

    def _wait(self) -> bool:
        """Wait for the next round. Return False when there is none."""
        with self._changed:
            self._looks = any(held.may_be_unused for held in self._held.values())
            if self._held or self._stays:
                self._changed.wait(LOOK if self._looks else self._ttl / 6 if self._held else REST)
            if not self._held:
                self._thread = None
            return bool(self._held)


def _release_all(held: dict[str, Held], process: int) -> None:
    """Release what the end of the process finds; a process that was forked off has none."""
    if os.getpid() == process:
        for one in [*held.values()]:
            one.release()
