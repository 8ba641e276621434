"""`deadline` blocks: a stack of times at which a task's work is over. Spec: 05 §9."""

from __future__ import annotations

from harnpy.vm.values.objects import Duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.run.tasks.scheduler import Scheduler

    Value = Any

_DEFAULT_MS = 30_000


def milliseconds(limit: Value, default: int) -> int:
    """A duration, or a number of milliseconds, as such a number; ``default`` for anything else."""
    ms = limit.ms if type(limit) is Duration else limit if type(limit) is int else default
    return max(ms, 0)


def deadline_begin(tasks: Scheduler, limit: Value) -> float:
    """Start a `deadline` block; the result is its token, the time when it ends."""
    ms = limit.ms if type(limit) is Duration else milliseconds(limit, _DEFAULT_MS)
    when = tasks.now() + max(ms, 0) / 1000
    tasks.current.deadlines += (when,)
    tasks.signal.pending = True
    return when


def deadline_end(tasks: Scheduler, token: float) -> None:
    deadlines = tasks.current.deadlines
    if token in deadlines:
        tasks.current.deadlines = deadlines[: deadlines.index(token)]
    tasks.refresh()


def pause_deadlines(tasks: Scheduler, token: float) -> tuple[float, ...]:
    """A generator that hands out an item takes its deadlines with it, from ``token`` on."""
    deadlines = tasks.current.deadlines
    at = deadlines.index(token) if token in deadlines else len(deadlines)
    tasks.current.deadlines = deadlines[:at]
    tasks.refresh()
    return deadlines[at:]


def resume_deadlines(tasks: Scheduler, paused: tuple[float, ...]) -> None:
    """… and brings them back when it is asked for the next."""
    tasks.current.deadlines += paused
    tasks.refresh()
    tasks.expire(tasks.current)
