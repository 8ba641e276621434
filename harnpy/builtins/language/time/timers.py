"""Timers: how long something took, in real time. Spec: 05 §14, 04 §25."""

from __future__ import annotations

from functools import partial

from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import Thrown
from harnpy.vm.values.objects import display
from harnpy.world.clock import milliseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="concurrency")


@builtin('timer_start(name: string = "default") -> dict')
def timer_start(vm: Vm, name: str) -> dict[str, Value]:
    """A timer that runs from now on: `{name, start_ms}`.

    Example:
        timer_start("load").name  // "load"
    """
    return {"name": name, "start_ms": milliseconds(vm.unguarded.clock.now())}


@builtin("timer_end(timer: dict) -> int")
def timer_end(vm: Vm, timer: Value) -> int:
    """The milliseconds since `timer_start`; also prints them as `[timer] NAME: Nms`.

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
