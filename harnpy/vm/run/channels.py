"""Channels, mailboxes and `select`: how tasks pass items to one another. Spec: 05 §4, §5, §8.4.

A channel delivers each item to exactly one receiver, in the order they began waiting, even if another one
wakes earlier: only the first in line takes an item, so what it leaves after all is not behind a later one.
Wake-ups are hints: a task that wakes checks again.
"""

from __future__ import annotations

from collections import deque
from itertools import islice

from harnpy.vm.errors import Interrupted
from harnpy.vm.run.tasks import CANCELLED, milliseconds
from harnpy.vm.values import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harnpy.vm.run.scheduler import Scheduler
    from harnpy.vm.run.tasks import Task
    from harnpy.vm.values import Value

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
        """Return True if there is an item for a receiver that isn't in line: nobody is waiting for it."""
        return bool(self.items) and not self.receivers

    @property
    def over(self) -> bool:
        """Closed and drained."""
        return self.closed and not self.items

    def ready(self) -> bool:
        """Return True if asking for the next item would not wait (see `harnpy.builtins.language.streams`)."""
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

    def offer(self, item: Value) -> bool:
        """Add an item from within a coroutine, which can't wait; False where `send` would, or is in vain."""
        if self.closed or self.room() <= len(self.senders):
            return False
        self.send(item)
        self.tasks.wake()
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
        """Return True if a receiver waits in vain."""
        return self.over

    def has_item_for(self, task: Task) -> bool:
        """Return True if a task in the line of receivers may take an item: it is the first.

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
        """Return True if ``task`` is among the first ``places`` in ``line``; doesn't go through all of it."""
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


# Mailboxes: channels that tasks find by name, and that count what goes through. Spec: 05 §8.4.


class Mailbox(Channel):
    __slots__ = ("failed", "received", "sent")

    def __init__(self, tasks: Scheduler, name: str, capacity: int) -> None:
        super().__init__(tasks, name, capacity)
        self.sent = self.received = self.failed = 0

    def display(self) -> str:
        """Return how messages name it."""
        return f"mailbox '{self.name}'"

    def send(self, item: Value) -> bool:
        was_sent = super().send(item)
        self.sent += was_sent
        self.failed += not was_sent
        return was_sent

    def take(self) -> Value:
        self.received += 1
        return super().take()

    def _is_over(self) -> bool:
        if self.tasks.current.cancel_requested:  # such a task waits for nothing more (05 §11)
            raise Interrupted(CANCELLED)
        return super()._is_over()

    def metrics(self) -> dict[str, Value]:
        return {
            "capacity": self.capacity,
            "depth": len(self.items),
            "sent_count": self.sent,
            "received_count": self.received,
            "failed_send_count": self.failed,
            "closed": self.closed,
        }


class Mailboxes(dict[tuple[str, str], Mailbox]):
    """The mailboxes of one program, by scope and key."""


def is_mailbox(value: Value) -> bool:
    """Return True if a value is the handle of a mailbox: `{_type: "mailbox", scope, key}`."""
    return type(value) is dict and value.get("_type") == "mailbox"


def source_of(tasks: Scheduler, value: Value) -> Channel | None:
    """Return what `select` receives from: a channel, or the mailbox of a handle; None for anything else."""
    if type(value) is Channel:
        return value
    if not is_mailbox(value):
        return None
    return tasks.vm.state(Mailboxes).get((display(value.get("scope")), display(value.get("key"))))


# Waiting for several channels and mailboxes at once. Spec: 05 §5.
#
# Who waits stands in the line of every channel, so that receivers who come later don't overtake.


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
            if until is None:
                tasks.suspend(("for a message on", channels))
            elif tasks.now() < until:
                tasks.suspend_until(until, ("for a message on", channels))
            else:
                break
        return -1, None
    finally:
        for channel in channels:
            channel.give_up(task)
