"""The clock of a program, how tests set it, and timers in real time. Spec: 04 §14, §25, 05 §13, §14."""

from __future__ import annotations

from functools import partial

from harnpy.formats.dates import DateError
from harnpy.vm.declare import ABSENT
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import Thrown
from harnpy.vm.values import display
from harnpy.world.clock import milliseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

# The clock of a program, and setting it, for tests. Spec: 04 §14 "Clock and clock mocking", 05 §13.


builtin = partial(declare, family="time")


@builtin("timestamp() -> float")
def timestamp(vm: Vm) -> float:
    """Return the seconds since 1970, to the millisecond. `mock_time` sets it.

    Example:
        mock_time(1500)
        timestamp()  // 1.5
    """
    return vm.clock.now_ms() / 1000


@builtin("now_ms() -> int")
def now_ms(vm: Vm) -> int:
    """Return the milliseconds since 1970. `mock_time` sets it.

    Example:
        mock_time(5000)
        now_ms()  // 5000
    """
    return vm.clock.now_ms()


@builtin("elapsed() -> int")
@builtin("monotonic_ms() -> int")
def monotonic_ms(vm: Vm) -> int:
    """Return the milliseconds since `monotonic_ms` or `elapsed` was first called, or `mock_time`.

    Example:
        mock_time(1000)
        advance_time(20)
        [monotonic_ms(), elapsed()]  // [20, 20]
    """
    return vm.clock.passed()


@builtin("sleep_ms(ms: int = 0) -> nil")
def sleep_ms(vm: Vm, ms: int) -> None:
    """Wait; other tasks run meanwhile. A mocked clock moves forward instead, and nothing waits.

    Example:
        mock_time(0)
        sleep_ms(250)
        now_ms()  // 250
    """
    if not vm.clock.is_stopped:
        vm.tasks.sleep(ms / 1000)
    elif ms > 0:
        _advance(vm, ms)


@builtin("mock_time(ms: int) -> nil", counted=True)
def mock_time(vm: Vm, ms: Value = ABSENT) -> None:
    """Stop the clock at `ms` milliseconds since 1970; `monotonic_ms` restarts at 0. `sleep` takes real time.

    Example:
        mock_time(1700000000000)
        now_ms()  // 1700000000000
    """
    if type(ms) is not int:
        raise Thrown("mock_time(ms): expected an integer millisecond timestamp")
    vm.clock.stop(_in_range(ms))


@builtin("advance_time(ms: int = 0) -> int")
def advance_time(vm: Vm, ms: int) -> int:
    """Move the mocked clock forward; return its new time in milliseconds since 1970.

    Example:
        mock_time(0)
        advance_time(1500)  // 1500
    """
    if not vm.clock.is_stopped:
        raise Thrown("advance_time: no mock active. Call mock_time(ms) first.")
    return _advance(vm, ms)


@builtin("unmock_time() -> nil")
def unmock_time(vm: Vm) -> None:
    """Return to real time.

    Example:
        mock_time(0)
        unmock_time()
        now_ms() > 0  // true
    """
    vm.clock.go()


def _advance(vm: Vm, ms: int) -> int:
    _in_range(vm.clock.now_ms() + ms)
    return vm.clock.advance(ms)


def _in_range(ms: int) -> int:
    # Imported late: a program that asks for the time needs no calendar.
    from harnpy.formats.dates import FIRST, LAST, MILLISECOND

    if not FIRST <= ms * MILLISECOND <= LAST:
        raise DateError("timestamp out of range")
    return ms


# Timers: how long something took, in real time. Spec: 05 §14, 04 §25.


timer_builtin = partial(declare, family="concurrency")


@timer_builtin('timer_start(name: string = "default") -> dict')
def timer_start(vm: Vm, name: str) -> dict[str, Value]:
    """Start a timer: `{name, start_ms}`.

    Example: timer_start("load").name  // "load"
    """
    return {"name": name, "start_ms": milliseconds(vm.unguarded.clock.now())}


@timer_builtin("timer_end(timer: dict) -> int")
def timer_end(vm: Vm, timer: Value) -> int:
    """Return the milliseconds since `timer_start`; also prints them as `[timer] NAME: Nms`.

    Example:
        let timer = timer_start("load")
        timer_end(timer) >= 0  // true
    """
    start = timer.get("start_ms") if type(timer) is dict else None
    if type(start) is not int:
        raise Thrown("timer_end: argument must be a timer dict from timer_start")
    ms = max(0, milliseconds(vm.unguarded.clock.now()) - start)
    vm.write(f"[timer] {display(timer.get('name', 'default'))}: {ms}ms\n")
    return ms
