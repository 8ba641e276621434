"""Waiting for several channels and mailboxes at once. Spec: 05 §5.

Who waits stands in the line of every channel, so that receivers who come later don't overtake.
"""

from __future__ import annotations

from harnpy.vm.run.tasks.deadline import milliseconds
from harnpy.vm.run.tasks.mailboxes import source_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from harnpy.vm.run.tasks.scheduler import Scheduler

    Value = Any

_DEFAULT_MS = 5000


def select_limit(tasks: Scheduler, limit: Value) -> float:
    """Seconds that a `timeout` arm gives: a duration or ms, anything else is 5 s (05 §5)."""
    return milliseconds(limit, _DEFAULT_MS) / 1000


def select(tasks: Scheduler, sources: Sequence[Value], seconds: float | None) -> tuple[int, Value]:
    """Position and item of the first of ``sources`` that has one, waited for at most ``seconds``.

    (-1, nil) when the time is up, or when every source is closed and drained, or none can be
    received from.
    """
    until = None if seconds is None else tasks.now() + seconds
    found = [source_of(tasks, source) for source in sources]
    for i, source in enumerate(found):
        if source is not None and source.readable:
            return i, source.take()
    channels = list({id(channel): channel for channel in found if channel is not None}.values())
    task = tasks.current
    for channel in channels:
        channel.receivers.append(task)
    try:
        while not all(channel.over for channel in channels):
            for i, source in enumerate(found):
                if source is not None and source.has_item_for(task):
                    channels.remove(source)
                    return i, source.take_in_line(task)
            if until is not None:
                if tasks.now() >= until:
                    break
                tasks.wake_at(task, until)
            tasks.suspend(("for a message on", channels))
        return -1, None
    finally:
        for channel in channels:
            channel.give_up(task)
