"""Mailboxes: channels that tasks find by name, and that count what goes through. Spec: 05 §8.4."""

from __future__ import annotations

from harnpy.vm.errors import Interrupted
from harnpy.vm.run.tasks.channels import Channel
from harnpy.vm.run.tasks.overtime import CANCELLED
from harnpy.vm.values.objects import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.run.tasks.scheduler import Scheduler

    Value = Any


class Mailbox(Channel):
    __slots__ = ("failed", "received", "sent")

    def __init__(self, tasks: Scheduler, name: str, capacity: int) -> None:
        super().__init__(tasks, name, capacity)
        self.sent = self.received = self.failed = 0

    def display(self) -> str:
        """How messages name it."""
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
    """Whether a value is the handle of a mailbox: `{_type: "mailbox", scope, key}`."""
    return type(value) is dict and value.get("_type") == "mailbox"


def source_of(tasks: Scheduler, value: Value) -> Channel | None:
    """What `select` receives from: a channel, or the mailbox of a handle; None for anything else."""
    if type(value) is Channel:
        return value
    if not is_mailbox(value):
        return None
    return tasks.vm.state(Mailboxes).get((display(value.get("scope")), display(value.get("key"))))
