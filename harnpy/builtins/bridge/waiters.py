"""The tasks of a program that wait for waitpoints, and who wakes them. Spec: 10 §C18."""

from __future__ import annotations

from contextlib import contextmanager

from harnpy.builtins.bridge.live_event_log import log_of
from harnpy.eventlog.waitpoint_records import OPEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.eventlog.waitpoint_events import Point
    from harnpy.vm.run.tasks.task import Task
    from harnpy.vm.vm import Vm


class Waiters:
    """Each is woken once for each of its waitpoints: when that is open no more.

    Everybody who waits writes to the topic, too, so one look at it is for all of them.
    """

    def __init__(self, vm: Vm) -> None:
        self._vm = vm
        self._log = log_of(vm)
        self._count = 0
        self._tasks: dict[str, dict[Task, None]] = {}
        self._points: dict[str, Point] = {}

    @contextmanager
    def listening(self, points: Sequence[Point]) -> Iterator[None]:
        """Have the current task woken while it is in the block."""
        task = self._vm.tasks.current
        if self._count == 0:
            self._log.listeners.append(self._heard)
        self._count += 1
        for point in points:
            self._points[point.topic] = point
            self._tasks.setdefault(point.topic, {})[task] = None
        try:
            yield
        finally:
            for point in points:
                self._leave(point.topic, task)
            self._count -= 1
            if self._count == 0:
                self._log.listeners.remove(self._heard)

    def _leave(self, topic: str, task: Task) -> None:
        tasks = self._tasks.get(topic, {})
        tasks.pop(task, None)
        if not tasks:
            self._tasks.pop(topic, None)
            self._points.pop(topic, None)

    def _heard(self, topic: str) -> None:
        point = self._points.get(topic)
        if point is None:
            return
        point.read()
        if point.record.status != OPEN:
            for task in self._tasks.pop(topic, {}):
                self._vm.tasks.resume(task)
