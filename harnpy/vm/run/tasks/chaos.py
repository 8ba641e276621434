"""Ready tasks in a random order, the same for the same seed: for tests of concurrent programs.

Sleepers still wake in the order of their times, receivers keep their place in the line of a channel, and
output keeps its order. What is given up is "first ready, first run" (05 §1.2).
"""

from __future__ import annotations

from collections import deque

from harnpy.vm.errors import RuntimeFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.run.tasks.task import Task

VARIABLE = "HARNPY_CHAOS_SCHED"


class Shuffled(deque["Task"]):
    """A queue whose left end is at a random place."""

    def __init__(self, seed: int) -> None:
        from harnpy.world.random import seeded

        super().__init__()
        self._random = seeded(seed)
        self._due: dict[Task, int] = {}

    def woken(self, task: Task, when: float) -> None:
        """``task``, which is in the queue, slept until ``when``."""
        self._due[task] = int(when * 1000)

    def popleft(self) -> Task:
        task = self._random.choice(self)
        if task in self._due:
            first = min(self._due.values())
            task = self._random.choice([task for task, when in self._due.items() if when == first])
            del self._due[task]
        self.remove(task)
        return task

    def clear(self) -> None:
        super().clear()
        self._due.clear()


def seed_of(setting: str | None) -> int | None:
    """The seed that the environment variable sets; None when it is unset, empty or 0."""
    if not setting or setting == "0":
        return None
    try:
        return int(setting)
    except ValueError:
        raise RuntimeFault(f"{VARIABLE} must be an int, the seed; got `{setting}`") from None
