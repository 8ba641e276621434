"""Mutexes, rwlocks, semaphores, gates, atomics and circuit breakers. Spec: 05 §6, §7, §15, 07 §14.4."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.language.arguments import seconds_of
from harnpy.builtins.language.types import truncated
from harnpy.formats.options import expected
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.run.locks import KINDS, MOST_READERS, Locks, Permit
from harnpy.vm.values import Atomic, display
from harnpy.vm.values.operators import wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

builtin = partial(declare, family="concurrency")


@builtin('sync_mutex_acquire(key: string = "__default__", timeout?: any) -> sync_permit | nil')
def sync_mutex_acquire(vm: Vm, key: str, timeout: Value) -> Permit | None:
    """Wait for the mutex `key` and take it; one task at a time holds it; nil after `timeout`.

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
    """Wait for `permits` of the semaphore's `capacity`, and take them; nil after `timeout`.

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
    """Wait to be one of the `limit` tasks that the gate admits, first come first served; nil after `timeout`.

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
    """Wait to `read` along with other readers, or to `write` alone; nil after `timeout`.

    A reader that arrives after a waiting writer waits for it.

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
    """Release a permit; false if it was already released.

    Example:
        let permit = sync_mutex_acquire("door")
        [sync_release(permit), sync_release(permit)]  // [true, false]
    """
    if type(permit) is not Permit:
        raise RuntimeFault("sync_release: first argument must be a sync permit")
    return permit.grant.release()


@builtin("sync_metrics(kind?: string, key?: any) -> list | dict | nil")
def sync_metrics(vm: Vm, kind: str | None, key: Value) -> Value:
    """Return one lock's numbers, nil if it was never used; without `key` or `kind`, a list of all that match.

    `kind`: `mutex`, `semaphore`, `gate` or `rwlock`.

    Example: sync_metrics("mutex", "never used")  // nil
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


# Atomics: integers that all tasks share. Spec: 05 §6.


atomic_builtin = partial(declare, family="concurrency", counted=True)


@atomic_builtin("atomic(initial: any = 0) -> atomic")
def atomic(vm: Vm, initial: Value = 0) -> Atomic:
    """Return a 64-bit integer that is shared by every task that holds it.

    A float is cut towards zero, true counts as 1; anything else but an int is 0.

    Example:
        let hits = atomic(40)
        atomic_add(hits, 2)
        atomic_get(hits)  // 42
    """
    if type(initial) is float:
        return Atomic(truncated(initial))
    return Atomic(int(initial) if type(initial) in (int, bool) else 0)


@atomic_builtin("atomic_get(a: atomic) -> int?")
def atomic_get(vm: Vm, a: Value = None) -> int | None:
    """Return the current value; nil for anything that isn't an atomic.

    Example: atomic_get(atomic(3))  // 3
    """
    return a.value if type(a) is Atomic else None


@atomic_builtin("atomic_set(a: atomic, value: int) -> int?")
def atomic_set(vm: Vm, a: Value = None, value: Value = None) -> int | None:
    """Store `value`; return the former value. Wrong types change nothing and give nil.

    Example:
        let hits = atomic(3)
        [atomic_set(hits, 9), atomic_get(hits)]  // [3, 9]
    """
    if type(a) is not Atomic or type(value) is not int:
        return None
    before, a.value = a.value, value
    return before


@atomic_builtin("atomic_add(a: atomic, delta: int) -> int?")
def atomic_add(vm: Vm, a: Value = None, delta: Value = None) -> int | None:
    """Add `delta` with 64-bit wraparound; return the former value. Wrong types change nothing and give nil.

    Example:
        let hits = atomic(40)
        [atomic_add(hits, 2), atomic_get(hits)]  // [40, 42]
    """
    if type(a) is not Atomic or type(delta) is not int:
        return None
    before, a.value = a.value, wrap(a.value + delta)
    return before


@atomic_builtin("atomic_cas(a: atomic, expected: int, new: int) -> bool")
def atomic_cas(vm: Vm, a: Value = None, expected: Value = None, new: Value = None) -> bool:
    """Store `new` if the current value is `expected`; return whether it was. Wrong types give false.

    Example:
        let slot = atomic(0)
        [atomic_cas(slot, 0, 7), atomic_cas(slot, 0, 9), atomic_get(slot)]  // [true, false, 7]
    """
    if type(a) is not Atomic or type(expected) is not int or type(new) is not int or a.value != expected:
        return False
    a.value = new
    return True


# Circuit breakers: after so many failures in a row, stop calling for a while. Spec: 05 §15, 07 §14.4.


class Breaker:
    """``opened`` is when the circuit opened, on a clock that only goes forward; None while it is closed."""

    def __init__(self, threshold: int, reset_seconds: float) -> None:
        self.threshold = threshold
        self.reset_seconds = reset_seconds
        self.failures = 0
        self.opened: float | None = None

    def state(self, now: float) -> str:
        if self.opened is None:
            return "closed"
        return "half_open" if now - self.opened >= self.reset_seconds else "open"

    def fail(self, now: float) -> bool:
        """Count a failure; return whether it opens the circuit. While it is open, none changes anything."""
        self.failures += 1
        if self.opened is not None or self.failures < self.threshold:
            return False
        self.opened = now
        return True

    def close(self) -> None:
        self.failures, self.opened = 0, None


class Breakers(dict[str, Breaker]):
    """The breakers of one run, by name."""


@builtin('circuit_breaker(name: string = "default", threshold: int = 5, reset_ms: int = 30000) -> string')
def circuit_breaker(vm: Vm, name: str, threshold: int, reset_ms: int) -> str:
    """Create a closed circuit breaker, replacing one with that name; return the name.

    It opens at `threshold` failures, and is half open `reset_ms` later.

    Example:
        circuit_breaker("mail", 2)
        circuit_check("mail")  // "closed"
    """
    vm.state(Breakers)[name] = Breaker(threshold, reset_ms / 1000)
    return name


@builtin('circuit_check(name: string = "default") -> string')
def circuit_check(vm: Vm, name: str) -> str:
    """Return `closed`, `open`, or `half_open` after the reset time; an unknown name is `closed`.

    Example: circuit_check("never heard of")  // "closed"
    """
    breaker = vm.state(Breakers).get(name)
    return breaker.state(vm.world.clock.monotonic()) if breaker else "closed"


@builtin('circuit_record_failure(name: string = "default") -> bool')
def circuit_record_failure(vm: Vm, name: str) -> bool:
    """Count a failure; return true if it opened the circuit.

    Example:
        circuit_breaker("mail", 2)
        [circuit_record_failure("mail"), circuit_record_failure("mail")]  // [false, true]
    """
    breaker = vm.state(Breakers).get(name)
    return breaker is not None and breaker.fail(vm.world.clock.monotonic())


@builtin('circuit_reset(name: string = "default") -> nil')
@builtin('circuit_record_success(name: string = "default") -> nil')
def circuit_reset(vm: Vm, name: str) -> None:
    """Close the circuit and forget its failures.

    Example:
        circuit_breaker("mail", 1)
        circuit_record_failure("mail")
        circuit_record_success("mail")
        circuit_reset("mail")
        circuit_check("mail")  // "closed"
    """
    breaker = vm.state(Breakers).get(name)
    if breaker:
        breaker.close()
