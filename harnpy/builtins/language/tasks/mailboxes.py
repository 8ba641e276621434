"""Mailboxes: queues that tasks find by name. Spec: 05 §8.4."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.language.tasks.scopes import handle, place_of, place_to_open
from harnpy.vm.declare.builtin import ABSENT, require
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.run.tasks.channels import DEFAULT_CAPACITY
from harnpy.vm.run.tasks.mailboxes import Mailbox, Mailboxes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="concurrency", counted=True)

_KIND = "mailbox"
#: What `mailbox_metrics` says of a mailbox that does not exist.
_NO_METRICS = {
    **dict.fromkeys(("capacity", "depth", "sent_count", "received_count", "failed_send_count"), 0),
    "closed": False,
}


@builtin("mailbox_open(name: any, capacity: int = 256) -> dict")
def mailbox_open(vm: Vm, name: Value = ABSENT, capacity: Value = DEFAULT_CAPACITY) -> Value:
    """Open a mailbox, made on first use with room for `capacity` messages; returns its handle.

    `name`: a name, or `{name, scope?, capacity?, tenant_id?}`. The default scope is `task_group`.

    Example:
        let inbox = mailbox_open("desk")
        mailbox_send(inbox, "hi")
        mailbox_receive(inbox)  // "hi"
    """
    place = place_to_open(vm, "mailbox_open", _KIND, name)
    if type(name) is dict:
        capacity = name.get("capacity", capacity)
    mailboxes = vm.state(Mailboxes)
    if place not in mailboxes:
        room = capacity if type(capacity) is int else DEFAULT_CAPACITY
        mailboxes[place] = Mailbox(vm.tasks, place[1], room)
    return handle(_KIND, place)


@builtin("mailbox_lookup(target: any) -> dict | nil")
def mailbox_lookup(vm: Vm, target: Value = ABSENT) -> Value:
    """The handle of a mailbox that is open somewhere; nil when there is none of that name.

    Example:
        mailbox_lookup("no such mailbox")  // nil
    """
    found = _found(vm, "mailbox_lookup", target, "name or handle is required")
    return handle(_KIND, place_of(vm, "mailbox_lookup", _KIND, target)) if found else None


@builtin("mailbox_send(target: any, value: any) -> bool")
def mailbox_send(vm: Vm, target: Value = ABSENT, value: Value = ABSENT) -> bool:
    """Put a message into a mailbox, waiting while it is full; false when it is closed or does not exist.

    Example:
        mailbox_open("tray")
        mailbox_send("tray", {job: 1})  // true
    """
    require("mailbox_send: requires target and value", value)
    mailbox = _found(vm, "mailbox_send", target, "requires target and value")
    return mailbox is not None and mailbox.send(value)


@builtin("mailbox_receive(target: any) -> any")
def mailbox_receive(vm: Vm, target: Value = ABSENT) -> Value:
    """The next message of a mailbox, waited for; nil when it is closed and drained or does not exist.

    Example:
        mailbox_open("post")
        mailbox_send("post", "hi")
        mailbox_receive("post")  // "hi"
    """
    mailbox = _found(vm, "mailbox_receive", target)
    return None if mailbox is None else next(mailbox, None)


@builtin("mailbox_try_receive(target: any) -> any")
def mailbox_try_receive(vm: Vm, target: Value = ABSENT) -> Value:
    """The next message of a mailbox, or nil when none is ready; never waits.

    Example:
        mailbox_open("empty")
        mailbox_try_receive("empty")  // nil
    """
    mailbox = _found(vm, "mailbox_try_receive", target)
    return mailbox.take() if mailbox and mailbox.readable else None


@builtin("mailbox_close(target: any) -> bool")
def mailbox_close(vm: Vm, target: Value = ABSENT) -> bool:
    """Close a mailbox for new messages; those in it can still be received. True if it was open.

    Example:
        mailbox_open("inbox")
        [mailbox_close("inbox"), mailbox_send("inbox", "late")]  // [true, false]
    """
    mailbox = _found(vm, "mailbox_close", target)
    if mailbox is None or mailbox.closed:
        return False
    mailbox.close()
    return True


@builtin("mailbox_metrics(target: any) -> dict")
def mailbox_metrics(vm: Vm, target: Value = ABSENT) -> Value:
    """`{capacity, depth, sent_count, received_count, failed_send_count, closed}`.

    Example:
        mailbox_open("letters")
        mailbox_send("letters", "hi")
        mailbox_metrics("letters").depth  // 1
    """
    mailbox = _found(vm, "mailbox_metrics", target)
    return mailbox.metrics() if mailbox else dict(_NO_METRICS)


def _found(vm: Vm, function: str, target: Value, missing: str = "target is required") -> Mailbox | None:
    if target is ABSENT or target is None:
        raise RuntimeFault(f"{function}: {missing}")
    return vm.state(Mailboxes).get(place_of(vm, function, _KIND, target))
