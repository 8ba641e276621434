"""Circuit breakers: after so many failures in a row, stop calling for a while. Spec: 05 §15, 07 §14.4."""

from __future__ import annotations

from functools import partial

from harnpy.vm.declare.builtin import builtin as declare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="concurrency")


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
    """Make a closed breaker, replacing one of that name; returns the name.

    It opens at `threshold` failures, and is half open `reset_ms` later.

    Example:
        circuit_breaker("mail", 2)
        circuit_check("mail")  // "closed"
    """
    vm.state(Breakers)[name] = Breaker(threshold, reset_ms / 1000)
    return name


@builtin('circuit_check(name: string = "default") -> string')
def circuit_check(vm: Vm, name: str) -> str:
    """`closed`, `open`, or `half_open` when the reset time is over; an unknown name is `closed`.

    Example:
        circuit_check("never heard of")  // "closed"
    """
    breaker = vm.state(Breakers).get(name)
    return breaker.state(vm.world.clock.monotonic()) if breaker else "closed"


@builtin('circuit_record_failure(name: string = "default") -> bool')
def circuit_record_failure(vm: Vm, name: str) -> bool:
    """Count a failure; true for the one that opens the circuit.

    Example:
        circuit_breaker("mail", 2)
        [circuit_record_failure("mail"), circuit_record_failure("mail")]  // [false, true]
    """
    breaker = vm.state(Breakers).get(name)
    return breaker is not None and breaker.fail(vm.world.clock.monotonic())


@builtin('circuit_record_success(name: string = "default") -> nil')
def circuit_record_success(vm: Vm, name: str) -> None:
    """Close the circuit and forget its failures.

    Example:
        circuit_breaker("mail", 1)
        circuit_record_failure("mail")
        circuit_record_success("mail")
        circuit_check("mail")  // "closed"
    """
    _close(vm, name)


@builtin('circuit_reset(name: string = "default") -> nil')
def circuit_reset(vm: Vm, name: str) -> None:
    """Close the circuit and forget its failures.

    Example:
        circuit_breaker("mail", 1)
        circuit_record_failure("mail")
        circuit_reset("mail")
        circuit_check("mail")  // "closed"
    """
    _close(vm, name)


def _close(vm: Vm, name: str) -> None:
    breaker = vm.state(Breakers).get(name)
    if breaker:
        breaker.close()
