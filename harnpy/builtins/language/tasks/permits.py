"""Mutexes, rwlocks, semaphores and gates by name. Spec: 05 §7."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.language.tasks.timeouts import seconds_of
from harnpy.reading.option_tables import expected
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.run.tasks.permits import KINDS, MOST_READERS, Locks, Permit
from harnpy.vm.values.objects import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="concurrency")


@builtin('sync_mutex_acquire(key: string = "__default__", timeout?: any) -> sync_permit | nil')
def sync_mutex_acquire(vm: Vm, key: str, timeout: Value) -> Permit | None:
    """Wait for the mutex `key` and take it: one task at a time; nil when `timeout` is over.

    `mutex { }` takes `__default__`. `timeout`: ms, a duration or `{timeout_ms}`; 0 tries once.

    Example:
        let permit = sync_mutex_acquire("ledger")
        let second = sync_mutex_acquire("ledger", 0)
        sync_release(permit)
        second  // nil
    """
    return _acquired(vm, "mutex", key, 1, 1, timeout)


@builtin(
    'sync_semaphore_acquire(key: string = "default", capacity: int = 1, permits: int = 1, timeout?: any) '
    "-> sync_permit | nil"
)
def sync_semaphore_acquire(vm: Vm, key: str, capacity: int, permits: int, timeout: Value) -> Permit | None:
    """Wait for `permits` of the `capacity` that the semaphore has, and take them; nil after `timeout`.

    Every call must name the same capacity.

    Example:
        let permit = sync_semaphore_acquire("slots", 3, 2)
        let more = sync_semaphore_acquire("slots", 3, 2, 0)
        sync_release(permit)
        more  // nil
    """
    if capacity <= 0 or permits <= 0:
        raise RuntimeFault("sync_semaphore_acquire: value must be positive")
    return _acquired(vm, "semaphore", key, capacity, permits, timeout)


@builtin('sync_gate_acquire(key: string = "default", limit: int = 1, timeout?: any) -> sync_permit | nil')
def sync_gate_acquire(vm: Vm, key: str, limit: int, timeout: Value) -> Permit | None:
    """Wait to be one of the `limit` tasks that the gate admits, first come first; nil after `timeout`.

    Example:
        let permit = sync_gate_acquire("api", 2)
        sync_release(permit)  // true
    """
    if limit <= 0:
        raise RuntimeFault("sync_gate_acquire: value must be positive")
    return _acquired(vm, "gate", key, limit, 1, timeout)


@builtin(
    'sync_rwlock_acquire(key: string = "default", mode: string = "read", timeout?: any) -> sync_permit | nil'
)
def sync_rwlock_acquire(vm: Vm, key: str, mode: str, timeout: Value) -> Permit | None:
    """Wait to `read` with other readers, or to `write` alone; nil after `timeout`.

    A reader that comes after a waiting writer waits for it.

    Example:
        let readers = [sync_rwlock_acquire("page", "read"), sync_rwlock_acquire("page", "read")]
        let writer = sync_rwlock_acquire("page", "write", 0)
        readers.map({ permit -> sync_release(permit) })
        writer  // nil
    """
    if mode not in ("read", "write"):
        raise RuntimeFault("sync_rwlock_acquire: mode must be read or write")
    return _acquired(vm, "rwlock", key, MOST_READERS, 1 if mode == "read" else MOST_READERS, timeout)


@builtin("sync_release(permit: sync_permit) -> bool")
def sync_release(vm: Vm, permit: Value) -> bool:
    """Release a permit; false if it was released before.

    Example:
        let permit = sync_mutex_acquire("door")
        [sync_release(permit), sync_release(permit)]  // [true, false]
    """
    if type(permit) is not Permit:
        raise RuntimeFault("sync_release: first argument must be a sync permit")
    return permit.grant.release()


@builtin("sync_metrics(kind?: string, key?: any) -> list | dict | nil")
def sync_metrics(vm: Vm, kind: str | None, key: Value) -> Value:
    """What happened at one lock, nil if it was never used; a list of all that match without `key` or `kind`.

    `kind`: `mutex`, `semaphore`, `gate` or `rwlock`.

    Example:
        sync_metrics("mutex", "never used")  // nil
    """
    if kind is not None and kind not in KINDS:
        raise RuntimeFault(f"sync_metrics: unknown kind '{kind}' ({expected(kind, KINDS)})")
    locks = vm.state(Locks)
    name = None if key is None else display(key)
    if kind is not None and name is not None:
        lock = locks.get((kind, name))
        return lock.metrics() if lock else None
    found = [each for each in locks.values() if kind in (None, each.kind) and name in (None, each.key)]
    return [each.metrics() for each in sorted(found, key=lambda each: f"{each.kind}:{each.key}")]


def _acquired(vm: Vm, kind: str, key: str, capacity: int, permits: int, timeout: Value) -> Permit | None:
    lock = vm.state(Locks).lock(vm.tasks, kind, key, capacity, permits)
    grant = lock.acquire(permits, seconds_of(f"sync_{kind}_acquire", timeout))
    return Permit(grant) if grant else None
