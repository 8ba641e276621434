"""Channels: bounded queues between tasks, first come first served. Spec: 05 §4.

Each item goes to exactly one receiver. A channel delivers items to receivers in the order they began waiting:
the item at position n belongs to the n-th, even if another one wakes earlier. Wake-ups are hints: a task
that wakes checks again.
"""

from __future__ import annotations

from collections import deque

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
        """Whether there is an item for a receiver that isn't in line."""
        return len(self.items) > len(self.receivers)

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
        if self.ready():
            at = len(self.receivers)
        else:
            self._wait_in(self.receivers, self.count, self._is_over, "for a message on")
            at = 0
        if self.over:
            raise StopIteration
        item = self._take(at)
        self._let_next(self.receivers)
        return item

    def _is_over(self) -> bool:
        """Whether a receiver waits in vain."""
        return self.over

    def take(self) -> Value:
        """The next item of a `readable` channel; those before it are for the receivers in line."""
        return self._take(len(self.receivers))

    def has_item_for(self, task: Task) -> bool:
        """Whether there is an item for a task in the line of receivers."""
        return self.receivers.index(task) < len(self.items)

    def take_in_line(self, task: Task) -> Value:
        """The item for a task in the line of receivers, which leaves it."""
        at = self.receivers.index(task)
        self._leave(self.receivers, task)
        item = self._take(at)
        self._let_next(self.receivers)
        return item

    def give_up(self, task: Task) -> None:
        """Leave the line of receivers; an item for the task is another one's."""
        had_item = self.has_item_for(task)
        self._leave(self.receivers, task)
        if had_item:
            self._wake_all()
        else:
            self._let_next(self.receivers)

    def _take(self, at: int) -> Value:
        item = self.items[at]
        del self.items[at]
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
                if line.index(task) < places():
                    self.early.add(task)
                self.tasks.suspend((what, (self,)))
        except BaseException:
            self._leave(line, task)
            self._wake_all()  # another task gets what this one waited for
            raise
        self._leave(line, task)

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
