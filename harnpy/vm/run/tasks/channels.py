"""Channels: bounded queues between tasks, first come first served. Spec: 05 §4.

Each item goes to exactly one receiver. A channel delivers items to receivers in the order they began waiting,
even if another one wakes earlier: only the first in line takes an item, so what it leaves after all is not
behind a later one. Wake-ups are hints: a task that wakes checks again.
"""

from __future__ import annotations

from collections import deque
from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from harnpy.vm.run.tasks.scheduler import Scheduler
    from harnpy.vm.run.tasks.task import Task

    Value = Any

DEFAULT_CAPACITY = 256


class Channel:
    """``receivers`` and ``senders`` wait in line. Who waits in a `select` is in the line of each channel.

    The ``early`` ones woke before those ahead of them, and wait for them.
    """

    __slots__ = ("capacity", "closed", "early", "items", "name", "receivers", "senders", "tasks")
    type_name = "channel"

    def __init__(self, tasks: Scheduler, name: str, capacity: int = DEFAULT_CAPACITY) -> None:
        self.tasks = tasks
        self.name = name
        self.capacity = max(capacity, 1)
        self.closed = False
        self.items: deque[Value] = deque()
        self.receivers: deque[Task] = deque()
        self.senders: deque[Task] = deque()
        self.early: set[Task] = set()

    def display(self) -> str:
        return f"<channel:{self.name}>"

    # --- looking ----------------------------------------------------------------------------------

    @property
    def readable(self) -> bool:
        """Whether there is an item for a receiver that isn't in line: nobody is, or it would overtake."""
        return bool(self.items) and not self.receivers

    @property
    def over(self) -> bool:
        """Closed and drained."""
        return self.closed and not self.items

    def ready(self) -> bool:
        """Whether asking for the next item would not wait (see `harnpy.builtins.language.tasks.streams`)."""
        return self.readable or self.over

    def count(self) -> int:
        return len(self.items)

    def room(self) -> int:
        return self.capacity - len(self.items)

    # --- sending and receiving --------------------------------------------------------------------

    def send(self, item: Value) -> bool:
        """Add an item, waiting while there is no room; False when the channel is closed."""
        if not self.closed and self.room() <= len(self.senders):
            self._wait_in(self.senders, self.room, lambda: self.closed, "for room in")
        if self.closed:
            return False
        self.items.append(item)
        self._let_next(self.senders)
        if len(self.items) <= len(self.receivers):
            self.tasks.resume(self.receivers[len(self.items) - 1])
        return True

    def __iter__(self) -> Channel:
        return self

    def __next__(self) -> Value:
        """The next item, waited for; StopIteration when the channel is closed and drained."""
        if not self.ready():
            self._wait_in(self.receivers, self.count, self._is_over, "for a message on")
        if self.over:
            raise StopIteration
        item = self.take()
        self._let_next(self.receivers)
        return item

    def _is_over(self) -> bool:
        """Whether a receiver waits in vain."""
        return self.over

    def has_item_for(self, task: Task) -> bool:
        """Whether a task in the line of receivers may take an item: it is the first.

        One that has an item, but others before it, is woken when they have left.
        """
        if self.receivers[0] is task:
            return bool(self.items)
        if self._is_within(self.receivers, task, len(self.items)):
            self.early.add(task)
        return False

    def take_in_line(self, task: Task) -> Value:
        """The item for the first in the line of receivers, which leaves it."""
        self._leave(self.receivers, task)
        item = self.take()
        self._let_next(self.receivers)
        return item

    def give_up(self, task: Task) -> None:
        """Leave the line of receivers; an item for the task is another one's."""
        had_item = self._is_within(self.receivers, task, len(self.items))
        self._leave(self.receivers, task)
        if had_item:
            self._wake_all()
        else:
            self._let_next(self.receivers)

    def take(self) -> Value:
        """The next item, which there is."""
        item = self.items.popleft()
        room = self.room()
        if room <= len(self.senders):
            self.tasks.resume(self.senders[room - 1])
        if self.over:
            self._wake_all()
        return item

    def close(self) -> None:
        self.closed = True
        self._wake_all()

    # --- waiting ----------------------------------------------------------------------------------

    def _wait_in(
        self, line: deque[Task], places: Callable[[], int], hopeless: Callable[[], bool], what: str
    ) -> None:
        """Wait until there is a place and the current task is first in ``line``, or that is hopeless."""
        task = self.tasks.current
        line.append(task)
        try:
            while not hopeless() and (line[0] is not task or places() <= 0):
                if self._is_within(line, task, places()):
                    self.early.add(task)
                self.tasks.suspend((what, (self,)))
        except BaseException:
            self._leave(line, task)
            self._wake_all()  # another task gets what this one waited for
            raise
        self._leave(line, task)

    def _is_within(self, line: deque[Task], task: Task, places: int) -> bool:
        """Whether ``task`` is among the first ``places`` in ``line``; a long line is not gone through."""
        return places > 0 and task in islice(line, places)

    def _leave(self, line: deque[Task], task: Task) -> None:
        line.remove(task)
        self.early.discard(task)

    def _let_next(self, line: deque[Task]) -> None:
        """Wake the first in line if it woke early."""
        if self.early and line and line[0] in self.early:
            self.tasks.resume(line[0])

    def _wake_all(self) -> None:
        for line in (self.receivers, self.senders):
            self._wake(line)

    def _wake(self, line: Iterable[Task]) -> None:
        for task in line:
            self.tasks.resume(task)
